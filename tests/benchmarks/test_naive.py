"""The quick look at the naive tests is the look after every pair that it stands for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.decision import tango
from tests.benchmarks.crossings import Stream
from tests.benchmarks.naive import FIRST_LOOK, counts_at, ever_passes, least_looks, tango_z, wald_z

PAIRS = st.lists(st.sampled_from([0.0] * 20 + [-1.0, 1.0]), min_size=1, max_size=400).map(
    lambda pairs: np.array([0.0] * FIRST_LOOK + pairs)
)


@settings(deadline=None)
@given(PAIRS, st.sampled_from([0.01, 0.05, 0.2]), st.sampled_from([-3.0, -1.645, -0.5]))
def test_no_look_between_two_differing_pairs_has_less(
    pairs: np.ndarray, margin: float, critical: float
) -> None:
    stream = Stream.of(pairs)
    every = np.arange(FIRST_LOOK, pairs.size + 1)
    counts = (*counts_at(stream, every), every.astype(float))
    for z, passes in zip((tango_z, wald_z), ever_passes(stream, margin, critical), strict=True):
        found = z(*counts, margin)
        assert passes == bool((found <= critical).any())
        quick = z(*counts_at(stream, least_looks(stream)), least_looks(stream).astype(float), margin)
        assert quick.min() == pytest.approx(found.min())


@given(PAIRS, st.sampled_from([0.01, 0.2]))
def test_z_is_that_of_the_decision(pairs: np.ndarray, margin: float) -> None:
    harm, benefit = int((pairs > 0).sum()), int((pairs < 0).sum())
    stream, looks = Stream.of(pairs), np.array([pairs.size])
    assert [each[0] for each in counts_at(stream, looks)] == [harm, benefit]
    found = tango_z(np.array([harm]), np.array([benefit]), looks.astype(float), margin)
    assert found[0] == pytest.approx(tango.z(harm, benefit, pairs.size, margin))


def test_wald_is_sure_of_itself_without_a_discordant_pair() -> None:
    none, n = np.zeros(1), np.array([100.0])
    assert wald_z(none, none, n, 0.01)[0] == -math.inf
    assert wald_z(np.array([3.0]), np.array([1.0]), n, 0.01)[0] == pytest.approx(1 / math.sqrt(4 - 4 / 100))
