from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decision.covering import LEAST_COVERAGE, WORTH_COVERING, covering, gaps
from service.decision.evidence import Coverage

STRATA = ("short", "32k", "128k", "language=zh", "language=en", "turns=1")


def test_shares_are_of_the_stratums_own_dimension() -> None:
    short, long, chinese = covering(
        Coverage(
            traffic={"short": 900, "32k": 100, "language=zh": 50},
            evidence={"short": 90, "32k": 10, "language=zh": 7},
        )
    )
    assert (short.traffic_share, short.evidence_share, short.dimension) == (0.9, 0.9, "")
    assert (long.traffic, long.evidence) == (100, 10)
    assert (chinese.traffic_share, chinese.evidence_share, chinese.dimension) == (1.0, 1.0, "language")


@pytest.mark.parametrize(
    ("evidence", "gap"), [(5, False), (4, True), (0, True)], ids=["half its share", "less", "nothing"]
)
def test_a_gap_is_less_than_half_the_share_of_a_stratum_worth_covering(evidence: int, gap: bool) -> None:
    traffic = {"short": 900, "32k": 100}
    found = covering(Coverage(traffic=traffic, evidence={"short": 100 - evidence, "32k": evidence}))
    assert [each.gap for each in found] == [False, gap]


def test_a_rare_stratum_is_no_gap_however_little_it_has() -> None:
    _, rare = covering(Coverage(traffic={"common": 981, "rare": 19}))
    assert rare.traffic_share < WORTH_COVERING
    assert (rare.worth_covering, rare.gap) == (False, False)


@pytest.mark.parametrize("times", [1, 3, 7, 49, 1001, 10**9 + 7])
def test_exactly_two_per_cent_are_worth_covering_and_exactly_half_the_share_covers(times: int) -> None:
    """No rounding moves either edge."""
    traffic = {"common": 49 * times, "edge": times}
    _, edge = covering(Coverage(traffic=traffic, evidence={"common": 99 * times, "edge": times}))
    assert (edge.worth_covering, edge.gap) == (True, False)
    _, less = covering(Coverage(traffic=traffic, evidence={"common": 99 * times + 1, "edge": times}))
    assert (less.worth_covering, less.gap) == (True, True)
    _, rare = covering(Coverage(traffic={"common": 49 * times + 1, "edge": times}))
    assert (rare.worth_covering, rare.gap) == (False, False)


def test_evidence_of_strata_that_no_traffic_has_covers_nothing() -> None:
    """Such as those of a proxy of another version: they are requests all the same, and take from others."""
    (known,) = covering(Coverage(traffic={"a": 100}, evidence={"b": 100, "c=1": 5}))
    assert (known.evidence, known.gap) == (0, True)
    (known,) = covering(Coverage(traffic={"a": 100}, evidence={"a": 40, "b": 60}))
    assert (known.evidence_share, known.gap) == (0.4, True)


def test_a_single_tenant_is_covered_by_itself_and_by_nobody_else() -> None:
    (only,) = covering(Coverage(traffic={"tenant=a": 7}, evidence={"tenant=a": 1}))
    assert (only.traffic_share, only.evidence_share, only.gap) == (1.0, 1.0, False)
    (only,) = covering(Coverage(traffic={"tenant=a": 7}, evidence={"tenant=b": 1}))
    assert only.gap


def test_without_evidence_every_stratum_worth_covering_is_a_gap() -> None:
    found = covering(Coverage(traffic={"a": 3, "b": 1, "c": 0}))
    assert [(each.evidence_share, each.gap) for each in found] == [(0.0, True), (0.0, True), (0.0, False)]
    assert [each.wanted for each in found] == [LEAST_COVERAGE * 0.75, LEAST_COVERAGE * 0.25, 0.0]


def test_traffic_that_was_never_seen_has_no_strata() -> None:
    assert covering(Coverage(evidence={"short": 3})) == ()


@given(
    traffic=st.dictionaries(st.sampled_from(STRATA), st.integers(0, 2000)),
    evidence=st.dictionaries(st.sampled_from(STRATA), st.integers(0, 2000)),
)
def test_gaps_are_those_of_every_stratum(traffic: dict[str, int], evidence: dict[str, int]) -> None:
    coverage = Coverage(traffic=traffic, evidence=evidence)
    assert gaps(coverage) == tuple(each for each in covering(coverage) if each.gap)
