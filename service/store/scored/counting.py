"""What units and conversations add to the counts: said in one place, for recording and recount alike.

Every table of counts is a sum over conversations and units, in integers: it comes out the same whatever the
order, and whoever adds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from service.store.scored.own_strata import Within, own_parts
from service.store.scored.units import Kind, PairOutcome, PairRow, Unit
from service.strata import TENANT

DUE = "due"
"""Outcome in the pair ledger that counts every pair, whatever became of it."""
DRIFT_UNIT = 2**32
"""One mean difference of 1 in a `drift`."""


class TallyRow(NamedTuple):
    """Key of one row of `tallies`, in its order."""

    model: str
    tier: str
    arm: str
    epoch: str
    evaluator: str
    kind: str
    reason: str
    pairs: int
    harm: int
    benefit: int
    version: str


class StratumRow(NamedTuple):
    """Key of one row of `stratum_tallies`, in its order."""

    model: str
    tier: str
    arm: str
    epoch: str
    evaluator: str
    stratum: str
    kind: str
    reason: str
    pairs: int
    harm: int
    benefit: int
    version: str


class TenantRow(NamedTuple):
    """Key of one row of `tenant_tallies`, in its order."""

    model: str
    tier: str
    arm: str
    epoch: str
    evaluator: str
    tenant: str
    kind: str
    reason: str
    pairs: int
    harm: int
    benefit: int
    version: str


class LedgerRow(NamedTuple):
    """Key of one row of `pair_ledger`; the outcome is a PairOutcome or `DUE`."""

    model: str
    tier: str
    arm: str
    evaluator: str
    outcome: str
    reason: str


class SumRow(NamedTuple):
    """Key of one row of `stratum_sums`, in its order."""

    model: str
    tier: str
    arm: str
    epoch: str
    stratum: str
    evaluator: str
    version: str


class TakingRow(NamedTuple):
    """Key of one row of `takings`."""

    model: str
    stratum: str


class Sums(NamedTuple):
    """The amounts of one row of `stratum_sums`."""

    units: int = 0
    pairs: int = 0
    harm: int = 0
    benefit: int = 0
    both_failed: int = 0
    not_counted: int = 0
    unscored: int = 0
    further: int = 0
    drift: int = 0

    def plus(self, other: Sums) -> Sums:
        return Sums(*(mine + others for mine, others in zip(self, other, strict=True)))


class Count(NamedTuple):
    """What is counted, apart from where: a kind with its reason or triple."""

    kind: Kind
    reason: str = ""
    pairs: int = 0
    harm: int = 0
    benefit: int = 0


class Part(NamedTuple):
    """The scored pairs of one unit, as far as they count."""

    model: str
    tier: str
    arm: str
    epoch: str
    evaluator: str
    version: str
    strata: tuple[str, ...]
    tenant: str
    pairs: int
    harm: int
    benefit: int
    both_failed: int
    own: tuple[Within, ...] = ()
    """Those of its pairs that are in one stratum more, by stratum."""

    @property
    def every_stratum(self) -> tuple[str, ...]:
        """All strata that it says something of."""
        return (*self.strata, *(each.stratum for each in self.own))

    def within(self, stratum: str) -> Part | None:
        """What it is of one stratum."""
        if stratum in self.strata:
            return self
        for each in self.own:
            if each.stratum == stratum:
                _, pairs, harm, benefit, both_failed = each
                return self._replace(pairs=pairs, harm=harm, benefit=benefit, both_failed=both_failed)
        return None


def part_of(unit: Unit) -> Part:
    """What a unit brings into its conversation."""
    rows = unit.scored
    return Part(
        unit.model,
        unit.tier,
        unit.arm,
        unit.epoch,
        unit.evaluator,
        unit.version,
        unit.strata,
        unit.tenant,
        len(rows),
        sum(row.harm for row in rows),
        sum(row.benefit for row in rows),
        sum(row.both_failed for row in rows),
        own_parts((row.own_stratum, bool(row.baseline_passed), bool(row.candidate_passed)) for row in rows),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Amounts by row of every table of counts; grows."""

    tallies: Counter[TallyRow] = field(default_factory=Counter)
    strata: Counter[StratumRow] = field(default_factory=Counter)
    tenants: Counter[TenantRow] = field(default_factory=Counter)
    ledger: Counter[LedgerRow] = field(default_factory=Counter)
    takings: Counter[TakingRow] = field(default_factory=Counter)

    def add_taken(self, unit: Unit) -> None:
        """The capture of this unit was taken up: once per capture, whichever of its units says so."""
        for stratum in unit.marginals:
            self.takings[TakingRow(unit.model, stratum)] += 1
        self.takings[TakingRow(unit.model, f"{TENANT}={unit.tenant}")] += 1

    def add_unit(self, unit: Unit) -> None:
        """What a unit adds by itself: unscored pairs, and scored ones that do not count (yet)."""
        place = (unit.model, unit.tier, unit.arm, unit.evaluator)
        self.ledger[LedgerRow(*place, DUE, "")] += len(unit.rows)
        for row in unit.rows:
            self.ledger[LedgerRow(*place, row.outcome, row.unscored_reason)] += 1
        found = _uncounted(unit.rows, counted=unit.counted)
        for stratum in unit.strata:
            self._add_stratum(unit, stratum, found)
        for stratum, rows in _by_own(unit).items():
            self._add_stratum(unit, stratum, _uncounted(rows, counted=unit.counted))
        self._add_whole(unit, found)

    def add_conversation(self, parts: Sequence[Part], times: int = 1) -> None:
        """What all that counts of one conversation adds, under one evaluator, on one tier, in one epoch.

        Within a stratum a conversation is what it is of it: the mean of its pairs there.
        """
        self.add_whole(parts, times)
        for stratum in dict.fromkeys(stratum for part in parts for stratum in part.every_stratum):
            self.add_within(stratum, parts, times)

    def add_whole(self, parts: Sequence[Part], times: int) -> None:
        """The same, strata apart."""
        self._add_whole(parts[0], _conversation(parts, times))

    def add_within(self, stratum: str, parts: Sequence[Part], times: int) -> None:
        """The same, in one stratum alone."""
        within = [found for part in parts if (found := part.within(stratum)) is not None]
        self._add_stratum(parts[0], stratum, _conversation(within, times))

    def take_off_waiting(self, unit: Unit) -> None:
        """Its conversation closes: from now on its pairs count, and are no longer shown as not counted."""
        if not unit.scored:
            return
        off = Counter({Count(Kind.NOT_COUNTED): -len(unit.scored)})
        for stratum in unit.strata:
            self._add_stratum(unit, stratum, off)
        for each in part_of(unit).own:
            self._add_stratum(unit, each.stratum, Counter({Count(Kind.NOT_COUNTED): -each.pairs}))
        self._add_whole(unit, off)

    def _add_whole(self, unit: Unit | Part, found: Counter[Count]) -> None:
        place = (unit.model, unit.tier, unit.arm, unit.epoch, unit.evaluator)
        for count, amount in found.items():
            self.tallies[TallyRow(*place, *count, unit.version)] += amount
            self.tenants[TenantRow(*place, unit.tenant, *count, unit.version)] += amount

    def _add_stratum(self, unit: Unit | Part, stratum: str, found: Counter[Count]) -> None:
        place = (unit.model, unit.tier, unit.arm, unit.epoch, unit.evaluator)
        for count, amount in found.items():
            self.strata[StratumRow(*place, stratum, *count, unit.version)] += amount

    @property
    def sums(self) -> dict[SumRow, Sums]:
        """The rows of `stratum_sums`: they follow from those of `stratum_tallies`."""
        found: dict[SumRow, Sums] = {}
        for row, amount in self.strata.items():
            key = SumRow(*row[:4], row.stratum, row.evaluator, row.version)
            found[key] = found.get(key, Sums()).plus(_sums(row, amount))
        return found


