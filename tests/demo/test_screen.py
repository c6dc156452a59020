"""What is printed: every tier's table, the policies side by side, the addresses."""

from __future__ import annotations

import io
import shutil
from dataclasses import replace

from rich.console import Console

from service.client.readings import read_verdict
from service.demo.plan import FULL, QUICK
from service.demo.screen import own_command, print_verdicts, production_note, progress, slow_note
from service.demo.walk import Position, Walked
from tests.demo.scripted import Scripted

VERDICTS = tuple(read_verdict(Scripted().verdict(tier.name)) for tier in QUICK.ladder[1:])


def position(seconds: float, ending: str = "") -> Position:
    return Position(sent=9, answered=8, judged=7, verdicts=VERDICTS, seconds=seconds, ending=ending)


def test_without_a_terminal_a_line_comes_now_and_then() -> None:
    console = Console(file=io.StringIO(), width=160)
    with progress(console, QUICK) as show:
        for second in range(0, 50, 2):
            show(position(second))
        show(position(50, "enough"))
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert said.count("requests answered") == 4
    assert "8 of at most 75 requests answered, 7 judged; enough" in said
    assert "q8_0   undecided refusal 0 pairs +0 -0" in said


def test_on_a_terminal_it_is_drawn_in_place() -> None:
    console = Console(file=io.StringIO(), width=160, force_terminal=True)
    with progress(console, QUICK) as show:
        show(position(1))
        show(position(2, "enough"))
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "replayed and judged" in said
    assert "enough; finishing what is under way" in said


def test_every_tier_has_its_verdict_and_the_ledger_its_line() -> None:
    console = Console(file=io.StringIO(), width=160)
    print_verdicts(
        console,
        Walked(last=position(99, "enough"), ledger=Scripted().ledger(), failures=()),
        QUICK,
    )
    said = console.file.getvalue()  # type: ignore[attr-defined]
    for tier in ("q8_0", "q2_k"):
        assert f"smollm2 / {tier}: undecided" in said
    assert said.count("slo not asked") == 2
    assert "traffic ended after 99 s because enough" in said
    assert "9 of 75 requests in 225 s are too few pairs to decide q8_0, q2_k" in " ".join(said.split())


def test_a_run_that_was_cut_off_by_the_clock_says_how_to_have_a_longer_one() -> None:
    last = position(230, "225 s are over")
    assert "`tiergate demo`, without --quick, takes 15 minutes" in slow_note(last, QUICK).replace(
        own_command(), "tiergate"
    )
    assert "without --quick" not in slow_note(last, FULL)
    assert slow_note(replace(last, sent=QUICK.load.total), QUICK) == ""


def test_the_note_computes_what_both_policies_need() -> None:
    # statistics A1, A5: margin .2 at alpha .05; margin .01 at the first of many attempts, .05 * 6 / pi^2
    note = production_note(VERDICTS)
    assert "20 percentage points here, so that 22 pairs" in note
    assert "1 in production, which takes 538" in note


def test_the_command_to_try_can_be_typed_as_it_stands() -> None:
    assert shutil.which(own_command()) is not None
