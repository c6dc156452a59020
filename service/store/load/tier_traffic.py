"""What is kept of a tier's traffic and its engines, as the three patterns that cost more ask for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.capacity.bits import fewest_bits
from service.capacity.patterns import Traffic
from service.capacity.prefix_gate import WINDOW_HOURS, Window
from service.capacity.prefix_replay import Prompt
from service.capacity.prefix_shared import Shared, shared_prefixes
from service.capacity.prefix_window import Look
from service.fleet import Ladder, Tier
from service.store.kept.prompt_prefixes import PromptPrefix
from service.store.traffic.account import LedgerAccount

DAY = 86_400.0
LEAST_SPAN = 3600.0
"""Seconds of captured prompts, below which they tell no rate."""
SEQUENCES = "max_num_seqs"
"""Of what a tier declares: how many sequences its engine takes at once."""
EXACT_PARTS = frozenset({"structured", "32k-128k", "over-128k"})
"""Parts of a stratum's name whose answers must be exact: structured output and tools, long context."""


def sensitive_share(traffic: Mapping[str, int]) -> float | None:
    """Of requests by stratum, that ask for structured output, tools or long context; `None` without any."""
    whole = sum(traffic.values())
    exact = sum(count for name, count in traffic.items() if EXACT_PARTS & set(name.split("/")))
    return exact / whole if whole else None


def request_rate(prefixes: Sequence[PromptPrefix], *, now: float) -> float | None:
    """Requests a second of the last day, from captured prompts and how many were sampled."""
    recent = [each for each in prefixes if now - DAY <= each.at <= now]
    if not recent or now - recent[0].at < LEAST_SPAN:
        return None
    return sum(1 / each.share for each in recent if each.share > 0) / (now - recent[0].at)


def shared_of(prefixes: Sequence[PromptPrefix], *, unit: int, now: float) -> Shared | None:
    """Beginnings that prompts of the last day have in common; `None` where no prompt was captured."""
    recent = [each for each in prefixes if now - DAY <= each.at <= now]
    if not recent:
        return None
    prompts = [Prompt(tokens=each.tokens, named=each.named, tenant=each.tenant) for each in recent]
    return shared_prefixes(prompts, unit=unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """What captured prompts of the last day tell of a model's traffic; as `shared_of` and `request_rate`."""

    shared: Shared | None
    rate: float | None


def sequences_limit(tier: Tier) -> int | None:
    """As it is declared, of one engine times the backends; else what the backends are said to take."""
    declared = tier.declares.get(SEQUENCES, "")
    if declared.isdecimal() and 0 < int(declared) < 10**9:
        return int(declared) * max(1, len(tier.backends))
    rooms = [backend.max_concurrency for backend in tier.backends]
    return None if not rooms or None in rooms else sum(room for room in rooms if room is not None)


def most_running(looks: Sequence[Look], window: Window | None) -> float | None:
    """At once over all backends, as seen over a whole day; `None` before that."""
    if window is None or window.hours < WINDOW_HOURS:
        return None
    by_time: dict[float, float] = {}
    for look in looks:
        if look.running is not None:
            by_time[look.at] = by_time.get(look.at, 0.0) + look.running
    return max(by_time.values(), default=None)


def traffic_of(
    ladder: Ladder,
    tier: Tier,
    *,
    ledger: LedgerAccount,
    weight: int,
    rate: float | None,
    shared: Shared | None,
    looks: Sequence[Look],
    window: Window | None,
    accepted: bool | None,
) -> Traffic:
    """Of one tier. Prefixes and rates are its model's clients': a tier that has none of them has neither."""
    serves = weight > 0
    return Traffic(
        requests_per_second=rate * weight / 100 if serves and rate is not None else None,
        prefixes=shared.prefixes if serves and shared is not None else None,
        prefix_rate=None if window is None else window.rate,
        sequences_limit=sequences_limit(tier),
        most_running=most_running(looks, window) if serves else None,
        bits=fewest_bits(tier.declares),
        sensitive_share=sensitive_share(ledger.traffic),
        accepted=True if tier is ladder.baseline else accepted,
    )
