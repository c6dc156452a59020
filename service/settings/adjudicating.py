"""The part of `tiergate.yaml` under `adjudication`, and the values it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from evaluators.score import Evaluator, compares
from service.fleet import Backend, Ladder
from service.settings.forms import Count, Duration, Name, Section, Shape, Share, is_header_value, written
from service.settings.policy_shape import EvaluatorName
from service.settings.problems import Findings, Place
from service.settings.secrets import SecretUnreadable, read_secret
from service.settings.units import Listen
from service.settings.urls import web_url
from service.store.redis.addresses import address_of

PLACE: Place = ("adjudication",)


def _judge_url(given: str) -> str:
    """A base URL; its path is that of the API, /v1 where it has none."""
    expected = f"expected http(s)://HOST[:PORT][/PATH], such as https://judge.example/v1, got {given!r}"
    own = "credentials do not belong in a URL; use api_key_file"
    parts = web_url(given, expected=expected, credentials=own)
    if parts.query or parts.fragment:
        raise ValueError(expected)
    if parts.path.rstrip("/").endswith("/chat/completions"):
        raise ValueError("leave out /chat/completions: it is appended")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/') or '/v1'}"


JudgeUrl = Annotated[str, AfterValidator(_judge_url)]


class JudgeShape(Shape):
    """A language model that labels too; measured against people, and never in a finding."""

    url: JudgeUrl = Field(
        description="Base URL of an OpenAI-compatible API, /v1 where it has no path; no backend of a ladder."
    )
    model: Name = Field(description="What that API calls the model.")
    api_key_file: str | None = Field(default=None, description="File whose first line is its API key.")
    tokens_per_day: Count = Field(default=1_000_000, description="Budget of its own.")
    timeout: Duration = written("1m", "Of one question.")
    max_tokens: Annotated[int, Field(ge=16, le=100_000)] = Field(
        default=512, description="Of one answer; a model that thinks needs more."
    )


class AdjudicationShape(Shape):
    """Pairs that people judge, so that the error of an evaluator is known and corrected."""

    evaluators: list[EvaluatorName] = Field(
        default=["refusal"], description="Whose pairs are queued; `[]` for none, and no text is kept."
    )
    audit: Share = written(
        "5%", "Of pairs in which the arms do not differ; those that differ are all queued."
    )
    overlap: Share = written("20%", "Of queued pairs that two people label, to see how far they agree.")
    keep: Duration = written("30d", "Of the sealed request and answers of a queued pair; labels stay.")
    judge: JudgeShape | None = Field(
        default=None, description="A language model that labels too; without it, people alone do."
    )


AdjudicationSection = Annotated[AdjudicationShape, Section]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePlan:
    """Whom to ask for labels besides people."""

    url: str
    """With the path of the API, such as https://judge.example/v1."""
    model: str
    api_key: str | None = field(default=None, repr=False)
    tokens_per_day: int = 1_000_000
    """Prompt plus answer."""
    timeout_seconds: float = 60.0
    max_tokens: int = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjudicationPlan:
    """Which pairs are queued for people, and for how long their texts are kept."""

    evaluators: tuple[str, ...] = ("refusal",)
    audit: float = 0.05
    """Share of concordant pairs."""
    overlap: float = 0.2
    """Share of queued pairs that two people label."""
    keep_seconds: float = 30 * 86_400.0
    judge: JudgePlan | None = None


def build_adjudication(
    shape: AdjudicationShape,
    ladders: Mapping[str, Ladder],
    judging: Sequence[Evaluator],
    *,
    proxy: Listen,
    beside: Path,
    findings: Findings,
) -> AdjudicationPlan:
    """The plan; `findings` says what stands in its way."""
    for index, name in enumerate(shape.evaluators):
        place = (*PLACE, "evaluators", index)
        if name in shape.evaluators[:index]:
            findings.add(place, f"{name!r} stands in this list twice")
        if any(each.name == name and compares(each) for each in judging):
            findings.add(place, f"{name} compares two answers, so there is no label for either; leave it out")
    return AdjudicationPlan(
        evaluators=tuple(shape.evaluators),
        audit=shape.audit,
        overlap=shape.overlap,
        keep_seconds=shape.keep,
        judge=None if shape.judge is None else _judge(shape.judge, ladders, proxy, beside, findings),
    )


def _judge(
    shape: JudgeShape, ladders: Mapping[str, Ladder], proxy: Listen, beside: Path, findings: Findings
) -> JudgePlan:
    place = (*PLACE, "judge")
    if (tested := _under_test(shape.url, ladders, proxy)) is not None:
        findings.add((*place, "url"), f"{shape.url} is {tested}: a judge must not judge its own answers")
    key = None
    if shape.api_key_file is not None:
        try:
            key = read_secret(beside / Path(shape.api_key_file).expanduser())
        except SecretUnreadable as error:
            findings.add((*place, "api_key_file"), str(error))
        if key is not None and not is_header_value(key):
            findings.add((*place, "api_key_file"), "an API key is printable ASCII on one line")
            key = None
    return JudgePlan(
        url=shape.url,
        model=shape.model,
        api_key=key,
        tokens_per_day=shape.tokens_per_day,
        timeout_seconds=shape.timeout,
        max_tokens=shape.max_tokens,
    )


def _under_test(url: str, ladders: Mapping[str, Ladder], proxy: Listen) -> str | None:
    """Which server under test it is, by host and port whatever the path; None when it is none."""
    asked = address_of(Backend(url=url))
    for ladder in ladders.values():
        for tier in ladder.tiers:
            for pool, backends in (("backends", tier.backends), ("shadow", tier.shadow)):
                if any(address_of(backend) == asked for backend in backends):
                    return f"under test, in {pool} of tier {tier.name!r} of model {ladder.model!r}"
    if proxy.path is None and address_of(Backend(url=f"http://{proxy}")) == asked:
        return f"the proxy itself (proxy.listen {proxy}), behind which are the tiers under test"
    return None
