"""The part of `tiergate.yaml` under `corpus`, and the values it becomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from service.settings.forms import Duration, Limit, Name, Shape, Share, Size, written
from service.settings.problems import Findings
from service.settings.redacting import known_masks
from service.store.kept.corpus_plan import TRAFFIC, CorpusPlan

SHORTEST_RETENTION = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusTerms:
    """What is kept of traffic beyond its scoring."""

    plan: CorpusPlan = field(default_factory=CorpusPlan)
    answers: float = 0.05
    """Share of captures whose answers are kept, to be judged again."""
    redact: str = "personal"
    """Name of the mask; `service.settings.redacting` loads it."""
    resend_seconds: float = 300.0
    """Within which the same prompt of one tenant is a retry; 0 = not counted."""
    prefixes: int = 20_000
    """Prompts of one model whose beginnings are kept as keyed hashes; 0 = none."""
    use: str = TRAFFIC
    """The corpus that shadow jobs send."""


class CorpusShape(Shape):
    """Requests that are kept, encrypted and redacted, for shadow jobs; and answers, to be judged again."""

    per_stratum: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=20, description="Most requests of one stratum and tenant; 0 keeps none."
    )
    retention: Duration = written("28d", "After which whatever was kept of traffic is gone.")
    max_bytes: Size = written("256MiB", "Of all requests, sealed; and as much again of kept answers.")
    answers: Share = written(
        "5%",
        "Of captures; kept with all their answers, so that they count again when an evaluator is upgraded.",
    )
    redact: Name = Field(
        default="personal",
        description="Mask before anything is kept: `personal` (e-mails, phone and card numbers, keys), "
        "`off`, or one that a package offers.",
    )
    resend_window: Limit = written(
        "5m", "The same prompt of one tenant within it is a retry; `none` counts none."
    )
    prefixes: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        default=20_000,
        description="Latest prompts of a model whose beginnings are kept as keyed hashes, for "
        "`tiergate capacity replay`; 0 keeps none.",
    )
    use: Name = Field(
        default=TRAFFIC, description="Corpus that shadow jobs send: `traffic`, or the name of an import."
    )


def build_corpus(shape: CorpusShape, findings: Findings) -> CorpusTerms:
    """What is wrong goes to `findings`."""
    known = known_masks()
    if shape.redact not in known:
        findings.add(("corpus", "redact"), f"no mask has this name; there are {', '.join(known)}")
    if shape.retention < SHORTEST_RETENTION:
        findings.add(("corpus", "retention"), "at least 1m, in which a capture is scored")
    return CorpusTerms(
        plan=CorpusPlan(
            per_stratum=shape.per_stratum,
            retention_seconds=shape.retention,
            max_bytes=shape.max_bytes,
        ),
        answers=shape.answers,
        redact=shape.redact,
        resend_seconds=shape.resend_window or 0.0,
        prefixes=shape.prefixes,
        use=shape.use,
    )
