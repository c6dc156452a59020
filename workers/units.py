"""From outcomes to what is recorded: a unit for each comparison and evaluator, with a row for each pair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaluators.exchange import Outcome, Request
from evaluators.score import Detail, Evaluator, Judged, NotApplicable, PairScore, Unscored, UnscoredReason
from service import strata
from service.decision.policy import Units
from service.store.scored.units import Claim, PairOutcome, PairRow, Unit
from service.store.sql.schema import key_of
from service.store.verdicts.current_epochs import NO_EPOCH
from workers.judge import judge
from workers.opening import Opened
from workers.plan import Comparison, Plan, Slot
from workers.probes import RECALL

MOST_REASON = 500
"""Characters of one reason kept with a pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """An opened capture in its conversation, with the claims it holds there."""

    opened: Opened
    conversation: str
    held: frozenset[Claim] = frozenset()
    over_budget: bool = False
    probes_over_budget: bool = False
    """Its recall questions are not asked, and the rest of it is."""
    late: bool = False
    """The conversation was closed: what it says now is told apart, and not asked for."""

    @property
    def is_asked(self) -> bool:
        """Whether its replays are worth making."""
        return not (self.over_budget or self.late)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """How pairs are judged, and to which epoch they belong."""

    evaluators: Sequence[Evaluator]
    epoch_of: Callable[[str, str], str]
    """Epoch of (model, tier); the control's is the baseline's own."""
    seconds_per_answer: float
    onlookers: frozenset[str] = frozenset()
    """Evaluators that decide nothing: a request to which one does not apply leaves no unit of it."""
    count: Units = Units.FIRST_SAMPLED
    """What counts as one unit of evidence."""
    unsettled_of: Callable[[str, str], str] = lambda model, tier: ""
    """Why pairs of (model, tier) belong to no epoch at the moment; empty when they do."""
    since_of: Callable[[str, str], float] = lambda model, tier: 0.0
    """Unix seconds; what the tier answered clients before may be another artifact's."""

    @property
    def by_conversation(self) -> bool:
        """Whether all requests of a conversation count together, once it is closed."""
        return self.count is Units.CLOSED_CONVERSATIONS


def judged_under(scoring: Scoring, model: str, tiers: Iterable[str]) -> str:
    """Names the evaluators, with their versions, and the epochs that pairs of a model are judged under."""
    versions = sorted(f"{each.name}={each.version}" for each in scoring.evaluators)
    epochs = sorted(f"{tier}:{scoring.epoch_of(model, tier)}" for tier in tiers)
    return key_of(model, *versions, *epochs)


def claims_of(opened: Opened, conversation: str, scoring: Scoring) -> list[Claim]:
    """Where this capture asks to be the one that counts: decided by the request, before any replay."""
    return [
        _claim(opened, comparison, evaluator, conversation, scoring)
        for comparison, evaluator in _due(opened, scoring)
        if _questions(opened, evaluator) and not mixed(opened, comparison, evaluator, scoring)
    ]


def mixed(opened: Opened, comparison: Comparison, evaluator: Evaluator, scoring: Scoring) -> str:
    """Why these pairs may compare more than two artifacts, and belong to no epoch; empty when they do not."""
    capture, plan = opened.capture, opened.plan
    if why := scoring.unsettled_of(capture.model, comparison.tier):
        return why
    live = Slot(capture.tier, 0)
    is_used = evaluator.name != RECALL and live in plan.known and live in comparison.slots(plan.baseline, 0)
    if is_used and capture.started_at < scoring.since_of(capture.model, capture.tier):
        return f"{capture.tier} answered the client before its engine was what it is now"
    return ""


def units_of(
    placed: Placed, outcomes: Mapping[Slot, Outcome], scoring: Scoring, *, at: float
) -> tuple[Unit, ...]:
    """Everything to record of one capture. `outcomes` may be empty when it is over budget or was rejected."""
    opened = placed.opened
    capture = opened.capture
    units: list[Unit] = []
    for comparison, evaluator in _due(opened, scoring):
        claim = _claim(opened, comparison, evaluator, placed.conversation, scoring)
        units.append(
            Unit(
                capture_id=capture.id,
                model=capture.model,
                tier=comparison.tier,
                arm=comparison.arm.value,
                evaluator=evaluator.name,
                version=evaluator.version,
                epoch=claim.epoch,
                conversation=placed.conversation,
                stratum=capture.stratum,
                tenant=capture.tenant,
                digest=opened.digest,
                counted=claim in placed.held and not scoring.by_conversation,
                waits=claim in placed.held and scoring.by_conversation,
                marginals=opened.marginals,
                rows=tuple(_rows(placed, comparison, evaluator, outcomes, scoring)),
                at=at,
            )
        )
    return tuple(units)


def _due(opened: Opened, scoring: Scoring) -> Iterator[tuple[Comparison, Evaluator]]:
    """Every evaluator of every comparison that has capacity; whether it applies is a row of its unit.

    Onlookers must apply: most requests offer no tools, and to write that down for each tier costs as much as
    a score.
    """
    looking = [
        evaluator
        for evaluator in scoring.evaluators
        if evaluator.name not in scoring.onlookers or _questions(opened, evaluator)
    ]
    for comparison in opened.plan.comparisons:
        for evaluator in looking:
            if comparison.probed or evaluator.name != RECALL:
                yield comparison, evaluator


