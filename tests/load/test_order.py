from __future__ import annotations

from collections import Counter

import pytest

from service.load.order import interleave


def test_every_arm_has_one_block_in_every_round_and_eight_in_all() -> None:
    rounds = interleave(["bf16", "w8a8", "w4a16"], seed=3)
    assert len(rounds) == 8
    assert [each.number for each in rounds] == list(range(8))
    assert all(sorted(each.arms) == ["bf16", "w4a16", "w8a8"] for each in rounds)
    assert len({each.seed for each in rounds}) == 8


def test_no_arm_has_a_place_of_its_own() -> None:
    places = Counter(each.arms[0] for each in interleave(["a", "b"], blocks=400, seed=1))
    assert 150 < places["a"] < 250


def test_a_seed_gives_one_order() -> None:
    assert interleave(["a", "b"], seed=1) == interleave(["a", "b"], seed=1)
    assert interleave(["a", "b"], seed=1) != interleave(["a", "b"], seed=2)


@pytest.mark.parametrize(("arms", "blocks"), [([], 8), (["a", "a"], 8), (["a"], 0)])
def test_what_cannot_be_ordered_is_refused(arms: list[str], blocks: int) -> None:
    with pytest.raises(ValueError, match="arm"):
        interleave(arms, blocks=blocks, seed=1)
