"""`tiergate money`, and the page that shows what it prints."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from service.cli import money, offline

PAGE = Path(__file__).parents[2] / "docs" / "costs.md"
EXAMPLES = [block.split("```")[0] for block in PAGE.read_text(encoding="utf-8").split("```\n$ ")[1:]]


def ran(*arguments: str, columns: int = 100) -> Result:
    app = typer.Typer()
    offline.register(app)  # a second command, so that `money` is one of several
    money.register(app)
    return CliRunner().invoke(app, ["money", *arguments], env={"COLUMNS": str(columns), "TERM": "dumb"})


def document(*arguments: str) -> Any:
    outcome = ran(*arguments, "--json")
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.splitlines()[0][:40])
def test_the_page_shows_what_it_prints(example: str) -> None:
    command, *lines = example.splitlines()
    outcome = ran(*shlex.split(command)[2:])
    assert outcome.exit_code == 0, outcome.output
    assert [line.rstrip() for line in outcome.stdout.splitlines()] == lines


def test_the_page_has_the_worked_example() -> None:
    assert len(EXAMPLES) == 2
    for times in ("1.67x", "1.56x", "1.47x"):
        assert times in EXAMPLES[0]


def test_the_worked_example_is_what_it_does_by_default() -> None:
    found = document()
    assert found == document(
        *("--price", "60", "--throughput", "2.1x", "--failures", "0.8%", "--candidate-failures", "4.9%")
    )
    assert found["currency"] == "CNY"
    assert found["times_cheaper"] == pytest.approx(1.56, abs=0.005)
    assert found["failure"]["weight"] == 4
    assert found["baseline"]["unit_cost"] == pytest.approx(16.6667, abs=1e-3)
    assert found["net_benefit"]["per_million_tokens"] > 0


def test_a_chain_is_given_step_by_step() -> None:
    found = document("--step", "retry:100%:1x", "--step", "person:2%:15", "--currency", "EUR")
    assert found["failure"]["weight"] == 1
    assert found["failure"]["price"] == pytest.approx(0.3)
    assert [step["reached"] for step in found["failure"]["steps"]] == [1, 0.02]
    assert found["net_benefit"]["per_request"] < 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--failures", "1%", "--candidate-failures", "0.5%"), "saves"),
        (("--throughput", "0.9x"), "it is no cheaper to run"),
        (("--failure-costs", "0x"), "a failure costs nothing"),
        (("--price", "0"), "in CNY"),
        (("--candidate-price", "0", "--candidate-failures", "0%"), "free"),
    ],
)
def test_every_deal_has_a_conclusion(arguments: tuple[str, ...], told: str) -> None:
    outcome = ran(*arguments)
    assert outcome.exit_code == 0, outcome.output
    assert told in outcome.stdout
    assert "nan" not in outcome.stdout
    document(*arguments)


@pytest.mark.parametrize("columns", [80, 140])
def test_no_number_is_cut_off(columns: int) -> None:
    text = ran(columns=columns).stdout
    assert "…" not in text
    assert "0.002381" in text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--step", "retry"), "--step takes NAME:SHARE:COST"),
        (("--step", "retry:100%:cheap"), "--step takes NAME:SHARE:COST"),
        (("--step", "retry:200%:1x"), "share"),
        (("--step", "retry:100%:1x", "--failure-costs", "3x"), "not both"),
        (("--tokens-per-second", "0"), "above 0"),
        (("--throughput", "fast"), "multiple"),
        (("--failures", "120%"), "share"),
        (("--operations", "-1"), "operations must be at least 0"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], complaint: str) -> None:
    outcome = ran(*arguments, columns=200)
    assert outcome.exit_code == 2
    assert complaint in " ".join(outcome.output.split())
