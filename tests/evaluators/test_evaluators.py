"""The list of evaluators."""

from __future__ import annotations

from collections.abc import Callable

from evaluators import ALL, ASKED_FOR
from evaluators.exchange import Answer, Needle, Request
from evaluators.score import NotApplicable, score_pair


def test_evaluators_have_their_names_and_versions_in_order() -> None:
    assert [(evaluator.name, evaluator.version) for evaluator in ALL] == [
        ("structured_output", "3"),
        ("long_context_recall", "3"),
        ("refusal", "3"),
        ("tool_use", "2"),
        ("field_agreement", "1"),
        ("answer_health", "2"),
        ("passive_recall", "3"),
    ]
    assert [(evaluator.name, evaluator.version) for evaluator in ASKED_FOR] == [("side_by_side", "1")]


def test_a_probe_is_judged_for_recall_alone_and_a_request_for_all_else(
    make_request: Callable[..., Request],
) -> None:
    probe = make_request(needle=Needle(key="a", value="b1c2", question="?", depth=0.5), expects_json=True)
    answer = Answer(text="b1c2")
    judged = {e.name for e in ALL if not isinstance(score_pair(e, probe, answer, answer), NotApplicable)}
    assert judged == {"long_context_recall"}
    request = make_request(expects_json=True)
    judged = {e.name for e in ALL if not isinstance(score_pair(e, request, answer, answer), NotApplicable)}
    assert judged == {"structured_output", "refusal", "field_agreement", "answer_health"}
