"""Beginning a shadow job: what it is held to, whether it may begin, and the manifest that says all of it.

The same for a person, a pipeline, the schedule and a replay.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

from service.fleet import Ladder, Slo, Tier
from service.store.load.jobs import Cause, Job, JobRuns, begin_job
from service.store.load.manifest import (
    DEFAULT_PLAN,
    FORMAT,
    TOGETHER,
    JobPlan,
    Manifest,
    differences,
    plan_document,
)
from service.store.sql.database import Database
from service.store.verdicts.observations import read_words
from service.store.verdicts.serving import in_service, shared, targets_of

OVERRIDE = "--i-own-this-capacity"


class CannotBegin(RuntimeError):
    """A job that may not begin, and what to do about it."""

    def __init__(self, code: str, message: str, *, hint: str = "", reasons: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
        self.reasons = tuple(reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTerms:
    """What jobs are held to, from one configuration."""

    ladders: Mapping[str, Ladder]
    plan: JobPlan = DEFAULT_PLAN
    slo: Mapping[str, Slo] = field(default_factory=dict)
    """By model."""
    money: Mapping[str, Any] = field(default_factory=dict)
    """As JSON."""
    policy_digest: str = ""
    evaluators: Mapping[str, str] = field(default_factory=dict)
    """Version by name."""
    epoch_of: Callable[[str, str], str] = lambda model, tier: ""
    corpus_of: Callable[[str], Mapping[str, Any]] = lambda model: {"digest": "", "requests": 0}
    """What a model's requests are drawn from: `digest`, `requests`, `strata`. Reads all of it."""
    has_requests: Callable[[str], bool] = lambda model: False
    """Whether there is anything to draw; pages ask every few seconds."""


def compose(db: Database, terms: JobTerms, model: str, *, plan: JobPlan, seed: int) -> Manifest:
    """The manifest of a job of that model that would begin now; KeyError without ladder or SLO."""
    ladder = terms.ladders[model]
    return Manifest.of(
        {
            "format": FORMAT,
            "tiergate": version("tiergate"),
            "model": model,
            "tiers": [_tier(db, terms, ladder, tier) for tier in ladder.tiers],
            "corpus": dict(terms.corpus_of(model)),
            "seed": seed,
            "plan": plan_document(plan),
            "slo": asdict(terms.slo[model]),
            "money": dict(terms.money),
            "policy": terms.policy_digest,
            "evaluators": dict(terms.evaluators),
        }
    )


def begin(
    db: Database,
    terms: JobTerms,
    model: str,
    *,
    cause: Cause,
    actor: str,
    now: float,
    own_capacity: bool = False,
    plan: JobPlan | None = None,
    repeats: Manifest | None = None,
) -> Job:
    """Begin a job; raises CannotBegin, or KeyError for an unknown model.

    `plan` stands in for the configured one; `repeats` brings its own plan and seed, and what differs from it
    now is kept with the job.
    """
    if repeats is not None:
        plan, seed = repeats.plan, repeats.seed
    else:
        plan, seed = plan or terms.plan, secrets.randbits(31)
    check(db, terms, model, plan=plan, own_capacity=own_capacity)
    manifest = compose(db, terms, model, plan=plan, seed=seed)
    try:
        return begin_job(
            db,
            manifest=manifest,
            cause=cause,
            actor=actor,
            now=now,
            own_capacity=own_capacity,
            replay_of=None if repeats is None else repeats.digest,
            differences=() if repeats is None else differences(repeats, manifest),
        )
    except JobRuns as running:
        raise CannotBegin(
            "job_runs",
            str(running),
            hint=f"`tiergate shadow status {running.job_id}` shows it, `tiergate shadow cancel` ends it",
        ) from running


def check(db: Database, terms: JobTerms, model: str, *, plan: JobPlan, own_capacity: bool) -> None:
    """CannotBegin unless a job of that plan has all that it needs; KeyError for an unknown model."""
    ladder = terms.ladders[model]
    if not ladder.candidates:
        raise CannotBegin(
            "one_tier", f"the ladder of {model!r} has one tier: there is nothing to compare it with"
        )
    if model not in terms.slo:
        raise CannotBegin(
            "no_slo",
            f"{model!r} has no service level, so nothing says which tokens count",
            hint="give it one: `slo: {ttft: 1500ms, tpot: 80ms}` under the model",
        )
    if not terms.has_requests(model):
        raise CannotBegin(
            "empty_corpus",
            f"the corpus of {model!r} has no request to send",
            hint="let traffic fill it, or import some: `tiergate corpus import --help`",
        )
    serving = in_service(db, terms.ladders, model)
    if serving and not own_capacity:
        raise CannotBegin(
            "serving_capacity",
            f"load for {model!r} would go to backends that serve clients",
            hint="give each of these tiers `shadow` backends that serve nobody, or, if the clients are yours "
            f"to disturb, say so for this one run: {OVERRIDE}",
            reasons=serving,
        )
    if plan.arms == TOGETHER and (both := shared(ladder)):
        raise CannotBegin(
            "shared_backends",
            f"load for the tiers of {model!r} cannot be sent together: some of them have a backend in common",
            hint="give each tier backends of its own under `shadow`, or let them take turns: "
            "`shadow_job.arms: interleaved`",
            reasons=both,
        )


def _tier(db: Database, terms: JobTerms, ladder: Ladder, tier: Tier) -> dict[str, Any]:
    targets = {backend.url for backend in targets_of(tier)}
    told = read_words(db, ladder.model, tier.name)
    return {
        "tier": tier.name,
        "model": tier.model,
        "declares": dict(tier.declares),
        "hardware": tier.declares.get("hardware", ""),
        "price_per_hour": tier.price_per_hour,
        "backends": sorted(targets),
        "engines": {
            word.backend: json.loads(word.facts.as_json()) for word in told if word.backend in targets
        },
        "epoch": terms.epoch_of(ladder.model, tier.name),
    }


def unlike(manifest: Manifest, ladder: Ladder) -> str:
    """Why the job of that manifest cannot go on with this ladder; empty when it can.

    Prices and declarations are as the manifest says; where load goes, and how the tiers are called, must not
    change under a job.
    """
    now = {tier.name: sorted({backend.url for backend in targets_of(tier)}) for tier in ladder.tiers}
    for name in manifest.tiers:
        if name not in now:
            return f"the ladder has no tier {name!r} any more"
        if now[name] != list(manifest.tier(name)["backends"]):
            return f"the backends of {name!r} for load are not those that the job began with"
    return ""
