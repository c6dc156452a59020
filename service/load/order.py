"""Which arm comes when: in rounds, each arm once in every round, in an order drawn for that round.

Whatever drifts over the hours of a run, such as the room's temperature, meets every arm alike, and no arm
always follows the same other. The blocks of one round share a seed and so their arrivals and requests: they
pair.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

LEAST_BLOCKS = 8
"""Of an arm, for the gates of SLO and money."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One block of every arm."""

    number: int
    """From 0."""
    seed: int
    """Of every block in it."""
    arms: tuple[str, ...]
    """In the order in which they run."""


def interleave(arms: Sequence[str], *, blocks: int = LEAST_BLOCKS, seed: int) -> tuple[Round, ...]:
    """So many rounds of all arms; ValueError for arms named twice, none, or no block."""
    if not arms or len(set(arms)) != len(arms):
        raise ValueError(f"arms must be some, each once, got {list(arms)}")
    if blocks < 1:
        raise ValueError(f"an arm needs at least 1 block, got {blocks}")
    chance = random.Random(f"{seed}:order")
    return tuple(
        Round(
            number=number,
            seed=chance.getrandbits(31),
            arms=tuple(chance.sample(list(arms), len(arms))),
        )
        for number in range(blocks)
    )
