"""The figures of a pre-screen."""

from __future__ import annotations

import math
import random

import pytest

from service.prescreen.surprise import Forced, surprise


def pair(base: float, candidate: float, tokens: int = 10, broken: int = 0) -> tuple[Forced, Forced]:
    return Forced(nats=base, tokens=tokens), Forced(nats=candidate, tokens=tokens, broken=broken)


def test_perplexities_and_their_ratio_are_per_token_of_the_baseline() -> None:
    found = surprise([pair(10, 12), pair(30, 30, tokens=30)])
    assert found is not None
    assert (found.texts, found.tokens, found.worst) == (2, 40, 0)
    assert found.baseline == pytest.approx(math.exp(1.0))
    assert found.candidate == pytest.approx(math.exp(42 / 40))
    assert found.ratio == pytest.approx(math.exp(2 / 40))
    assert found.lower is None


def test_the_interval_is_that_of_a_mean_where_texts_are_equally_long() -> None:
    rises = [0.5, 1.5, 1.0, 2.0]
    found = surprise([pair(10, 10 + rise, tokens=1) for rise in rises])
    assert found is not None
    # mean 1.25, standard deviation .6455, t(3, .975) = 3.182446
    reach = 3.182446 * 0.6454972 / 2
    assert found.lower is not None
    assert found.upper is not None
    assert math.log(found.lower) == pytest.approx(1.25 - reach, rel=1e-5)
    assert math.log(found.upper) == pytest.approx(1.25 + reach, rel=1e-5)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    draw = random.Random(5)
    held = 0
    for _ in range(400):
        texts = []
        for _ in range(20):
            tokens = draw.randint(20, 200)
            shift = draw.gauss(0.02, 0.02) * tokens
            texts.append(pair(2.0 * tokens, 2.0 * tokens + shift, tokens=tokens))
        found = surprise(texts)
        assert found is not None
        assert found.lower is not None
        assert found.upper is not None
        held += found.lower <= math.exp(0.02) <= found.upper
    assert 0.90 <= held / 400 <= 0.99


def test_a_text_with_a_number_that_is_none_says_nothing_of_perplexity() -> None:
    found = surprise([pair(10, 10), pair(10, 500, broken=1)])
    assert found is not None
    assert (found.texts, found.ratio) == (1, 1.0)
    assert surprise([pair(10, 10, broken=2)]) is None
    assert surprise([]) is None


def test_surprise_without_bound_is_a_number_all_the_same() -> None:
    found = surprise([pair(10, 1e9)] * 3)
    assert found is not None
    assert math.isfinite(found.ratio)
