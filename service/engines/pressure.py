"""How full an engine's KV cache is, read often and beside traffic: most lines of a page are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from service.engines.load import KV_USAGE, RUNNING, WAITING, engine_load

_NAMES = (*KV_USAGE, *RUNNING, *WAITING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """One look at one engine."""

    usage: float
    """Share of the KV cache in use, 0 to 1; of the fullest replica. What can be let go is not in use."""
    running: float | None = None
    """Requests that it works on; `None` where it does not tell."""
    waiting: float = 0.0
    """Requests in its own queue, which take their room before any new one."""


def pressure(page: str) -> Pressure | None:
    """What a metrics page tells; `None` where it tells of no KV cache."""
    load = engine_load("\n".join(_lines(page)))
    if load is None or load.kv_usage is None:
        return None
    return Pressure(usage=load.kv_usage, running=load.running, waiting=load.waiting or 0.0)


def _lines(page: str) -> Iterator[str]:
    """The lines that begin with one of the names: to look for these costs a twentieth of reading them all."""
    page = f"\n{page}"
    for name in _NAMES:
        begin = page.find(f"\n{name}")
        while begin >= 0:
            end = page.find("\n", begin + 1)
            yield page[begin + 1 : end if end >= 0 else len(page)]
            begin = -1 if end < 0 else page.find(f"\n{name}", end)
