"""Agreement beyond chance."""

from __future__ import annotations

import pytest

from service.decision.agreement import agreement


def said(table: dict[tuple[str, str], int]) -> list[tuple[str, str]]:
    return [pair for pair, count in table.items() for _ in range(count)]


def test_kappa_is_cohens_on_a_table_worked_by_hand() -> None:
    # p_o = .7, p_e = (25 * 30 + 25 * 20)/50^2 = .5
    found = agreement(said({("a", "a"): 20, ("a", "b"): 5, ("b", "a"): 10, ("b", "b"): 15}))
    assert (found.items, found.agreed, found.share) == (50, 35, 0.7)
    assert found.kappa == pytest.approx(0.4, abs=1e-15)


def test_chance_is_zero_and_contradiction_is_below() -> None:
    assert agreement(said(dict.fromkeys([("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")], 5))).kappa == 0
    assert agreement([("a", "b"), ("b", "a")]).kappa == -1
    assert agreement([("a", "a"), ("b", "b")]).kappa == 1


def test_one_answer_throughout_says_nothing_and_neither_do_no_items() -> None:
    assert agreement([("both", "both")] * 9).kappa is None
    assert agreement([]) == agreement(iter(()))
    assert agreement([]).share is None
