"""Pairs to judge on a terminal: complete, bounded, and hostile text is inert."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console, RenderableType

from service.client.adjudicating import MOST_SHOWN, adjudication_view, item_view, labelled_view

NO_SIDE: dict[str, Any] = {"text": "", "refusal": "", "calls": [], "finish_reason": "stop", "fault": ""}


def item(a: str = "yes", b: str = "no", **changes: Any) -> dict[str, Any]:
    return {
        "item": "0f" * 16,
        "model": "m",
        "evaluator": "refusal",
        "rubric": {"question": "Does it?", "passes": "it does.", "fails": "it does not."},
        "request": [{"role": "user", "text": "Please."}],
        "asked": "",
        "a": {**NO_SIDE, "text": a},
        "b": {**NO_SIDE, "text": b},
        "expires_at": "2026-01-01T00:00:00Z",
        **changes,
    }


def shown(view: RenderableType, *, color: bool = False) -> str:
    told = io.StringIO()
    Console(file=told, width=100, force_terminal=color, color_system="standard" if color else None).print(
        view, soft_wrap=True
    )
    return told.getvalue()


def test_an_item_is_rubric_request_and_both_sides() -> None:
    text = shown(item_view(item(asked="JSON")))
    for part in (
        "Does it?",
        "passes: it does.",
        "user\n| Please.",
        "asked for\n| JSON",
        "=== a ===\n| yes",
        "=== b ===\n| no",
    ):
        assert part in text, part


HOSTILE = {
    "escape codes": "\x1b[2J\x1b[31m\x1b]0;title\x07",
    "a rewritten line": "fine\rEVIL",
    "direction overrides": "\u202e\u2066abc\u2069",
    "markup": "[bold red]x[/] [link=http://evil]y[/link]",
    "a control character of eight bits": "\x9b31m",
    "no character at all": "\0\x08\x7f",
    "line separators": "\u2028\u2029\x85",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_answers_are_shown_and_do_nothing(name: str) -> None:
    text = shown(item_view(item(a=HOSTILE[name], b="ok", request=[{"role": "user", "text": HOSTILE[name]}])))
    left = [each for each in text if not each.isprintable() and each != "\n"]
    assert left == []
    if name == "markup":
        assert HOSTILE[name] in text


def test_an_answer_cannot_pass_for_a_heading_or_the_other_side() -> None:
    text = shown(item_view(item(a="first\n=== b ===\nforged")))
    assert [line for line in text.splitlines() if line == "=== b ==="] == ["=== b ==="]
    assert "| === b ===" in text


def test_a_megabyte_is_bounded_and_says_how_much_more_there_is() -> None:
    text = shown(item_view(item(a="\x1b[31mx" * 200_000)))
    assert len(text) < 10 * MOST_SHOWN
    assert f"[{6 * 200_000 - MOST_SHOWN:,} more characters are in the export]" in text
    many = [{"role": "user", "text": str(n)} for n in range(100)]
    assert "[88 earlier turns are in the export]" in shown(item_view(item(request=many)))


def test_what_is_not_text_is_told() -> None:
    sides = {
        "a": {**NO_SIDE, "refusal": "No.", "finish_reason": "content_filter"},
        "b": {**NO_SIDE, "calls": [{"name": "f", "arguments": "{}"}]},
    }
    text = shown(item_view({**item(), **sides}))
    for part in ("(refusal field) No.", "(finish_reason content_filter)", "(calls) f {}"):
        assert part in text
    gone = shown(item_view({**item(), "a": {**NO_SIDE, "fault": "cut_off"}, "b": NO_SIDE}))
    assert "(no answer: cut_off)" in gone
    assert "(nothing)" in gone


ERRORS = {
    "pairs": 12,
    "baseline_sensitivity": None,
    "baseline_specificity": 1.0,
    "candidate_sensitivity": 0.5,
    "candidate_specificity": 0.99,
}
QUEUE: dict[str, Any] = {
    "model": "m",
    "tier": "w8a8",
    "evaluator": "refusal",
    "queued": 130,
    "kept": 120,
    "discordant": 30,
    "labelled": 110,
    "open": 2,
    "disputed": ["ab" * 16],
    "labellers": [{"labeller": "an\x1bna", "labelled": 112, "skipped": 1}],
    "agreement": [{"first": "anna", "second": "ben", "items": 20, "agreed": 18, "kappa": 0.81}],
    "evaluator_errors": ERRORS,
    "correction": {
        "labels": 110,
        "estimate": 0.004,
        "raw_estimate": 0.009,
        "interval": {"lower": -0.002, "upper": 0.01},
        "suffices": True,
        "missing": "",
    },
    "judge": {
        "labelled": 50,
        "skipped": 9,
        "agreement": {"first": "judge:j", "second": "people", "items": 40, "agreed": 36, "kappa": None},
        "errors": ERRORS,
        "difference": 0.003,
        "lower": -0.01,
        "upper": 0.02,
    },
}


def test_the_state_of_a_queue_names_people_agreement_errors_and_the_correction() -> None:
    text = shown(adjudication_view({"evaluators": ["refusal"], "queues": [QUEUE]}))
    for part in (
        "m / w8a8, refusal",
        "130 queued (30 in which the arms differ), 110 labelled, 2 left open, 18 to do; 120 with their text",
        "an\\x1bna",
        "anna and ben: 18 of 20 the same, kappa 0.81",
        "they disagree on: abab",
        "candidate: finds 50.0%, clears 99.0% (12 pairs)",
        "baseline: finds unknown, clears 100.0%",
        "raw +0.90 pp, by 110 labels +0.40 pp [-0.20, +1.00]: stands in the finding",
        "50 labelled and 9 skipped by a judge; in no finding",
        "judge:j and people: 36 of 40 the same, no kappa",
        "by the judge, corrected for its errors: +0.30 pp [-1.00, +2.00]",
    ):
        assert part in text, part
    lacking = {
        **QUEUE,
        "judge": None,
        "correction": {**QUEUE["correction"], "suffices": False, "missing": "labels (9) < 100"},
    }
    assert "not in the finding yet, labels (9) < 100" in shown(
        adjudication_view({"evaluators": ["refusal"], "queues": [lacking]})
    )


def test_nothing_queued_says_the_next_step() -> None:
    assert "name evaluators in adjudication.evaluators" in shown(
        adjudication_view({"evaluators": [], "queues": []})
    )
    assert "Send traffic through the proxy" in shown(
        adjudication_view({"evaluators": ["refusal"], "queues": []})
    )


def test_conflicts_are_named() -> None:
    told = {
        "recorded": 3,
        "replaced": 0,
        "unchanged": 1,
        "conflicts": [{"item": "ab", "labeller": "ben", "had": "a", "given": "both"}],
        "unknown": ["cd"],
        "seen_openly": ["ef"],
    }
    text = shown(labelled_view(told))
    assert "3 recorded, 0 replaced, 1 known" in text
    assert "conflict: ben said a of ab before, now both; kept as it was (--replace takes the new one)" in text
    assert "unknown: cd is not in this queue" in text
    assert "left out: ef was shown to this token with the names of its sides" in text
