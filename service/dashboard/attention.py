"""What needs a person: facts that somebody has to act on, the worst first. PURE: told what was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from service.dashboard.acting.offers import rolled_back
from service.dashboard.formats import count, day, percent
from service.dashboard.losses import losses_of
from service.dashboard.visit import address
from service.decision.verdict import Decision
from service.store.decided.holds import HoldKind
from service.store.load.jobs import Job, JobState
from service.store.outgoing.callbacks import CallbackState
from service.store.outgoing.webhooks import PREFIX
from service.store.traffic.account import LedgerAccount
from service.store.verdicts.rung import Rung, RungState
from service.store.verdicts.standing import Standing

SOON_SECONDS = 3 * 86_400.0
"""Before the end of an approval."""
LEAST_LOST = 0.001
"""Of the requests that were to be captured: a loss below that is told by the ledger alone."""
_ORDER = ("bad", "wait", "good")
_WENT_WRONG = frozenset({JobState.FAILED, JobState.ABORTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Matter:
    """One thing to do."""

    kind: str
    """Names its sentences: what is the matter under `matter.`, what to do under `act.`."""
    tone: str
    """`bad`, `wait` or `good`."""
    href: str
    """The page where it is done; empty where a command does it."""
    numbers: Mapping[str, object] = field(default_factory=dict)
    """That the sentence is written with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What was read of one model."""

    standing: Standing
    ledger: LedgerAccount
    last_job: Job | None
    """The latest one."""
    to_label: int
    """Pairs that wait for a label of whoever asks."""


def matters(
    models: Sequence[Known], callbacks: Mapping[tuple[str, CallbackState], int], *, now: float
) -> tuple[Matter, ...]:
    """The worst first; within that, model by model along the ladder, and last what harms no client."""
    found: list[Matter] = []
    for known in models:
        found += _of_route(known.standing)
        for rung in known.standing.rungs:
            found += _of_rung(known.standing, rung, now=now)
        found += [*_of_ledger(known), *_of_job(known), *_of_labels(known)]
    found += _given_up(callbacks)
    return tuple(sorted(found, key=lambda matter: _ORDER.index(matter.tone)))


def _of_route(standing: Standing) -> Iterator[Matter]:
    """A route that cannot be followed; the tier would serve again as soon as it is configured again."""
    if standing.gone:
        model, tier = standing.ladder.model, standing.gone[-1]
        baseline = standing.ladder.baseline.name
        numbers = {"model": model, "tiers": ", ".join(standing.gone), "baseline": baseline}
        yield Matter(kind="void_route", tone="bad", href=rolled_back(model, tier), numbers=numbers)


def _of_rung(standing: Standing, rung: Rung, *, now: float) -> Iterator[Matter]:
    model, tier = standing.ladder.model, rung.tier.name
    href = address("/tier", model=model, tier=tier)
    named = {"model": model, "tier": tier}
    if rung.verdict is None:
        return
    if rung.weight and rung.verdict.decision is Decision.REJECT:
        yield Matter(kind="harm", tone="bad", href=href, numbers={**named, "weight": rung.weight})
    elif rung.weight and rung.barred:
        yield Matter(kind="barred", tone="bad", href=href, numbers={**named, "weight": rung.weight})
    if rung.state is RungState.EXPIRED and rung.approval is not None:
        until = day(rung.approval.expires_at)
        yield Matter(kind="expired", tone="wait", href=href, numbers={**named, "at": until})
    ends = rung.approval.expires_at if rung.approved and rung.approval is not None else None
    if ends is not None and ends - now <= SOON_SECONDS:
        yield Matter(kind="expiring", tone="wait", href=href, numbers={**named, "at": day(ends)})
    if any(hold.kind is HoldKind.FROZEN for hold in rung.held):
        yield Matter(kind="frozen", tone="wait", href=href, numbers=named)
    if rung.state is RungState.ACCEPT and not rung.barred:
        yield Matter(kind="accept", tone="good", href=href, numbers=named)


def _of_ledger(known: Known) -> Iterator[Matter]:
    model, ledger = known.standing.ladder.model, known.ledger
    href = address("/ledger", model=model)
    if not ledger.balanced:
        yield Matter(kind="unbalanced", tone="bad", href=href, numbers={"model": model})
    lost = sum(each.count for each in losses_of(ledger))
    if lost and ledger.sampled and lost / ledger.sampled >= LEAST_LOST:
        numbers = {"model": model, "count": count(lost), "share": percent(lost / ledger.sampled, 2)}
        yield Matter(kind="lost", tone="wait", href=href, numbers=numbers)


def _of_job(known: Known) -> Iterator[Matter]:
    job = known.last_job
    if job is not None and job.state in _WENT_WRONG:
        numbers = {"model": job.model, "job": job.job_id}
        yield Matter(kind=job.state.value, tone="bad", href=address("/job", id=job.job_id), numbers=numbers)


def _of_labels(known: Known) -> Iterator[Matter]:
    if known.to_label:
        model = known.standing.ladder.model
        numbers = {"model": model, "count": count(known.to_label)}
        yield Matter(kind="labels", tone="wait", href=address("/adjudicate", model=model), numbers=numbers)


def _given_up(callbacks: Mapping[tuple[str, CallbackState], int]) -> Iterator[Matter]:
    for (tool, state), amount in sorted(callbacks.items()):
        if state is CallbackState.GIVEN_UP:
            kind = "given_up" if tool.startswith(PREFIX) else "unanswered"
            numbers = {"tool": tool.removeprefix(PREFIX), "count": count(amount)}
            yield Matter(kind=kind, tone="bad", href="", numbers=numbers)
