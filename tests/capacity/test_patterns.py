"""Three patterns that cost more when switched on, each found, absent, or not told."""

from __future__ import annotations

from typing import Any

import pytest

from service.capacity.patterns import Pattern, State, Traffic, sightings


def states(**told: Any) -> dict[Pattern, State]:
    return {each.pattern: each.state for each in sightings(Traffic(**told))}


def test_what_is_not_told_is_never_ruled_out() -> None:
    assert set(states().values()) == {State.NOT_TOLD}


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ({"requests_per_second": 0.1, "prefixes": 4000}, State.FOUND),
        ({"requests_per_second": 0.1, "prefixes": 4000, "prefix_rate": 0.1}, State.FOUND),
        ({"requests_per_second": 0.1, "prefixes": 4000, "prefix_rate": 0.3}, State.ABSENT),
        ({"requests_per_second": 0.1, "prefixes": 360}, State.ABSENT),
        ({"requests_per_second": 0.1, "prefixes": 0}, State.ABSENT),
        ({"requests_per_second": 0.1}, State.NOT_TOLD),
    ],
)
def test_few_requests_of_many_prefixes_leave_a_cache_idle(told: dict[str, Any], state: State) -> None:
    assert states(**told)[Pattern.IDLE_CACHE] is state


@pytest.mark.parametrize(
    ("limit", "ran", "state"),
    [
        (256, 6, State.FOUND),
        (24, 6, State.FOUND),
        (23, 6, State.ABSENT),
        (4, 0, State.FOUND),
        (3, 0, State.ABSENT),
    ],
)
def test_a_limit_far_above_what_runs_keeps_memory_for_nobody(limit: int, ran: float, state: State) -> None:
    assert states(sequences_limit=limit, most_running=ran)[Pattern.EMPTY_BATCH] is state


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ({"bits": 4, "sensitive_share": 0.5}, State.FOUND),
        ({"bits": 4, "sensitive_share": 0.5, "accepted": False}, State.FOUND),
        ({"bits": 4, "sensitive_share": 0.5, "accepted": True}, State.ABSENT),
        ({"bits": 4, "sensitive_share": 0.2}, State.FOUND),
        ({"bits": 4, "sensitive_share": 0.199}, State.ABSENT),
        ({"bits": 5, "sensitive_share": 0.5}, State.ABSENT),
        ({"bits": 8, "sensitive_share": 0.9}, State.ABSENT),
        ({"bits": 8}, State.ABSENT),
        ({"bits": 4}, State.NOT_TOLD),
    ],
)
def test_few_bits_where_answers_must_be_exact(told: dict[str, Any], state: State) -> None:
    assert states(**told)[Pattern.BLUNT_WEIGHTS] is state


def test_a_pattern_tells_its_figures_and_what_to_do() -> None:
    found = sightings(Traffic(requests_per_second=0.1, prefixes=4000, sequences_limit=256, most_running=6))
    assert found[0].reason.startswith("each of 4,000 prefixes is asked for 0.09 times an hour: switch")
    assert found[1].reason.startswith("up to 256 may run at once, and 6 did at most: lower max-num-seqs")


@pytest.mark.parametrize(
    "wrong",
    [{"prefix_rate": 1.1}, {"requests_per_second": float("nan")}, {"bits": 0}, {"sequences_limit": 0}],
)
def test_impossible_numbers_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"share|finite|at least"):
        Traffic(**wrong)
