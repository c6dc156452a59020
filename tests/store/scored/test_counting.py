"""What units and conversations add to the counts."""

from __future__ import annotations

import dataclasses

import pytest

from service.store.scored.counting import Counts, Sums, drift_of, part_of, recorded


def counts(unit, counted=True):
    found = recorded([dataclasses.replace(unit, counted=counted)], taken=True)
    assert found.tallies.total() == found.tenants.total()
    return {(row.kind, row.reason, row.pairs, row.harm, row.benefit): n for row, n in found.tallies.items()}


@pytest.mark.parametrize(
    ("judged", "triple", "both_failed"),
    [
        ("pp", (1, 0, 0), 0),
        ("pf", (1, 1, 0), 0),
        ("fp", (1, 0, 1), 0),
        ("ff", (1, 0, 0), 1),
        (["pp", "pf", "pf", "fp", "ff"], (5, 2, 1), 1),
    ],
)
def test_a_counted_unit_is_one_conversation_with_its_triple(unit_of, judged, triple, both_failed):
    expected = {("unit", "", *triple): 1}
    if both_failed:
        expected["both_failed", "", 0, 0, 0] = both_failed
    assert counts(unit_of("c", judged)) == expected


def test_pairs_that_are_not_scored_leave_the_triple(unit_of):
    # three needles: one harm, one unscored, one over budget
    unit = unit_of("c", ["pf", "u", "o"])
    assert counts(unit) == {("unit", "", 1, 1, 0): 1, ("unscored", "shadow", 0, 0, 0): 1}


def test_a_unit_that_does_not_count_is_shown_and_its_failures_are_not(unit_of):
    unit = unit_of("c", ["pf", "ff", "u"])
    assert counts(unit, counted=False) == {
        ("not_counted", "", 0, 0, 0): 2,
        ("unscored", "shadow", 0, 0, 0): 1,
    }


def test_a_unit_with_nothing_scored_adds_no_conversation(unit_of):
    assert counts(unit_of("c", "n")) == {}
    assert counts(unit_of("c", "u")) == {("unscored", "shadow", 0, 0, 0): 1}


def test_a_unit_is_counted_in_each_of_its_strata_and_for_its_tenant(unit_of):
    unit = unit_of("c", ["pf", "ff"], stratum="s", marginals=("language=zh", "turns=1"), tenant="t")
    found = recorded([unit], taken=True)
    by_stratum = {(row.stratum, row.kind): n for row, n in found.strata.items()}
    assert by_stratum == {
        (stratum, kind): 1 for stratum in ("s", "language=zh", "turns=1") for kind in ("unit", "both_failed")
    }
    assert {(row.tenant, row.kind): n for row, n in found.tenants.items()} == {
        ("t", "unit"): 1,
        ("t", "both_failed"): 1,
    }


def test_a_capture_is_taken_up_once_however_many_units_it_has(unit_of):
    units = [unit_of("c", "pp", tier=tier, marginals=("turns=1",)) for tier in ("a", "b")]
    found = recorded(units, taken=True).takings
    assert {row.stratum: n for row, n in found.items()} == {"turns=1": 1, "tenant=t1": 1}
    assert not recorded(units, taken=False).takings


def test_a_conversation_is_in_a_stratum_with_its_pairs_there_and_once_in_all(unit_of):
    early = unit_of("c1", ["pp"], conversation="talk", marginals=("turns=1", "language=en"))
    late = unit_of("c2", ["pf", "ff", "fp"], conversation="talk", marginals=("turns=2-5", "language=en"))
    found = Counts()
    found.add_conversation([part_of(early), part_of(late)])
    triples = {row.stratum: (row.pairs, row.harm, row.benefit) for row in found.strata if row.kind == "unit"}
    assert triples["turns=1"] == (1, 0, 0)
    assert triples["turns=2-5"] == (3, 1, 1)
    assert triples["language=en"] == triples["short"] == (4, 1, 1)
    assert [row[7:10] for row in found.tallies if row.kind == "unit"] == [(4, 1, 1)]


