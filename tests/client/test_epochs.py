from __future__ import annotations

from typing import Any

from rich.console import Console

from service.client.epochs import epochs_view


def shown(document: dict[str, Any]) -> str:
    console = Console(width=200, no_color=True)
    with console.capture() as capture:
        console.print(epochs_view(document))
    return capture.get()


def epoch(name: str, version: str, margin: float, **more: Any) -> dict[str, Any]:
    return {
        "epoch": name,
        "current": False,
        "attempt": None,
        "first_seen": "2026-01-01T12:00:00Z",
        "facts": {"engines": {"tier": {"engine": "vllm", "version": version}}, "margin": margin},
        **more,
    }


def test_each_epoch_shows_what_began_it_and_the_first_what_the_engines_were() -> None:
    known = [
        epoch("c" * 64, "0.33.0", 0.02, current=True),
        epoch("b" * 64, "0.33.0", 0.01, attempt=2),
        epoch("a" * 64, "0.32.0", 0.01, attempt=1),
    ]
    text = shown({"model": "m", "tier": "w8a8", "epoch": "c" * 64, "unsettled": None, "epochs": known})
    assert text.splitlines() == [
        "m / w8a8: epoch cccccccccccc",
        "cccccccccccc  since 2026-01-01T12:00:00Z, current",
        "  margin: 0.01 -> 0.02",
        "bbbbbbbbbbbb  since 2026-01-01T12:00:00Z, attempt 2",
        "  engines.tier.version: 0.32.0 -> 0.33.0",
        "aaaaaaaaaaaa  since 2026-01-01T12:00:00Z, attempt 1",
        "  engines.tier.engine: vllm",
        "  engines.tier.version: 0.32.0",
    ]


def test_a_tier_that_is_unsettled_or_unseen_says_so() -> None:
    text = shown(
        {"model": "m", "tier": "t", "epoch": "e", "unsettled": "its backends disagree", "epochs": []}
    )
    assert "unsettled, pairs count nowhere: its backends disagree" in text
    assert "has not looked" in text
