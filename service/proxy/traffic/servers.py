"""All backends as this process sees them, and which of them a request goes to."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from service.fleet import Backend, Fallback, KvGuard, Ladder, Tier
from service.proxy.traffic.pool import Server
from service.proxy.traffic.routing import rungs_down
from service.proxy.traffic.shares import Share

Pick = tuple[Tier, Server]
"""Where a request goes."""


class Servers:
    """All backends of all serving tiers."""

    def __init__(self, ladders: Mapping[str, Ladder], share: Share = Share()) -> None:
        self._share = share
        self._known: dict[Backend, Server] = {}
        self._of_tier: dict[tuple[str, str], tuple[Server, ...]] = {}
        self._ladders: Mapping[str, Ladder] = {}
        self._turn = itertools.count()
        self.adopt(ladders)

    def adopt(self, ladders: Mapping[str, Ladder]) -> list[Server]:
        """Serve by these ladders from now on; returns the servers that no longer stand in any of them.

        A backend that is configured as before keeps its connections, its counts and its ejection.
        """
        known: dict[Backend, Server] = {}
        most: dict[Backend, int] = {}
        guards: dict[Backend, KvGuard] = {}
        of_tier: dict[tuple[str, str], tuple[Server, ...]] = {}
        for model, ladder in ladders.items():
            for tier in ladder.tiers:
                servers = []
                for backend in tier.backends:
                    same = _identity(backend)
                    if same not in known:
                        known[same] = self._known.get(same) or Server(backend)
                    servers.append(known[same])
                    if backend.max_concurrency is not None:
                        most[same] = min(backend.max_concurrency, most.get(same, backend.max_concurrency))
                    if (guard := ladder.limits.kv_guard) is not None:
                        guards[same] = min(guard, guards.get(same, guard), key=_strictness)
                of_tier[model, tier.name] = tuple(servers)
        retired = [server for same, server in self._known.items() if same not in known]
        for server in retired:
            server.is_retired = True
        for same, server in known.items():
            server.declared = self._share.part(most[same]) if same in most else None
            server.guard = guards.get(same)
            server.keep_to(server.guarded if server.guard is not None else None)
        self._known, self._of_tier, self._ladders = known, of_tier, ladders
        return retired

    def __iter__(self) -> Iterator[Server]:
        return iter(self._known.values())

    def of(self, model: str, tier: str) -> tuple[Server, ...]:
        return self._of_tier[model, tier]

    def pick(
        self,
        ladder: Ladder,
        wanted: Tier,
        *,
        now: float,
        without: Collection[Server] = (),
        overfill: bool = False,
    ) -> Pick | None:
        """The least loaded backend of the wanted tier, or of the next rung down that is up.

        None when no rung is up; and when one is whose backends are all full, unless `overfill` says that
        it does not matter. A tier that is busy is not down: the rung below it would be overrun, so that only
        `limits.fallback` sends requests there, and only to places that are free.
        """
        if self._ladders.get(ladder.model) is ladder:
            servers = self._of_tier[ladder.model, wanted.name]
            if len(servers) == 1 and not without and servers[0].failures == 0 and servers[0].most is None:
                return wanted, servers[0]
        rung = self._rung(ladder, wanted, now, without)
        if rung is None:
            return None
        tier, usable = rung
        # Start elsewhere each time, or an idle fleet would send everything to its first backend.
        turn = next(self._turn)
        in_turn = _from(turn, usable)
        server = min(in_turn, key=_load)
        if server.most is not None and server.is_full and not overfill:
            free = [each for each in in_turn if not each.is_full]
            if not free:
                below = self._spilled(ladder, tier, now, without)
                return None if below is None else (below[0], min(_from(turn, below[1]), key=_load))
            server = min(free, key=_load)
        return tier, server

    def is_crowded(
        self, ladder: Ladder, wanted: Tier, *, now: float, without: Collection[Server] = ()
    ) -> bool:
        """Whether a request for that tier would find backends, and none with a place for it."""
        rung = self._rung(ladder, wanted, now, without)
        if rung is None or not all(server.is_full for server in rung[1]):
            return False
        return self._spilled(ladder, rung[0], now, without) is None

    def passed_over(
        self, ladder: Ladder, wanted: Tier, taken: Tier, *, now: float, without: Collection[Server] = ()
    ) -> bool:
        """Whether a request that goes to `taken` leaves out a tier that is up, since that is full."""
        rung = self._rung(ladder, wanted, now, without)
        return rung is not None and rung[0].name != taken.name

    def is_up(self, ladder: Ladder, wanted: Tier, now: float, without: Collection[Server] = ()) -> bool:
        """Whether a request for that tier would find a backend, busy or not."""
        return self._rung(ladder, wanted, now, without) is not None

    def why_down(self, ladder: Ladder, wanted: Tier) -> str | None:
        """Why a backend of the tier failed last, if one has."""
        servers = self._of_tier.get((ladder.model, wanted.name), ())
        return next((server.why for server in servers if server.why), None)

    def _spilled(
        self, ladder: Ladder, full: Tier, now: float, without: Collection[Server]
    ) -> tuple[Tier, list[Server]] | None:
        """The next rung below that has a place, and its backends that have one, where that is wanted."""
        ladder = self._ladders.get(ladder.model, ladder)
        if ladder.limits.fallback is not Fallback.RUNG_BELOW:
            return None
        for tier in itertools.islice(rungs_down(ladder, full), 1, None):
            servers = self._of_tier[ladder.model, tier.name]
            free = [
                server
                for server in servers
                if server not in without and server.is_usable(now) and not server.is_full
            ]
            if free:
                return tier, free
        return None

    def _rung(
        self, ladder: Ladder, wanted: Tier, now: float, without: Collection[Server]
    ) -> tuple[Tier, list[Server]] | None:
        """The tier that would answer, and its backends that are up."""
        if self._ladders.get(ladder.model) is not ladder:
            # Admitted before a reload, and asked again after it: by the new ladder, if that has its tier.
            current = self._ladders.get(ladder.model)
            if current is None:
                return None
            ladder = current
            wanted = next((tier for tier in ladder.tiers if tier.name == wanted.name), ladder.baseline)
        for tier in rungs_down(ladder, wanted):
            servers = self._of_tier[ladder.model, tier.name]
            usable = [server for server in servers if server not in without and server.is_usable(now)]
            if usable:
                return tier, usable
        # Nobody is left: then rather one who answers some requests badly than a refusal for everybody.
        servers = self._of_tier[ladder.model, wanted.name]
        there = [server for server in servers if server not in without and server.spoke]
        return (wanted, there) if there else None


def _strictness(guard: KvGuard) -> tuple[float, float]:
    """Of two models that share a backend, whose cache is one, the lower level holds for both."""
    return guard.above, guard.below


def _from(turn: int, servers: list[Server]) -> list[Server]:
    first = turn % len(servers)
    return servers[first:] + servers[:first]


def _load(server: Server) -> int:
    return server.outstanding


def _identity(backend: Backend) -> Backend:
    """What makes two entries of the configuration one server."""
    return replace(backend, url=backend.url.rstrip("/"), max_concurrency=None)
