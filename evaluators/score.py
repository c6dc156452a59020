"""Judging one pair: two blind scores, or the reason why there are none.

An evaluator sees a request and an answer. Whether it applies is decided by the request alone, or an arm that
stops emitting JSON would leave the denominator. What cannot be judged because of the request is `Unscored`;
because of the answer, a failed score of class `unjudgeable`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeGuard

from evaluators.exchange import Answer, Fault, FaultKind, Outcome, Request


class Detail(NamedTuple):
    """One thing that a comparison saw, counted by `name` and `kind` over all pairs."""

    name: str
    """Such as a JSON Pointer of the request's schema, at most `LONGEST_NAME` characters."""
    kind: str
    """What of it: `agrees`, `values` ..."""
    amount: int = 1


LONGEST_NAME = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The judgement of one answer, with what it rests on."""

    passed: bool
    label: str
    """Class of the answer in the evaluator's own exclusive list, such as `ok` or `schema_violation`."""
    reason: str = ""
    """One sentence for a person, naming both what was expected and what was found."""
    evidence: str = ""
    """The span of the answer (or JSON pointer) that the reason speaks of, at most 200 characters."""
    neutral: bool = False
    """Neither right nor wrong by itself, and counted only to see whether two tiers differ in it: no tool was
    called where none had to be."""
    details: tuple[Detail, ...] = ()
    """Of a compared pair: what is counted besides its class. Names come from the request, never from what
    was said (ADR 28)."""


def excerpt(text: str, limit: int = 200) -> str:
    """At most `limit` characters on one line, for reasons and evidence; without lone surrogates, since these
    are stored as UTF-8."""
    line = " ".join(text[: 4 * limit].split()).encode("utf-8", "replace").decode("utf-8")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def failed(label: str, reason: str, span: str = "") -> Score:
    """A failure of this class; `reason` and what it speaks of, `span`, are cut to what is kept."""
    return Score(passed=False, label=label, reason=excerpt(reason), evidence=excerpt(span))


REFERENCE = Score(passed=True, label="reference")
"""Of the baseline where answers are compared: what the candidate is held to."""


class UnscoredReason(StrEnum):
    """Why a pair that was due has no score."""

    SHADOW = "shadow"
    UNSUPPORTED_SCHEMA = "unsupported_schema"
    UNSUPPORTED_GUIDE = "unsupported_guide"
    """A grammar or the like, by the request alone: no answer can have caused it."""
    TIME_LIMIT = "time_limit"
    BUG = "bug"
    MIXED_ARTIFACT = "mixed_artifact"
    LATE = "late"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscored:
    """A pair that was due and could not be judged; it is counted, never dropped."""

    reason: UnscoredReason
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotApplicable:
    """The evaluator has nothing to say about this pair."""

    why: str


ALONE = NotApplicable(why="it compares two answers with each other")
"""What an evaluator that compares says of one answer."""
BROKEN = NotApplicable(why="fault")
"""What an evaluator says of a generation fault that it does not hold against an arm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairScore:
    """Both arms of one pair, judged by one evaluator."""

    evaluator: str
    version: str
    baseline: Score
    candidate: Score

    @property
    def harm(self) -> bool:
        """The baseline passed and the candidate failed."""
        return self.baseline.passed and not self.candidate.passed

    @property
    def benefit(self) -> bool:
        """The baseline failed and the candidate passed."""
        return self.candidate.passed and not self.baseline.passed


class Evaluator(Protocol):
    """One file in this package, one line in `evaluators.ALL`, one test."""

    @property
    def name(self) -> str:
        """Lower case, digits and `_`, and nobody else's: tallies go by it."""

    @property
    def version(self) -> str:
        """A new version starts a new tally."""

    def applies(self, request: Request) -> bool:
        """Whether this request is judged at all; sees no answer."""

    def score(self, request: Request, answer: Answer) -> Score | Unscored | NotApplicable:
        """Judge one answer, blind to which arm gave it."""

    def score_fault(self, request: Request, fault: Fault) -> Score | NotApplicable:
        """Judge a generation fault: a failure of class `fault`, or nothing to judge."""


class Comparing(Evaluator, Protocol):
    """What judges a pair by comparing its answers, and says of one alone that it does not apply (ADR 21)."""

    def compare(self, request: Request, baseline: Answer, candidate: Answer) -> tuple[Score, Score]:
        """The scores of baseline and candidate. Told which is which, and nothing else of the tiers."""


