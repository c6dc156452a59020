"""The document: what is written is read again, and everything else is refused with a place."""

from __future__ import annotations

import dataclasses
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.decision.policy import Gate, Role
from service.decision.verdict import Decision, GateState
from service.report.codec import DocumentError, decode, encode
from service.report.document import (
    SCHEMA,
    Finding,
    Ledger,
    Report,
    Run,
    SingleLook,
    TierReport,
    VerdictFigures,
    from_json,
    to_json,
)
from service.report.measured import EngineSeries, Figure, Money
from tests.report.sample import sample

NUMBERS = st.floats(-1e9, 1e9)
TEXT = st.text(max_size=20)
COUNTS = st.integers(0, 10**12)


@st.composite
def figures(draw: st.DrawFn) -> Figure:
    value = draw(NUMBERS)
    lower = draw(st.none() | st.floats(0, 1e6).map(lambda less: value - less))
    upper = draw(st.none() | st.floats(0, 1e6).map(lambda more: value + more))
    return Figure(
        value=value,
        lower=lower,
        upper=upper,
        level=draw(st.none() | st.floats(0.01, 0.99)),
        n=draw(st.none() | COUNTS),
    )


FINDINGS = st.builds(
    Finding,
    criterion=TEXT,
    role=st.sampled_from(Role),
    decision=st.sampled_from(Decision),
    reason=TEXT,
    n=COUNTS,
    conversations=COUNTS,
    harm=COUNTS,
    benefit=COUNTS,
    estimate=st.none() | NUMBERS,
    lower=NUMBERS,
    upper=NUMBERS,
    level=NUMBERS,
    margin=NUMBERS,
    more_pairs=st.none() | COUNTS,
    single_look=st.none()
    | st.builds(
        SingleLook,
        difference=figures(),
        p_value=NUMBERS,
        exact_p=st.none() | NUMBERS,
        design_effect=NUMBERS,
    ),
)
VERDICTS = st.builds(
    VerdictFigures,
    decision=st.sampled_from(Decision),
    reasons=st.lists(TEXT, max_size=3).map(tuple),
    findings=st.lists(FINDINGS, max_size=2).map(tuple),
    gates=st.dictionaries(st.sampled_from(Gate), st.sampled_from(GateState), max_size=3),
)
TIERS = st.builds(
    TierReport,
    name=TEXT,
    verdict=st.none() | VERDICTS,
    money=st.none() | st.builds(Money, price_per_hour=st.none() | NUMBERS, net_benefit=st.none() | figures()),
    engine=st.lists(
        st.builds(
            EngineSeries,
            metric=TEXT,
            points=st.lists(st.tuples(NUMBERS, st.none() | NUMBERS), max_size=4).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
REPORTS = st.builds(
    Report,
    run=st.builds(
        Run, id=TEXT, model=TEXT, state=TEXT, began_at=NUMBERS, ended_at=st.none() | NUMBERS, blocks=COUNTS
    ),
    made_at=NUMBERS,
    tiers=st.lists(TIERS, max_size=3, unique_by=lambda tier: tier.name).map(tuple),
    ledger=st.none() | st.builds(Ledger, seen=COUNTS, skipped=st.dictionaries(TEXT, COUNTS, max_size=3)),
    manifest=st.dictionaries(TEXT, JSON, max_size=3),
    conclusion=st.dictionaries(TEXT, TEXT, max_size=2),
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(REPORTS)
def test_what_is_written_is_read_again(report: Report) -> None:
    assert from_json(to_json(report)) == report


def test_a_whole_report_is_read_again() -> None:
    report = sample()
    text = to_json(report)
    assert from_json(text) == report
    assert from_json(text.encode()) == report
    told = json.loads(text)
    assert told["schema"] == SCHEMA
    assert told["tiers"][1]["verdict"]["gates"]["money"] == "passed"
    assert told["tiers"][2]["verdict"]["findings"][0]["harm"] == 84
    assert told["conclusion"]["en"].startswith("qwen3-32b")


def changed(*path: str | int, to: Any) -> str:
    """The whole report with one place changed."""
    told = json.loads(to_json(sample()))
    place = told
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return json.dumps(told)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[]", "the document: expected an object, found a list"),
        ("{}", "run: missing"),
        ("{" * 100_000, "not JSON|nested too deeply"),
        ("[" * 100_000, "not JSON|nested too deeply"),
        (b"\xff", "not UTF-8"),
        ('{"a": 1, "a": 2}', "'a' stands twice in one object"),
        ('{"run": NaN}', "NaN is not JSON"),
        (changed("strange", to=1), "the document: unknown field 'strange'"),
        (
            changed("schema", to="tiergate.report/9"),
            "of schema tiergate.report/9, this version reads tiergate.report/2, tiergate.report/1",
        ),
        (changed("made_at", to="now"), "made_at: expected a number, found 'now'"),
        (changed("made_at", to=True), "made_at: expected a number, found true"),
        (changed("made_at", to=10**400), "made_at: expected a number that a double holds"),
        (
            changed("tiers", 1, "verdict", "decision", to="yes"),
            r"tiers\[1\].verdict.decision: expected one of accept, ",
        ),
        (changed("tiers", 1, "verdict", "gates", to={"luck": "passed"}), "expected one of quality, control"),
        (
            changed("tiers", 0, "load", "offered", to=1.5),
            r"tiers\[0\].load.offered: expected a whole number, found 1.5",
        ),
        (
            changed("tiers", 0, "money", "unit_cost", to={"value": 1, "lower": 2}),
            r"unit_cost: limits must enclose",
        ),
        (changed("tiers", 0, "engine", 0, "points", to=[[1]]), r"points\[0\]: expected 2 entries, found 1"),
        (changed("tiers", 0, "engine", 0, "points", to={}), "points: expected a list, found an object"),
        (changed("tiers", 0, "name", to="w8a8"), "a tier stands twice"),
        (changed("tiers", 1, "baseline", to=True), "one baseline"),
        (changed("ledger", "balanced", to=1), "ledger.balanced: expected true or false, found 1"),
        (changed("run", "id", to=None), "run.id: expected a text, found null"),
    ],
)
def test_anything_else_is_refused_with_its_place(text: str | bytes, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        from_json(text)


@given(JSON)
def test_reading_is_total(told: Any) -> None:
    with suppress(DocumentError):
        decode(Report, told)


def test_what_has_no_place_in_json_is_refused() -> None:
    for told in (float("inf"), float("nan"), {1, 2}):
        with pytest.raises(DocumentError, match="no place in JSON"):
            encode(told)


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0])
def test_a_level_is_between_nothing_and_certainty(level: float) -> None:
    with pytest.raises(ValueError, match="a level is in"):
        Figure(value=1, level=level)


def test_a_figure_in_another_unit_keeps_what_it_rests_on() -> None:
    figure = Figure(value=2, lower=1, upper=4, level=0.9, n=8)
    assert figure.times(1000) == Figure(value=2000, lower=1000, upper=4000, level=0.9, n=8)
    assert Figure(value=2).times(3) == Figure(value=6)


def test_nothing_in_it_can_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        sample().currency = "EUR"  # type: ignore[misc]


def test_a_report_that_an_earlier_version_kept_is_read() -> None:
    told = json.loads(to_json(sample()))
    told["schema"] = "tiergate.report/1"
    for tier in told["tiers"]:
        del tier["capacity"]
    assert from_json(json.dumps(told)).tiers[0].capacity is None
