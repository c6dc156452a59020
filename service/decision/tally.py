"""Counts that are enough to decide: a histogram of conversations by their triple.

A conversation with n pairs, b harms and c benefits enters only through (n, b, c) (statistics A2), so the
histogram of triples is sufficient, adds up in any order, and stays small. With one pair per conversation it
is the 2x2 table of McNemar.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Triple(NamedTuple):
    """One conversation: its pairs, its harms (candidate failed, baseline passed), its benefits."""

    pairs: int
    harm: int
    benefit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The paired evidence of one evaluator on one tier. `Tally + Tally` is the evidence of both."""

    units: Mapping[Triple, int] = field(default_factory=dict)
    """How many conversations had each triple."""
    both_failed: int = 0
    """Pairs that failed in both arms; they tell whether the criterion measures anything."""
    unscored: Mapping[str, int] = field(default_factory=dict)
    """Pairs that were due and could not be scored, by reason."""
    not_counted: int = 0
    """Scored pairs shown but not counted: later requests of a conversation (`units: first_sampled`)."""
    _sums: tuple[int, int, int, int] = field(init=False, repr=False, compare=False)
    """Conversations, pairs, harms, benefits: asked for so often that they are added up once."""

    def __post_init__(self) -> None:
        conversations = pairs = harms = benefits = 0
        for triple, count in self.units.items():
            n, harm, benefit = triple
            if count < 0 or n < 1 or harm < 0 or benefit < 0:
                raise ValueError(f"not a conversation: {triple} x {count}")
            if harm + benefit > n:
                raise ValueError(f"more discordant pairs than pairs: {triple}")
            conversations += count
            pairs += n * count
            harms += harm * count
            benefits += benefit * count
        object.__setattr__(self, "_sums", (conversations, pairs, harms, benefits))
        if self.both_failed < 0 or self.not_counted < 0 or any(n < 0 for n in self.unscored.values()):
            raise ValueError("counts cannot be negative")
        if self.both_failed > self.n - self.harm - self.benefit:
            raise ValueError(f"more pairs failed in both arms ({self.both_failed}) than are concordant")

    def __hash__(self) -> int:
        """By the sums: tallies that are equal have equal ones, and few others do."""
        return hash((self._sums, self.both_failed, self.not_counted))

    @classmethod
    def of_pairs(cls, *, n: int, harm: int, benefit: int) -> Tally:
        """Independent pairs: every conversation has one."""
        counts = {Triple(1, 1, 0): harm, Triple(1, 0, 1): benefit, Triple(1, 0, 0): n - harm - benefit}
        return cls(units={triple: count for triple, count in counts.items() if count})

    def add(self, *, pairs: int = 1, harm: int = 0, benefit: int = 0, both_failed: int = 0) -> Tally:
        """This tally and one more conversation."""
        return self + Tally(units={Triple(pairs, harm, benefit): 1}, both_failed=both_failed)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            units=Counter(self.units) + Counter(other.units),
            both_failed=self.both_failed + other.both_failed,
            unscored=Counter(self.unscored) + Counter(other.unscored),
            not_counted=self.not_counted + other.not_counted,
        )

    @property
    def conversations(self) -> int:
        """Units of evidence, each with at least one pair that counts."""
        return self._sums[0]

    @property
    def n(self) -> int:
        """Pairs that count."""
        return self._sums[1]

    @property
    def harm(self) -> int:
        """Pairs of which only the candidate failed."""
        return self._sums[2]

    @property
    def benefit(self) -> int:
        """Pairs of which only the baseline failed."""
        return self._sums[3]

    @property
    def baseline_failures(self) -> int:
        return self.both_failed + self.benefit

    @property
    def candidate_failures(self) -> int:
        return self.both_failed + self.harm

    @property
    def due(self) -> int:
        """Pairs that should have been scored, counted or not."""
        return self.n + self.not_counted + sum(self.unscored.values())