def test_what_is_taken_off_again_leaves_nothing(unit_of):
    parts = [part_of(unit_of("c", ["pf", "ff"], marginals=("turns=1",)))]
    found = Counts()
    found.add_conversation(parts)
    found.add_conversation(parts, times=-1)
    for counter in (found.tallies, found.strata, found.tenants):
        assert set(counter.values()) == {0}
    assert set(found.sums.values()) == {Sums()}


def test_sums_are_those_of_the_rows_with_the_mean_differences_in_integers(unit_of):
    found = Counts()
    for number, judged in enumerate([["pf", "pp", "pp"], ["pf"], ["fp", "ff"], ["pp", "u"]]):
        unit = unit_of(f"c{number}", judged)
        found.add_unit(unit)
        found.add_conversation([part_of(unit)])
    found.add_unit(unit_of("c9", ["pp", "pp"], counted=False))
    (sums,) = found.sums.values()
    assert sums == Sums(
        units=4,
        pairs=7,
        harm=2,
        benefit=1,
        both_failed=1,
        not_counted=2,
        unscored=1,
        drift=drift_of(3, 1, 0) + drift_of(1, 1, 0) + drift_of(2, 0, 1),
    )
    assert sums.drift / 2**32 == pytest.approx(1 / 3 + 1 - 1 / 2, abs=1e-9)


def test_a_unit_without_pairs_differs_by_nothing():
    assert drift_of(0, 0, 0) == 0


def test_the_pair_ledger_gets_every_pair_twice_as_due_and_as_what_became_of_it(unit_of):
    rows = recorded([unit_of("c", ["pf", "pp", "u", "n", "o"])], taken=True).ledger
    assert {(row.outcome, row.reason): n for row, n in rows.items()} == {
        ("due", ""): 5,
        ("scored", ""): 2,
        ("unscored", "shadow"): 1,
        ("not_applicable", ""): 1,
        ("over_budget", ""): 1,
    }


def test_a_pair_is_in_its_own_stratum_alone_and_its_unit_in_all(unit_of):
    unit = unit_of("c", ["pf", "pp", "ff", "u"], marginals=("turns=1",))
    depths = ("depth=first-quarter", "depth=last-quarter", "depth=last-quarter", "depth=last-quarter")
    rows = tuple(
        dataclasses.replace(row, own_stratum=depth) for row, depth in zip(unit.rows, depths, strict=True)
    )
    unit = dataclasses.replace(unit, rows=rows)
    found = recorded([unit], taken=True)
    triples = {row.stratum: (row.pairs, row.harm, row.benefit) for row in found.strata if row.kind == "unit"}
    assert triples["depth=first-quarter"] == (1, 1, 0)
    assert triples["depth=last-quarter"] == (2, 0, 0)
    assert triples["turns=1"] == triples["short"] == (3, 1, 0)
    others = {(row.stratum, row.kind) for row in found.strata if row.stratum.startswith("depth")} - {
        (stratum, "unit") for stratum in triples
    }
    assert others == {("depth=last-quarter", "both_failed"), ("depth=last-quarter", "unscored")}
    assert not [row for row in found.takings if row.stratum.startswith("depth")]
    assert not [row for row in found.tenants if "depth" in row.tenant]


def test_what_waits_in_a_stratum_of_its_own_is_taken_off_when_it_counts(unit_of):
    unit = unit_of("c", ["pf", "pp"], counted=False, waits=True)
    rows = tuple(dataclasses.replace(row, own_stratum="depth=first-quarter") for row in unit.rows)
    unit = dataclasses.replace(unit, rows=rows)
    found = recorded([unit], taken=True)
    found.take_off_waiting(unit)
    found.add_conversation([part_of(unit)])
    left = {(row.stratum, row.kind): n for row, n in found.strata.items() if n}
    assert left == {("short", "unit"): 1, ("depth=first-quarter", "unit"): 1}


def test_a_stratum_of_its_own_has_a_dimension(unit_of):
    unit = unit_of("c", "pp")
    with pytest.raises(ValueError, match="dimension=bucket"):
        dataclasses.replace(unit, rows=(dataclasses.replace(unit.rows[0], own_stratum="deep"),))
