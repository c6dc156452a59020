"""What a process tells its parent: its meters, the gauges of the moment, and which models have a backend."""

from __future__ import annotations

import resource
import time
from typing import TYPE_CHECKING, Any

from service.fleet import Fallback
from service.proxy.traffic.passage import Phase
from service.proxy.traffic.routing import rungs_down

if TYPE_CHECKING:
    from service.proxy.traffic.plane import DataPlane


def snapshot(plane: DataPlane) -> dict[str, Any]:
    """As JSON values."""
    _gauge(plane)
    now = time.monotonic()
    return {
        "models": {
            model: plane.servers.is_up(ladder, plane.routes.serving[model], now)
            for model, ladder in plane.config.ladders.items()
        },
        "routes": {route.model: dict(route.weights) for route in plane.routes.all},
        "meters": plane.meters.snapshot(),
    }


def begin_at_zero(plane: DataPlane) -> None:
    """Series that only begin to exist with what they count show no increase by their first."""
    meters = plane.meters
    for reason in ("idle_closed", "backend_closed", "not_connected"):
        meters.counters["retries", (("reason", reason),)] += 0
    for phase in (Phase.QUEUE, Phase.CONNECTION, Phase.FIRST_BYTE, Phase.BODY):
        meters.counters["client_disconnects", (("phase", phase.value),)] += 0
    for server in plane.servers:
        for name in ("ejections", "backend_connections_opened", "backend_connect_failures"):
            meters.counters[name, (("backend", server.url),)] += 0
        meters.reused[server.url] += 0
    for model, ladder in plane.config.ladders.items():
        for wanted in ladder.tiers:
            for tier in list(rungs_down(ladder, wanted))[1:]:
                labels = (("model", model), ("from", wanted.name), ("to", tier.name))
                meters.counters["fallbacks", labels] += 0
                if ladder.limits.fallback is Fallback.RUNG_BELOW:
                    meters.counters["overflows", labels] += 0
    meters.counters["access_log_dropped", ()] += 0
    meters.histograms["connect_seconds", ()]


def _gauge(plane: DataPlane) -> None:
    """Bring up to date what is not counted as it happens."""
    meters, gauges = plane.meters, plane.meters.gauges
    meters.counters["access_log_dropped", ()] = plane.access_log.dropped
    used = resource.getrusage(resource.RUSAGE_SELF)
    meters.counters["cpu_seconds", ()] = used.ru_utime + used.ru_stime
    plane.kv_watches.gauge()
    waiting = 0
    if plane.crowd is not None:
        waiting = plane.crowd.waiting
        plane.crowd.gauge()
    gauges["requests_in_flight", ()] = len(plane.relays) - waiting
    gauges["clients", ()] = len(plane.clients)
    gauges["capture_buffer_bytes", ()] = plane.budget.used
    gauges["request_buffer_bytes", ()] = plane.bodies.used
    for name in ("backend_usable", "backend_denied", "backend_outstanding", "backend_idle_connections"):
        for server in plane.servers:
            gauges[name, (("backend", server.url),)] = 0
    for server in plane.servers:  # one address may be several, each with another API key
        label = (("backend", server.url),)
        gauges["backend_usable", label] = max(gauges["backend_usable", label], int(not server.is_ejected))
        gauges["backend_denied", label] = max(
            gauges["backend_denied", label], int(server.notices.denied is not None)
        )
        gauges["backend_outstanding", label] += server.outstanding
        gauges["backend_idle_connections", label] += len(server.idle)