def _questions(opened: Opened, evaluator: Evaluator) -> Mapping[int, Request]:
    """What the evaluator judges, by item: recall the probes, the others the request itself."""
    if opened.plan.rejected:
        return {}
    return questions_for(evaluator, opened.request, dict(enumerate(opened.questions, 1)))


def questions_for(
    evaluator: Evaluator, request: Request, probes: Mapping[int, Request]
) -> Mapping[int, Request]:
    """What an evaluator judges of a request and its recall questions, by item; empty when nothing."""
    if evaluator.name == RECALL:
        return probes
    try:
        applies = evaluator.applies(request)
    except Exception:
        # Due, and then `score_pair` meets the same error and makes it `Unscored(bug)`, which is counted.
        applies = True
    return {0: request} if applies else {}


def _claim(
    opened: Opened, comparison: Comparison, evaluator: Evaluator, conversation: str, scoring: Scoring
) -> Claim:
    belongs = not mixed(opened, comparison, evaluator, scoring)
    return Claim(
        tier=comparison.tier,
        arm=comparison.arm.value,
        epoch=scoring.epoch_of(opened.capture.model, comparison.tier) if belongs else NO_EPOCH,
        evaluator=evaluator.name,
        version=evaluator.version,
        conversation="" if scoring.by_conversation else conversation,
        digest=opened.digest,
    )


def _rows(
    placed: Placed,
    comparison: Comparison,
    evaluator: Evaluator,
    outcomes: Mapping[Slot, Outcome],
    scoring: Scoring,
) -> Iterator[PairRow]:
    plan = placed.opened.plan
    questions = _questions(placed.opened, evaluator)
    if not questions:
        yield PairRow(outcome=PairOutcome.NOT_APPLICABLE.value)
    for item, question in questions.items():
        own = _own_stratum(question)
        if placed.late:
            late = UnscoredReason.LATE.value
            yield PairRow(
                item=item, outcome=PairOutcome.UNSCORED.value, unscored_reason=late, own_stratum=own
            )
            continue
        if placed.over_budget or (placed.probes_over_budget and item):
            yield PairRow(item=item, outcome=PairOutcome.OVER_BUDGET.value, own_stratum=own)
            continue
        if why := mixed(placed.opened, comparison, evaluator, scoring):
            mixture = Unscored(reason=UnscoredReason.MIXED_ARTIFACT, detail=why)
            yield row_of(mixture, item=item, origin=_origin(plan, comparison, item), own_stratum=own)
            continue
        pair = tuple(outcomes[slot] for slot in comparison.slots(plan.baseline, item))
        yield judged_row(
            evaluator, question, pair, item=item, origin=_origin(plan, comparison, item), scoring=scoring
        )


def judged_row(
    evaluator: Evaluator,
    question: Request,
    pair: tuple[Outcome, ...],
    *,
    item: int,
    origin: str,
    scoring: Scoring,
) -> PairRow:
    """Judge a pair, the baseline's outcome first, and write it down; as at first, so whenever it is again."""
    baseline, candidate = pair
    judged = judge(evaluator, question, baseline, candidate, seconds=scoring.seconds_per_answer)
    return row_of(judged, item=item, origin=origin, own_stratum=_own_stratum(question))


def _own_stratum(question: Request) -> str:
    """A recall question's depth is known before any answer; other requests have the strata of their unit."""
    return "" if question.needle is None else strata.of_depth(question.needle.depth)


def _origin(plan: Plan, comparison: Comparison, item: int) -> str:
    """Where the first of the two outcomes comes from."""
    return "live" if comparison.slots(plan.baseline, item)[0] in plan.known else "replay"


def _failures(judged: PairScore) -> tuple[Detail, ...]:
    """The classes of answers that failed, by whose they were: rare, so that counting them costs little."""
    arms = (("baseline", judged.baseline), ("candidate", judged.candidate))
    return tuple(Detail(score.label, arm) for arm, score in arms if not score.passed)


def row_of(judged: Judged, *, item: int, origin: str, own_stratum: str = "") -> PairRow:
    """A judgement as it is written down; `origin` is the baseline outcome's."""
    if isinstance(judged, PairScore):
        return PairRow(
            item=item,
            outcome=PairOutcome.SCORED.value,
            baseline_passed=judged.baseline.passed,
            candidate_passed=judged.candidate.passed,
            baseline_label=judged.baseline.label,
            candidate_label=judged.candidate.label,
            baseline_reason=judged.baseline.reason[:MOST_REASON],
            candidate_reason=judged.candidate.reason[:MOST_REASON],
            origin=origin,
            own_stratum=own_stratum,
            details=(*judged.candidate.details, *_failures(judged)),
        )
    if isinstance(judged, NotApplicable):
        return PairRow(
            item=item, outcome=PairOutcome.NOT_APPLICABLE.value, origin=origin, own_stratum=own_stratum
        )
    return PairRow(
        item=item,
        outcome=PairOutcome.UNSCORED.value,
        unscored_reason=judged.reason.value,
        candidate_reason=judged.detail[:MOST_REASON],
        origin=origin,
        own_stratum=own_stratum,
    )
