"""What a page says: the run's own numbers, the same in both languages, and no number for nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.report.blocks import Drawing, Page, Section, Table
from service.report.document import Report, Run
from service.report.page import page
from service.report.words import Language
from tests.report.pages import numbers, texts
from tests.report.sample import BEGAN, sample

REPORT = sample()
EMPTY = Report(run=Run(id="r1", model="qwen3-32b", state="running", began_at=BEGAN), made_at=BEGAN + 60)


def section(made: Page, anchor: str) -> Section:
    return next(each for each in made.sections if each.anchor == anchor)


def table(made: Page, anchor: str, number: int = 0) -> Table:
    return [each for each in section(made, anchor).blocks if isinstance(each, Table)][number]


def charts(made: Page) -> dict[str, Drawing]:
    return {
        block.chart.name: block
        for part in made.sections
        for block in part.blocks
        if isinstance(block, Drawing)
    }


def test_both_languages_tell_the_same_numbers() -> None:
    english, chinese = (texts(page(REPORT, language)) for language in Language)
    assert numbers(english) == numbers(chinese)
    assert sum(numbers(english).values()) > 500


def test_every_part_is_there_in_order() -> None:
    assert [each.anchor for each in page(REPORT).sections] == [
        "glance",
        "changed",
        "quality",
        "latency",
        "rates",
        "costs",
        "capacity",
        "engines",
        "ledger",
        "provenance",
    ]


def test_every_chart_of_the_contract_is_there_with_words_and_numbers() -> None:
    found = charts(page(REPORT))
    assert set(found) == {
        "forest-1-w8a8",
        "forest-2-w4a16-fp8kv",
        "latency-ttft",
        "latency-tpot",
        "latency-e2e",
        "goodput",
        "concurrency",
        "waterfall-1-w8a8",
        "waterfall-2-w4a16-fp8kv",
        "engine-kv-usage",
        "engine-running",
        "ledger",
    }
    for drawing in found.values():
        assert len(drawing.chart.text) > 20
        assert drawing.chart.rows
        assert drawing.chart.text in drawing.chart.wide


def test_the_glance_has_the_figures_that_decide_with_their_limits() -> None:
    glance = table(page(REPORT), "glance")
    assert glance.head[1:] == ("bf16 (baseline)", "w8a8", "w4a16-fp8kv")
    rows = {row.cells[0]: row.cells[1:] for row in glance.rows}
    assert rows["verdict"] == ("–", "accept", "reject")
    assert rows["criterion closest to its margin"][1] == "+0.17 [−0.54, +0.88] pp"
    assert rows["SLO pass rate"][1] == "99.62 [99.22, 99.92] %"
    assert rows["goodput"][0] == "1,450 [1,421, 1,479] tok/s"
    assert rows["cost per 1M tok"][0] == "CNY 11.49 [11.26, 11.72]"
    assert rows["net benefit per request"][0] == "–"


def test_formulas_stand_with_the_runs_own_numbers_and_come_out() -> None:
    """price x 1e6 / (goodput x 3600), as the page writes it."""
    from service.report.blocks import Formula

    formulas = [each for each in section(page(REPORT), "costs").blocks if isinstance(each, Formula)]
    unit, net = formulas
    assert unit.worked[0] == "bf16: 60 × 10⁶ / (1,450.0 × 3600) ≈ CNY 11.49 / 1M tok"
    assert pytest.approx(11.49, abs=0.005) == 60 * 1e6 / (1450 * 3600)
    assert net.worked[1].startswith(
        "w4a16-fp8kv: 0.002414 − 0.0005747 − (4 × 0.002414 + 0) × 0.041 − 0 ≈ CNY 0.001443"
    )
    assert pytest.approx(0.001443, abs=2e-6) == 0.002414 - 0.0005747 - 4 * 0.002414 * 0.041
    for anchor in ("quality", "latency", "rates", "ledger"):
        assert any(isinstance(each, Formula) for each in section(page(REPORT), anchor).blocks), anchor


def test_the_waterfall_adds_up_to_the_net_benefit() -> None:
    rows = dict(charts(page(REPORT))["waterfall-1-w8a8"].chart.rows)  # type: ignore[arg-type]
    assert rows["baseline's request"] == "CNY 0.002414"
    assert rows["the tier's request"] == "−CNY 0.001598"
    assert rows["saved before failures"] == "CNY 0.0008156"
    assert rows["failures"] == "−CNY 0.000004828"
    assert rows["net benefit per request"] == "CNY 0.0008108 [0.0007142, 0.0009073]"
    assert pytest.approx(0.0008108, abs=1e-6) == 0.002414 - 0.001598 - 0.000004828


def test_the_ledger_tells_losses_by_reason() -> None:
    rows = dict(charts(page(REPORT))["ledger"].chart.rows)  # type: ignore[arg-type]
    assert rows["seen"] == "1,204,310"
    assert rows["dropped: buffer full"] == "402"
    assert rows["lost"] == "41"


def test_what_engines_do_not_tell_is_said_and_never_drawn_as_nothing() -> None:
    drawn = charts(page(REPORT))["engine-kv-usage"].chart
    assert drawn.rows[0][1] == "38", "two looks of forty told nothing"
    assert drawn.wide.count("<polyline") == 2 * 3, "each line is broken once"
    assert "bf16 does not tell: prefix cache hits." in texts(page(REPORT))


def test_a_sweep_that_found_no_best_rate_says_so() -> None:
    told = texts(page(REPORT))
    assert "w4a16-fp8kv: best rate not reached; nothing is extrapolated." in told
    assert "w8a8: best at 10.5 req/s." in told
    assert "w8a8: up to 128 requests at once." not in told


def test_what_was_not_measured_is_said_and_is_no_number() -> None:
    for language in Language:
        made = page(EMPTY, language)
        assert [each.anchor for each in made.sections] == [
            "glance",
            "changed",
            "latency",
            "costs",
            "provenance",
        ]
        assert not charts(made)
        assert all(text for part in made.sections for text in [part.title])
    english = texts(page(EMPTY))
    assert "The run has no SLO part yet: latencies count only under equal load." in english
    assert "This is the first finished run of this model: there is nothing to compare with." in english


def test_a_run_that_ended_early_says_why_in_its_own_words() -> None:
    ended = replace(
        REPORT,
        run=replace(REPORT.run, state="aborted", why="the clients' SLO was missed", remarks=("no cost",)),
    )
    told = texts(page(ended))
    assert "The run ended before its end: aborted. In its own words:" in told
    assert "the clients' SLO was missed" in told
    assert "no cost" in told


def test_a_replay_names_the_manifest_that_it_repeats() -> None:
    again = replace(
        REPORT, run=replace(REPORT.run, replay_of="0123456789abcdef" * 4, differences=("engine: was 1",))
    )
    told = texts(page(again))
    assert any("0123456789ab" in text for text in told)
    assert "engine: was 1" in told


def test_tiers_whose_names_differ_in_signs_alone_have_charts_of_their_own() -> None:
    tiers = tuple(
        replace(each, name=name) for each, name in zip(REPORT.tiers, ("基线", "a b", "a-b"), strict=True)
    )
    found = charts(page(replace(REPORT, tiers=tiers)))
    assert {"forest-1-a-b", "forest-2-a-b"} <= set(found)


def test_advice_about_capacity_stands_with_its_reasons_and_decides_nothing() -> None:
    made = page(REPORT)
    start, patterns = table(made, "capacity"), table(made, "capacity", 1)
    rows = {row.cells[0]: row.cells[1] for row in start.rows}
    assert rows["max-num-seqs to begin with"] == "16"
    assert rows["cost turns up, at once"] == "–", "not reached is no number"
    assert rows["prefix cache, over a day"] == "gains in proportion"
    assert rows["prompt tokens reused"] == "41.00 %"
    assert [row.cells[1] for row in patterns.rows] == ["not there", "found", "not known"]
    told = texts(made)
    assert "bf16 (baseline): max-num-seqs: 16 at once keeps P95 of TPOT at most 64 ms; 32 does not" in told
    assert "bf16 (baseline): not judged, since nothing is known: memory." in told
    assert "bf16 (baseline): empty batch: up to 256 may run at once, and 6 did" in told
    assert any("4.0 requests wait on average. May help: more backends" in text for text in told)


def test_without_advice_there_is_no_part_of_it() -> None:
    bare = replace(REPORT, tiers=tuple(replace(each, capacity=None) for each in REPORT.tiers))
    assert "capacity" not in [each.anchor for each in page(bare).sections]
