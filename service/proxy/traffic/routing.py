"""Which tier answers: the routes of the moment, kept over restarts, and the rungs below a tier."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from service.fleet import Ladder, Route, Tier
from service.store.redis import redis_keys

_log = logging.getLogger(__name__)


def tier_at(route: Route, ladder: Ladder, percent: int) -> Tier:
    """The tier that serves the share of traffic around `percent` (0..99).

    The most aggressive tier holds the lowest percents, so that a ramp from 5 to 25 to 100 % moves nobody
    away from it who was there.
    """
    reached = 0
    for tier in reversed(ladder.tiers):
        reached += route.weights.get(tier.name, 0)
        if percent < reached:
            return tier
    return ladder.baseline


def rungs_down(ladder: Ladder, tier: Tier) -> Iterator[Tier]:
    """The tier itself, then each less aggressive one down to the baseline."""
    for rung in range(ladder.rung(tier.name), -1, -1):
        yield ladder.tiers[rung]


def is_split(route: Route) -> bool:
    """Whether more than one tier serves."""
    return sum(weight > 0 for weight in route.weights.values()) > 1


class RouteBook:
    """The routes of every model: those of the state directory first, then whatever is published.

    Routes are swapped whole; a request under way keeps the one it began with.
    """

    def __init__(self, ladders: Mapping[str, Ladder], state_dir: Path) -> None:
        self._ladders = ladders
        self._file = state_dir / "routes.json"
        self._routes = {model: Route.only(model, ladder.baseline.name) for model, ladder in ladders.items()}
        self.serving = {model: ladder.baseline for model, ladder in ladders.items()}
        """By model, the tier with the most weight."""
        self.split: frozenset[str] = frozenset()
        """Models that more than one tier serves."""
        self._not_ours: dict[str, Route] = {}
        """Published, and not followed because a model or tier is not configured; a reload may bring it."""
        for route in self._remembered():
            self._take(route)

    def adopt(self, ladders: Mapping[str, Ladder]) -> None:
        """Take new ladders; a route whose tiers are gone gives way to the baseline."""
        kept = [*self._routes.values(), *self._not_ours.values()]
        self._ladders = ladders
        self._routes = {model: Route.only(model, ladder.baseline.name) for model, ladder in ladders.items()}
        self.serving = {model: ladder.baseline for model, ladder in ladders.items()}
        self.split = frozenset()
        self._not_ours = {}
        for route in kept:
            self._take(route)

    def __getitem__(self, model: str) -> Route:
        return self._routes[model]

    def tier_at(self, model: str, percent: int) -> Tier:
        """The tier for that share of a model's traffic."""
        return tier_at(self._routes[model], self._ladders[model], percent)

    @property
    def all(self) -> tuple[Route, ...]:
        return tuple(self._routes.values())

    def follow(self, route: Route) -> bool:
        """Take a published route and remember it; False when it is old or names what is not configured."""
        if not self._take(route):
            return False
        self._remember()
        return True

    def _take(self, route: Route) -> bool:
        ladder = self._ladders.get(route.model)
        if ladder is None:
            self._not_ours[route.model] = route
            return False
        if route.is_before(self._routes[route.model]):
            return False
        if route == self._routes[route.model]:
            return False
        unknown = set(route.weights) - {tier.name for tier in ladder.tiers}
        if unknown:
            self._not_ours[route.model] = route
            _log.error(
                "route %d of %s names tiers that are not configured, the last one stands: %s",
                route.version,
                route.model,
                ", ".join(sorted(unknown)),
            )
            return False
        self._routes = {**self._routes, route.model: route}
        self.serving = {**self.serving, route.model: ladder.tier(route.serving)}
        self.split = frozenset(model for model, each in self._routes.items() if is_split(each))
        return True

    def _remembered(self) -> Iterator[Route]:
        try:
            written = list(json.loads(self._file.read_bytes())["routes"])
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.error("%s is unreadable, every model starts on its baseline: %s", self._file, error)
            return
        for text in written:
            try:
                yield redis_keys.route_from_json(json.dumps(text))
            except ValueError as error:
                _log.error("%s: a model starts on its baseline: %s", self._file, error)

    def _remember(self) -> None:
        """Best effort: a full disk must not stop a route from being followed."""
        text = json.dumps(
            {"routes": [json.loads(redis_keys.route_to_json(route)) for route in self._routes.values()]}
        )
        partial = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(text)
            partial.replace(self._file)
        except OSError as error:
            _log.error("the routes could not be remembered in %s: %s", self._file, error)
