"""`tiergate stats` and `tiergate plan`: what a person reads, what a pipeline parses, what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from service.cli import offline

runner = CliRunner()


def ran(*arguments: str) -> Result:
    app = typer.Typer()
    offline.register(app)
    return runner.invoke(app, list(arguments), env={"COLUMNS": "140", "TERM": "dumb"})


def document(*arguments: str) -> Any:
    outcome = ran(*arguments, "--json")
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


TABLE = ("stats", "--n", "1000", "--harm", "12", "--benefit", "10", "--margin", "0.01")


def test_stats_prints_json_with_stable_keys() -> None:
    found = document(*TABLE)
    assert set(found) == {
        "n",
        "harm",
        "benefit",
        "margin",
        "alpha",
        "estimate",
        "decision",
        "reason",
        "warn",
        "more_pairs",
        "log_e",
        "log_thresholds",
        "confidence_sequence",
        "tango",
        "exact",
        "mcnemar",
    }
    assert found["tango"]["z"] == pytest.approx(-1.599441943705265)
    assert found["tango"]["p"] == pytest.approx(0.05486, abs=1e-5)
    assert found["exact"]["p"] == pytest.approx(0.05578, abs=1e-5)
    assert set(found["log_e"]) == {"noninferiority", "harm", "warn"}
    assert set(found["confidence_sequence"]) == {"lower", "upper", "level", "method"}
    assert (found["decision"], found["estimate"], found["more_pairs"] > 0) == ("undecided", 0.002, True)


@pytest.mark.parametrize(
    ("counts", "decision"),
    [(("481", "0", "0"), "accept"), (("480", "0", "0"), "undecided"), (("1000", "45", "4"), "reject")],
)
def test_stats_decides_by_the_e_values(counts: tuple[str, str, str], decision: str) -> None:
    n, harm, benefit = counts
    assert document("stats", "--n", n, "--harm", harm, "--benefit", benefit)["decision"] == decision


def test_stats_without_pairs_is_undecided_and_gives_no_number() -> None:
    found = document("stats", "--n", "0", "--harm", "0", "--benefit", "0")
    assert (found["decision"], found["estimate"], found["tango"]["z"]) == ("undecided", None, None)
    assert found["confidence_sequence"]["lower"] == -1
    text = ran("stats", "--n", "0", "--harm", "0", "--benefit", "0")
    assert text.exit_code == 0
    assert "none without pairs" in text.stdout


def test_stats_explains_itself_to_a_person() -> None:
    outcome = ran(*TABLE)
    assert outcome.exit_code == 0
    for part in (
        "12 harms, 10 benefits",
        "+0.2 pp",
        "accepts from 20",
        "rejects from 20",
        "[-1.265 pp, +1.709 pp]",
        "single look",
        "-1.5994, 0.05486",
        "undecided: not yet shown within the margin of 0.01: e-value 1.99 < 20",
        "About 1,402 more pairs",
    ):
        assert part in outcome.stdout, part
    assert "more pairs" not in ran("stats", "--n", "481", "--harm", "0", "--benefit", "0").stdout


def test_stats_says_when_the_exact_p_is_not_enumerated() -> None:
    many = ("stats", "--n", "10000", "--harm", "80", "--benefit", "80")
    assert "not enumerated" in ran(*many).stdout
    assert document(*many)["exact"]["p"] is None


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--n", "10", "--harm", "6", "--benefit", "6"), "cannot exceed n (10)"),
        (("--n", "10", "--harm", "-1", "--benefit", "0"), "negative"),
        (("--n", "10", "--harm", "1", "--benefit", "0", "--margin", "0"), "margin must be in (0, 1)"),
        (("--n", "10", "--harm", "1", "--benefit", "0", "--margin", "1"), "margin must be in (0, 1)"),
        (
            ("--n", "10", "--harm", "1", "--benefit", "0", "--margin", "nan"),
            "from 0pp to 100pp, such as 1pp or 0.01, got nan",
        ),
        (("--n", "10", "--harm", "1", "--benefit", "0", "--alpha", "0.7"), "alpha must be in"),
        (("--n", "10", "--harm", "x", "--benefit", "0"), "--harm"),
        (("--n", "10", "--harm", "1"), "Missing option"),
    ],
)
def test_stats_refuses_bad_input_with_one_clear_line(arguments: tuple[str, ...], complaint: str) -> None:
    outcome = ran("stats", *arguments)
    assert outcome.exit_code == 2
    assert complaint in outcome.stderr
    assert "Traceback" not in outcome.output


def test_plan_prints_json_with_stable_keys() -> None:
    found = document("plan", "--criteria", "3", "--requests-per-day", "200000", "--sample", "0.05")
    assert (
        set(found["pairs"])
        == set(found["days"])
        == {
            "zero_discordance",
            "fixed",
            "e_process_mean",
            "e_process_median",
            "e_process_quantile",
            "max",
        }
    )
    assert found["pairs_per_day"] == 10_000
    assert found["pairs"]["zero_discordance"] == 481
    assert found["pairs"]["fixed"] == 2620
    assert found["days"]["fixed"] == pytest.approx(0.262)
    assert found["method"] == {"e_process": "simulated", "epochs": 2000, "seed": 1}


def test_plan_without_traffic_prints_no_days() -> None:
    assert set(document("plan", "--margin", "0.2")["days"].values()) == {None}
    assert "days" not in ran("plan", "--margin", "0.2").stdout


def test_plan_explains_itself_to_a_person() -> None:
    outcome = ran("plan", "--criteria", "3", "--requests-per-day", "4000", "--sample", "0.05")
    assert outcome.exit_code == 0
    for part in (
        "margin +1 pp, discordance 2.00%, true difference 0 pp, alpha 0.05, 3 criteria",
        "200 pairs a day",
        "pairs per criterion",
        "481",
        "2.4",
        "2,620",
        "13",
        "simulated",
        "seed 1",
        "--attempt 1",
    ):
        assert part in outcome.stdout, part
    first = ran("plan", "--attempt", "1")
    assert "538" in first.stdout
    assert "--attempt 1" not in first.stdout


def test_plan_says_when_the_e_process_will_not_get_there() -> None:
    hopeless = ("plan", "--margin", "0.0001", "--discordance", "1")
    assert "over 30 fixed samples" in ran(*hopeless, "--requests-per-day", "10").stdout
    assert document(*hopeless)["pairs"]["e_process_quantile"] is None


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--difference", "0.01"), "below the margin"),
        (("--difference", "0.005", "--discordance", "0.001"), "needs a discordance"),
        (("--power", "1"), "power must be in (0, 1)"),
        (("--margin", "2"), "write 2pp if that is meant"),
        (("--margin", "0pp"), "margin must be in (0, 1)"),
        (("--margin", "one"), "expected percentage points from 0pp to 100pp, such as 1pp or 0.01"),
        (("--difference", "-3pp"), "needs a discordance"),
        (("--alpha", "5 percent"), "write a number with one of %"),
        (("--requests-per-day", "many"), "expected a count, such as 300, 500k, 20M"),
        (("--sample", "5"), "write 5% if that is meant"),
        (("--sample", "0%"), "sample must be in (0, 1]"),
        (("--requests-per-day", "0"), "requests per day"),
        (("--attempt", "0"), "count from 1"),
        (("--design-effect", "0.5"), "design effect"),
    ],
)
def test_plan_refuses_bad_input_with_one_clear_line(arguments: tuple[str, ...], complaint: str) -> None:
    outcome = ran("plan", *arguments)
    assert outcome.exit_code == 2
    assert complaint in outcome.stderr


@pytest.mark.parametrize("command", ["stats", "plan"])
def test_help_teaches_by_example(command: str) -> None:
    outcome = ran(command, "--help")
    assert outcome.exit_code == 0
    assert outcome.stdout.count(f"tiergate {command} --") >= 3


def test_quantities_are_written_as_in_the_configuration_or_as_plain_numbers() -> None:
    plain = ("--margin", "0.01", "--discordance", "0.02", "--difference", "-0.003", "--alpha", "5e-2")
    written = ("--margin", "1pp", "--discordance", "2%", "--difference", "-0.3pp", "--alpha", "5%")
    traffic = (
        ("--requests-per-day", "200000", "--sample", "0.05"),
        ("--requests-per-day", "200k", "--sample", "5%"),
    )
    first, second = (
        document("plan", *each, *more) for each, more in zip((plain, written), traffic, strict=True)
    )
    assert first == second
    counts = ("stats", "--n", "1000", "--harm", "12", "--benefit", "10")
    assert document(*counts, "--margin", "1pp", "--alpha", "5%") == document(*counts)