def recorded(units: Sequence[Unit], *, taken: bool) -> Counts:
    """What the units of one capture add; `taken` says that none of its units was there before."""
    counts = Counts()
    if taken:
        counts.add_taken(units[0])
    for unit in units:
        counts.add_unit(unit)
        if unit.counted:
            counts.add_conversation([part_of(unit)])
    return counts


def _uncounted(rows: Iterable[PairRow], *, counted: bool) -> Counter[Count]:
    """Pairs without a score, and scored ones of a unit that does not count."""
    found: Counter[Count] = Counter()
    for row in rows:
        if row.outcome == PairOutcome.UNSCORED:
            found[Count(Kind.UNSCORED, row.unscored_reason)] += 1
        elif row.outcome == PairOutcome.SCORED and not counted:
            found[Count(Kind.NOT_COUNTED)] += 1
    return found


def _by_own(unit: Unit) -> dict[str, list[PairRow]]:
    found: dict[str, list[PairRow]] = {}
    for row in unit.rows:
        if row.own_stratum:
            found.setdefault(row.own_stratum, []).append(row)
    return found


def drift_of(pairs: int, harm: int, benefit: int) -> int:
    """The mean difference of one unit in 2^-32, rounded; 0 without pairs."""
    return round(DRIFT_UNIT * (harm - benefit) / pairs) if pairs else 0


def _conversation(parts: Sequence[Part], times: int) -> Counter[Count]:
    """One conversation by its triple, its pairs that failed in both arms, its requests besides one."""
    pairs = sum(part.pairs for part in parts)
    if not pairs:
        return Counter()
    triple = (pairs, sum(part.harm for part in parts), sum(part.benefit for part in parts))
    found = Counter({Count(Kind.UNIT, "", *triple): times})
    if both := sum(part.both_failed for part in parts):
        found[Count(Kind.BOTH_FAILED)] = times * both
    if further := sum(part.pairs > 0 for part in parts) - 1:
        found[Count(Kind.FURTHER)] = times * further
    return found


def _sums(row: StratumRow, amount: int) -> Sums:
    match Kind(row.kind):
        case Kind.UNIT:
            return Sums(
                units=amount,
                pairs=row.pairs * amount,
                harm=row.harm * amount,
                benefit=row.benefit * amount,
                drift=drift_of(row.pairs, row.harm, row.benefit) * amount,
            )
        case Kind.BOTH_FAILED:
            return Sums(both_failed=amount)
        case Kind.NOT_COUNTED:
            return Sums(not_counted=amount)
        case Kind.UNSCORED:
            return Sums(unscored=amount)
        case Kind.FURTHER:
            return Sums(further=amount)
