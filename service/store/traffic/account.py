"""The arithmetic of the mirror ledger: from counters to an account that adds up, or says where it does not.

    seen    = skipped{reason} + sampled
    sampled = shipped + dropped{reason}
    shipped = processed + expired + lost + waiting
    due     = scored + unscored{reason} + not_applicable + over_budget      per tier, arm and evaluator

`lost` is derived: a capture that was shipped, that no worker settled, and that Redis no longer has in its
index. What Redis took with its memory is counted nowhere else; a capture found missing by a worker is
recorded as lost. A batch whose reply never came was counted as dropped; if it arrived after all, it is
moved to shipped by its ids. PURE: no clock, no store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from service.store.redis.counters import Count, Dropped, LedgerKey

STALE_SECONDS = 30.0
"""A proxy writes each second; silent for so long, it was killed or cannot reach Redis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceLedger:
    """What one proxy instance has written, of the models asked about."""

    instance: str
    closed: bool
    """It stopped in order: its counters are final and must add up."""
    written_at: float
    counters: Mapping[LedgerKey, int]
    ahead: int = 0
    """Requests it may have seen after its last write, of any model: numbers that were set aside."""
    beyond: int = 0
    """Requests that numbers of captures show to have come after the last write."""

    def total(self, count: Count) -> int:
        return sum(amount for key, amount in self.counters.items() if key.what is count)

    @property
    def undecided(self) -> int:
        """Requests seen and neither skipped nor sampled yet."""
        return self.total(Count.SEEN) - self.total(Count.SKIPPED) - self.total(Count.SAMPLED)

    @property
    def unshipped(self) -> int:
        """Requests sampled and neither shipped nor dropped yet."""
        return self.total(Count.SAMPLED) - self.total(Count.SHIPPED) - self.total(Count.DROPPED)

    def silent(self, now: float | None) -> bool:
        """Whether it must be taken for killed; never without a clock."""
        return not self.closed and now is not None and now - self.written_at > STALE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Captures as SQL and Redis have them."""

    processed: int = 0
    expired: int = 0
    lost: int = 0
    """Found missing by a worker or the sweeper."""
    waiting: int | None = None
    """In Redis' index or leased, and not settled; None when Redis was not asked."""
    arrived: int = 0
    """Counted as dropped by a proxy in doubt, and there all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAccount:
    """Pairs of one evaluator on one arm of one tier."""

    model: str
    tier: str
    arm: str
    evaluator: str
    due: int
    scored: int
    unscored: Mapping[str, int]
    not_applicable: int
    over_budget: int

    @property
    def balanced(self) -> bool:
        told = self.scored + sum(self.unscored.values()) + self.not_applicable + self.over_budget
        return self.due == told


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerAccount:
    """The account of every request, of one model or of all."""

    model: str | None
    seen: int
    skipped: Mapping[str, int]
    sampled: int
    shipped: int
    dropped: Mapping[str, int]
    processed: int
    expired: int
    lost: int
    waiting: int
    in_flight: int
    """Begun by running proxies and not yet decided, shipped or dropped."""
    unaccounted: int
    """Most requests that silent proxies may have seen and nobody counted to the end.

    What was in flight at the last write, and as many as the numbers that were set aside by then."""
    traffic: Mapping[str, int] = field(default_factory=dict)
    """Requests by stratum."""
    pairs: tuple[PairAccount, ...] = ()
    balanced: bool
    """Every equation holds, once `in_flight` and `unaccounted` are allowed for."""
    problems: tuple[str, ...]
    """What a person should know, in words; a silent proxy is told though the rest balances."""

    @property
    def counters(self) -> dict[str, int | dict[str, int]]:
        """Everything by name, for JSON and metrics."""
        pairs: dict[str, int | dict[str, int]] = {
            f"pairs {each.model} {each.tier} {each.arm} {each.evaluator}": {
                "due": each.due,
                "scored": each.scored,
                **{f"unscored {reason}": amount for reason, amount in sorted(each.unscored.items())},
                "not_applicable": each.not_applicable,
                "over_budget": each.over_budget,
            }
            for each in self.pairs
        }
        return {
            "seen": self.seen,
            "skipped": dict(self.skipped),
            "sampled": self.sampled,
            "shipped": self.shipped,
            "dropped": dict(self.dropped),
            "processed": self.processed,
            "expired": self.expired,
            "lost": self.lost,
            "waiting": self.waiting,
            "in_flight": self.in_flight,
            "unaccounted": self.unaccounted,
            **pairs,
        }


def settle_account(
    *,
    model: str | None,
    instances: Sequence[InstanceLedger],
    settled: Settled,
    pairs: Sequence[PairAccount],
    now: float | None,
) -> LedgerAccount:
    """Add it all up. Without `now`, no proxy is taken for killed."""
    silent = [each for each in instances if each.silent(now)]
    running = [each for each in instances if not each.closed and each not in silent]
    contradictions = [text for each in instances for text in _contradictions(each, may_lag=not each.closed)]
    skipped, dropped, traffic = (
        _by_detail(instances, count) for count in (Count.SKIPPED, Count.DROPPED, Count.TRAFFIC)
    )
    shipped = sum(each.total(Count.SHIPPED) for each in instances) + settled.arrived
    if settled.arrived:
        dropped[Dropped.STORE_DOWN] -= settled.arrived
        if dropped[Dropped.STORE_DOWN] < 0:
            contradictions.append(
                f"{settled.arrived} captures in doubt arrived, more than were dropped(store_down)"
            )
    known = settled.processed + settled.expired + settled.lost
    gone = shipped - known - (settled.waiting or 0)
    lost, waiting = settled.lost, settled.waiting
    if gone < 0 and not running and not silent:
        there = known + (settled.waiting or 0)
        contradictions.append(f"{there} captures are settled or waiting, more than the {shipped} shipped")
    if waiting is None:
        waiting = max(0, gone)  # without Redis, waiting and lost cannot be told apart
    else:
        lost += max(0, gone)
    contradictions += [
        f"{each.due} pairs of {each.evaluator} on {each.tier} ({each.arm}) were due, other sums differ"
        for each in pairs
        if not each.balanced
    ]
    told = [
        f"proxy {each.instance} has been silent since its last write (killed, or cut off from Redis): "
        f"at most {_unaccounted(each)} of its requests are unaccounted"
        for each in silent
        if _unaccounted(each)
    ]
    return LedgerAccount(
        model=model,
        seen=sum(each.total(Count.SEEN) for each in instances),
        skipped=dict(skipped),
        sampled=sum(each.total(Count.SAMPLED) for each in instances),
        shipped=shipped,
        dropped=dict(+dropped),
        processed=settled.processed,
        expired=settled.expired,
        lost=lost,
        waiting=waiting,
        in_flight=sum(max(0, each.undecided) + max(0, each.unshipped) for each in running),
        unaccounted=sum(_unaccounted(each) for each in silent),
        traffic=dict(traffic),
        pairs=tuple(pairs),
        balanced=not contradictions,
        problems=(*contradictions, *told),
    )


def _unaccounted(ledger: InstanceLedger) -> int:
    return max(0, ledger.undecided) + max(0, ledger.unshipped) + max(ledger.ahead, ledger.beyond)


def _contradictions(ledger: InstanceLedger, *, may_lag: bool) -> list[str]:
    """Equations that do not hold; a proxy that still runs may have begun more than it finished."""
    seen, skipped = ledger.total(Count.SEEN), ledger.total(Count.SKIPPED)
    sampled, shipped = ledger.total(Count.SAMPLED), ledger.total(Count.SHIPPED)
    dropped = ledger.total(Count.DROPPED)
    found = []
    if ledger.undecided < 0 or (ledger.undecided > 0 and not may_lag):
        found.append(f"proxy {ledger.instance}: seen ({seen}) != skipped ({skipped}) + sampled ({sampled})")
    if ledger.unshipped < 0 or (ledger.unshipped > 0 and not may_lag):
        found.append(
            f"proxy {ledger.instance}: sampled ({sampled}) != shipped ({shipped}) + dropped ({dropped})"
        )
    return found


def _by_detail(instances: Sequence[InstanceLedger], count: Count) -> Counter[str]:
    amounts: Counter[str] = Counter()
    for each in instances:
        for key, amount in each.counters.items():
            if key.what is count:
                amounts[key.detail] += amount
    return amounts
