"""Which backends serve clients now, so that no load is sent to them by mistake.

The serving pool of a model is every backend of the tiers that have clients under the route in force, and of
the tiers below these, which take over where they are down. Addresses are compared, not texts (`addresses`).
"""

from __future__ import annotations

from collections.abc import Mapping

from service.fleet import Backend, Ladder, Tier
from service.store.redis.addresses import address_of
from service.store.sql.database import Database
from service.store.verdicts.standing import route_of


def targets_of(tier: Tier) -> tuple[Backend, ...]:
    """Where load for that tier goes: its `shadow` backends, or else those that would serve."""
    return tier.shadow or tier.backends


def serving_now(db: Database, ladders: Mapping[str, Ladder]) -> dict[str, str]:
    """Who is served by each backend in a serving pool, in words, by address."""
    found: dict[str, str] = {}
    for model, ladder in ladders.items():
        weights = route_of(db, ladder).weights
        highest = max(ladder.rung(name) for name, weight in weights.items() if weight)
        for tier in ladder.tiers[: highest + 1]:
            role = "serves clients" if weights.get(tier.name) else "takes over when the tier above is down"
            for backend in tier.backends:
                found.setdefault(address_of(backend), f"{role} as {model}/{tier.name}")
    return found


def in_service(db: Database, ladders: Mapping[str, Ladder], model: str) -> list[str]:
    """A sentence for each backend that load for the model would go to although it serves; KeyError."""
    serving = serving_now(db, ladders)
    return [
        f"{tier.name}: {backend.url} {serving[address]}"
        for tier in ladders[model].tiers
        for backend in targets_of(tier)
        if (address := address_of(backend)) in serving
    ]


def shared(ladder: Ladder) -> list[str]:
    """A sentence for each backend that load for several tiers goes to: these cannot be loaded at once."""
    loaded: dict[str, dict[str, str]] = {}
    for tier in ladder.tiers:
        for backend in targets_of(tier):
            loaded.setdefault(address_of(backend), {}).setdefault(tier.name, backend.url)
    return [
        f"{next(iter(by_tier.values()))} is loaded for {' and '.join(by_tier)}"
        for by_tier in loaded.values()
        if len(by_tier) > 1
    ]
