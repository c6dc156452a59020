"""Where two JSON documents differ, leaf by leaf."""

from __future__ import annotations

from typing import Any

import pytest

from service.leaves import apart, leaves, short_text_of


def test_leaves_are_told_by_path_and_entries_of_lists_by_their_names() -> None:
    document = {
        "seed": 7,
        "tiers": [{"tier": "bf16", "price": None}, {"name": "w8a8", "tier": 3, "on": True}],
        "strata": [{"stratum": "short"}, "x"],
        "empty": [{}, []],
    }
    assert dict(leaves(document)) == {
        "seed": "7",
        "tiers[bf16].tier": "bf16",
        "tiers[bf16].price": "null",
        "tiers[w8a8].name": "w8a8",
        "tiers[w8a8].tier": "3",
        "tiers[w8a8].on": "true",
        "strata[0].stratum": "short",
        "strata[1]": "x",
    }


@pytest.mark.parametrize(
    ("was", "now", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"c": 3, "a": 2}, [("c", None, "3"), ("a", "1", "2"), ("b", "2", None)]),
        ({"a": ""}, {}, [("a", "", None)]),
        (
            {"tiers": [{"tier": "x", "p": 1}]},
            {"tiers": [{"tier": "w"}, {"tier": "x", "p": 2}]},
            [("tiers[w].tier", None, "w"), ("tiers[x].p", "1", "2")],
        ),
    ],
)
def test_what_differs_is_told_in_the_order_of_the_second_and_what_is_gone_last(
    was: dict[str, Any], now: dict[str, Any], found: list[tuple[str, str | None, str | None]]
) -> None:
    assert apart(was, now) == found


def test_a_long_leaf_can_be_shown_short() -> None:
    assert short_text_of("x" * 80) == "x" * 80
    assert short_text_of("x" * 81) == "x" * 80 + "…"
    assert apart({"a": "x" * 99}, {"a": "x" * 98}, shown=short_text_of) == []
