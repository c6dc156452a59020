"""`tiergate differences` as a person reads it."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from service.client.details import details_view


def shown(*names: dict[str, Any], evaluator: str = "field_agreement") -> list[str]:
    document = {"model": "m", "tier": "w8a8", "epoch": "e" * 64, "evaluator": evaluator, "version": "1"}
    console = Console(width=120, no_color=True)
    with console.capture() as capture:
        console.print(details_view({**document, "names": list(names)}))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_fields_are_shares_beside_the_control() -> None:
    text = shown(
        {
            "name": "/total",
            "candidate": {"agrees": 95, "value": 4, "type": 1},
            "control": {"agrees": 49, "value": 1},
        },
        {"name": "/note", "candidate": {"value": 10}, "control": {}},
    )
    assert text[0] == "m / w8a8: field_agreement 1, epoch eeeeeeeeeeee"
    assert text[1].startswith("field")
    assert text[1].endswith("control: differ")
    assert text[3].split() == ["/total", "100", "4.0", "%", "1.0", "%", "0.0", "%", "2.0", "%", "of", "50"]
    assert text[4].split() == ["/note", "10", "100.0", "%", "0.0", "%", "0.0", "%", "none", "yet"]
    assert text[-1].startswith("shown, and decides nothing")


def test_ratios_stand_in_their_order() -> None:
    text = shown(
        {
            "name": "length",
            "candidate": {"over 4": 1, "under 1/4": 1, "4/5 to 5/4": 2},
            "control": {"4/5 to 5/4": 4},
        },
        {"name": "finish reason", "candidate": {"agrees": 4}, "control": {"agrees": 3, "differs": 1}},
        evaluator="answer_health",
    )
    assert [line.split("  ")[0] for line in text[3:8]] == [
        "length",
        "length",
        "length",
        "finish reason",
        "finish reason",
    ]
    assert [word for line in text[3:6] for word in ("under 1/4", "4/5 to 5/4", "over 4") if word in line] == [
        "under 1/4",
        "4/5 to 5/4",
        "over 4",
    ]
    assert "2 (50.0 %)" in text[4]
    assert "4 (100.0 %)" in text[4]


def test_before_anything_was_compared_the_next_step_is_told() -> None:
    assert "tiergate evidence" in " ".join(shown())


def test_failed_classes_are_counted_by_arm() -> None:
    text = shown(
        {"name": "language_switch", "candidate": {"candidate": 7, "baseline": 1}, "control": {"baseline": 1}},
        evaluator="answer_health",
    )
    assert text[1].startswith("failed as")
    assert text[1].endswith("control: again")
    assert text[3].split() == ["language_switch", "1", "7", "1", "0"]