def compares(evaluator: Evaluator) -> TypeGuard[Comparing]:
    """Whether it judges pairs and not answers."""
    return callable(getattr(evaluator, "compare", None))


class Detailing(Evaluator, Protocol):
    """What judges answers one by one, and has something to count of the two side by side besides."""

    def details(self, baseline: Answer, candidate: Answer) -> tuple[Detail, ...]:
        """Counted with the pair; no score rests on it."""


def details(evaluator: Evaluator) -> TypeGuard[Detailing]:
    """Whether it counts something of both answers."""
    return callable(getattr(evaluator, "details", None))


class Preparing(Evaluator, Protocol):
    """What reads a request once before it judges answers to it, such as its schemas."""

    def prepare(self, request: Request) -> Unscored | None:
        """Under a time limit of its own, so that the arm judged first does not pay for both."""


def prepares(evaluator: Evaluator) -> TypeGuard[Preparing]:
    """Whether it has something to read of the request alone."""
    return callable(getattr(evaluator, "prepare", None))


class TimeLimit(Exception):
    """The caller's time limit on one judgement ran out."""


Limit = Callable[[], AbstractContextManager[object]]
"""Arms the caller's time limit around one judgement; raises `TimeLimit` in it. Evaluators own no clock."""

Judged = PairScore | Unscored | NotApplicable


def score_pair(
    evaluator: Evaluator,
    request: Request,
    baseline: Outcome,
    candidate: Outcome,
    limit: Limit = nullcontext,
) -> Judged:
    """Judge both arms alike. An evaluator that raises becomes `Unscored(bug)`: ours to fix, not theirs."""
    try:
        if not evaluator.applies(request):
            return NotApplicable(why="request")
        return _score_arms(evaluator, request, baseline, candidate, limit)
    except Exception as error:
        return Unscored(reason=UnscoredReason.BUG, detail=f"{type(error).__name__}: {error}")


def _score_arms(
    evaluator: Evaluator, request: Request, baseline: Outcome, candidate: Outcome, limit: Limit
) -> Judged:
    for outcome in (baseline, candidate):
        if isinstance(outcome, Fault) and outcome.of_infrastructure:
            return Unscored(reason=UnscoredReason.SHADOW, detail=str(outcome))
    if isinstance(baseline, Fault) and baseline.kind is FaultKind.REJECTED:
        # The request was wrong, not an answer: the baseline would not serve it at all.
        return NotApplicable(why="rejected")
    if prepares(evaluator) and (unscored := _prepare(evaluator, request, limit)) is not None:
        return unscored
    if compares(evaluator) and isinstance(baseline, Answer) and isinstance(candidate, Answer):
        return _compare(evaluator, request, baseline, candidate, limit)
    scores: list[Score] = []
    slow = 0
    for outcome in (baseline, candidate):
        try:
            with limit():
                judged = (
                    evaluator.score_fault(request, outcome)
                    if isinstance(outcome, Fault)
                    else evaluator.score(request, outcome)
                )
        except TimeLimit:
            slow += 1
            judged = Score(
                passed=False, label="unjudgeable", reason="judging took longer than its time limit"
            )
        if not isinstance(judged, Score):
            return judged
        scores.append(judged)
    if slow == len(scores):
        # Both arms are slow: it is the request (its schema, say) that is expensive to judge.
        return Unscored(reason=UnscoredReason.TIME_LIMIT, detail="both answers ran into the time limit")
    if details(evaluator) and isinstance(baseline, Answer) and isinstance(candidate, Answer):
        scores[1] = replace(scores[1], details=evaluator.details(baseline, candidate))
    return PairScore(
        evaluator=evaluator.name, version=evaluator.version, baseline=scores[0], candidate=scores[1]
    )


def _prepare(evaluator: Preparing, request: Request, limit: Limit) -> Unscored | None:
    try:
        with limit():
            return evaluator.prepare(request)
    except TimeLimit:
        return Unscored(
            reason=UnscoredReason.TIME_LIMIT, detail="reading the request ran into the time limit"
        )


def _compare(
    evaluator: Comparing, request: Request, baseline: Answer, candidate: Answer, limit: Limit
) -> PairScore | Unscored:
    try:
        with limit():
            reference, compared = evaluator.compare(request, baseline, candidate)
    except TimeLimit:
        return Unscored(reason=UnscoredReason.TIME_LIMIT, detail="comparing ran into the time limit")
    return PairScore(
        evaluator=evaluator.name, version=evaluator.version, baseline=reference, candidate=compared
    )
