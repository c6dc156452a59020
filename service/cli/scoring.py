"""What `tiergate score` says of one answer, or of two to the same request, as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluators.exchange import Answer, Outcome, Request
    from evaluators.score import Evaluator


def told(outcome: Outcome) -> dict[str, Any]:
    """What came back."""
    from evaluators.exchange import Fault

    if isinstance(outcome, Fault):
        return {"fault": outcome.kind, "detail": outcome.detail}
    return {
        "finish_reason": outcome.finish_reason,
        "chars": len(outcome.text),
        "reasoning_chars": len(outcome.reasoning),
        "tool_calls": [call.name for call in outcome.tool_calls],
    }


def rows(evaluators: Sequence[Evaluator], request: Request, outcome: Outcome) -> list[dict[str, Any]]:
    """A judgement by each evaluator. One that raises is `unscored` as a bug, as in a worker."""
    found = []
    for evaluator in evaluators:
        head = {"evaluator": evaluator.name, "version": evaluator.version}
        try:
            body = _judged(evaluator, request, outcome)
        except Exception as error:
            body = _row("unscored", "bug", f"{type(error).__name__}: {error}")
        found.append(head | body)
    return found


def pair(
    evaluators: Sequence[Evaluator], request: Request, first: Outcome, second: Outcome
) -> dict[str, Any]:
    """Two outcomes as a worker judges them, the first as the baseline's, and how they differ."""
    from evaluators.beside import beside
    from evaluators.exchange import Fault
    from evaluators.score import PairScore, Unscored, score_pair

    scores: list[dict[str, Any]] = []
    for evaluator in evaluators:
        judged = score_pair(evaluator, request, first, second)
        row: dict[str, Any] = {"evaluator": evaluator.name}
        if isinstance(judged, PairScore):
            counts = "harm" if judged.harm else "benefit" if judged.benefit else "none"
            arms = {"first": judged.baseline, "second": judged.candidate}
            row |= {"counts_as": counts} | {
                arm: {"passed": score.passed, "label": score.label, "reason": score.reason}
                for arm, score in arms.items()
            }
        elif isinstance(judged, Unscored):
            row |= {"counts_as": "unscored", "why": f"{judged.reason}: {judged.detail}"}
        else:
            row |= {"counts_as": "not_applicable", "why": judged.why}
        scores.append(row)
    compared = None
    fields = None
    if not isinstance(first, Fault) and not isinstance(second, Fault):
        compared = asdict(beside(first, second))
        fields = _fields(request, first, second)
    return {"outcome": told(second), "scores": scores, "differences": compared, "fields": fields}


def _fields(request: Request, first: Answer, second: Answer) -> dict[str, Any] | None:
    """Every pointer at which the two differ, None where they hold no JSON and no calls to compare."""
    from evaluators.differences import TooManyFields
    from evaluators.field_agreement import FieldAgreement, compare
    from evaluators.strict_json import NotJson, TooMuch

    if not FieldAgreement().applies(request):
        return None
    try:
        found = compare(request, first, second)
    except (NotJson, TooMuch, TooManyFields):
        return None
    return {**asdict(found), "share": found.share}


def _judged(evaluator: Evaluator, request: Request, outcome: Outcome) -> dict[str, Any]:
    from evaluators.exchange import Fault
    from evaluators.score import NotApplicable, Unscored

    if not evaluator.applies(request):
        return _row("not_applicable", "", _why_not(evaluator, request))
    judged = (
        evaluator.score_fault(request, outcome)
        if isinstance(outcome, Fault)
        else evaluator.score(request, outcome)
    )
    if isinstance(judged, NotApplicable):
        return _row("not_applicable", "", judged.why)
    if isinstance(judged, Unscored):
        return _row("unscored", judged.reason, judged.detail)
    state = "observed" if judged.neutral else "passed" if judged.passed else "failed"
    return _row(state, judged.label, judged.reason, judged.evidence)


def _row(state: str, label: str, reason: str, evidence: str = "") -> dict[str, Any]:
    return {"state": state, "label": label, "reason": reason, "evidence": evidence}


def _why_not(evaluator: Evaluator, request: Request) -> str:
    if request.needle is not None:
        return "a recall probe is judged for recall alone"
    return {
        "structured_output": "the request asks for no JSON, guides no decoding and offers no tool",
        "tool_use": "the request does not leave it to the model to call a tool",
        "field_agreement": "it compares two answers, to a request for JSON or with tools (give OTHER.json)",
        "side_by_side": "it compares two answers (give OTHER.json)",
        "long_context_recall": "the answer is not one to a recall probe (--needle-key, --needle-value)",
    }.get(evaluator.name, "it does not judge this request")
