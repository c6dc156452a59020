"""How the evidence is spread over the strata of real traffic, stratum by stratum: what the gate judges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from service.decision.evidence import Coverage

WORTH_COVERING = 0.02
"""Strata with at least this share of real traffic must be in the evidence."""
LEAST_COVERAGE = 0.5
"""... with at least this part of their share of traffic: chance alone misses a full share half the time."""


class Covered(NamedTuple):
    """One stratum; shares are of its dimension, in which every request has one stratum."""

    stratum: str
    traffic: int
    """Requests."""
    evidence: int
    """Requests that count."""
    traffic_share: float
    evidence_share: float

    @property
    def worth_covering(self) -> bool:
        return self.traffic_share >= WORTH_COVERING

    @property
    def wanted(self) -> float:
        """The least share of the evidence that covers it."""
        return LEAST_COVERAGE * self.traffic_share

    @property
    def gap(self) -> bool:
        """It is worth covering, and is not covered."""
        return self.worth_covering and self.evidence_share < self.wanted

    @property
    def dimension(self) -> str:
        """What it divides the traffic by: `language` of `language=zh`; empty for the crossed ones."""
        return dimension_of(self.stratum)


def covering(coverage: Coverage) -> tuple[Covered, ...]:
    """Every stratum of the traffic, in its order; strata of the evidence alone are not told."""
    return tuple(_covered(coverage, 0.0))


def gaps(coverage: Coverage) -> tuple[Covered, ...]:
    """Those of them that are gaps. Most of hundreds of strata are rare, and a verdict makes none of these."""
    return tuple(each for each in _covered(coverage, WORTH_COVERING) if each.gap)


def _covered(coverage: Coverage, least_share: float) -> Iterator[Covered]:
    seen, counted = _by_dimension(coverage.traffic), _by_dimension(coverage.evidence)
    for stratum, requests in coverage.traffic.items():
        dimension = dimension_of(stratum)
        share = _share(requests, seen[dimension])
        if share >= least_share:
            evidence = coverage.evidence.get(stratum, 0)
            yield Covered(stratum, requests, evidence, share, _share(evidence, counted[dimension]))


@lru_cache(maxsize=4096)
def dimension_of(stratum: str) -> str:
    """What a stratum divides the traffic by; empty for the crossed ones."""
    return stratum.rpartition("=")[0]


def _by_dimension(counts: Mapping[str, int]) -> defaultdict[str, int]:
    """Requests of each dimension: every request has one stratum in each, so shares are of these sums."""
    sums: defaultdict[str, int] = defaultdict(int)
    for stratum, requests in counts.items():
        sums[dimension_of(stratum)] += requests
    return sums


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
