"""How far two labellers agree beyond chance: Cohen's kappa.

With p_o the share of items on which both say the same and p_e the share expected if each kept their own
frequencies of answers and gave them at random (Cohen 1960, Educ Psychol Meas 20:37-46):

    kappa = (p_o - p_e) / (1 - p_e)

1 is full agreement, 0 what chance gives. Where both only ever give one and the same answer p_e is 1 and kappa
says nothing: it is absent, not perfect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Two labellers over the items that both labelled."""

    items: int
    agreed: int
    kappa: float | None
    """None without items, or where chance alone would agree always."""

    @property
    def share(self) -> float | None:
        """Of the items on which both say the same; None without items."""
        return self.agreed / self.items if self.items else None


def agreement(said: Iterable[tuple[str, str]]) -> Agreement:
    """From what the first and the second said of each item."""
    table = Counter(said)
    items = sum(table.values())
    agreed = sum(count for (first, second), count in table.items() if first == second)
    if not items:
        return Agreement(items=0, agreed=0, kappa=None)
    firsts: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for (first, second), count in table.items():
        firsts[first] += count
        seconds[second] += count
    # In whole numbers, so that p_e = 1 is met exactly.
    by_chance = sum(firsts[answer] * seconds[answer] for answer in firsts)
    beyond = items**2 - by_chance
    return Agreement(
        items=items, agreed=agreed, kappa=(agreed * items - by_chance) / beyond if beyond else None
    )
