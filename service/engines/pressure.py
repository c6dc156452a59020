"""How full an engine's KV cache is, read often and beside traffic: most lines of a page are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from service.engines.load import KV_USAGE, RUNNING, WAITING, engine_load

_ENGINES = ("vllm:", "sglang:", "llamacpp:", "tgi_")


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
    load = engine_load("\n".join(_lines(f"\n{page}\n")))
    if load is None or load.kv_usage is None:
        return None
    return Pressure(usage=load.kv_usage, running=load.running, waiting=load.waiting or 0.0)


def _lines(page: str) -> Iterator[str]:
    """Those that count, of a page that begins and ends with a line end."""
    engine = next((prefix for prefix in _ENGINES if f"\n{prefix}" in page), None)
    for names in (KV_USAGE, RUNNING, WAITING):
        for name in names:
            if engine is not None and name.startswith(engine) and (found := _family(page, name)):
                yield from found
                break


def _family(page: str, name: str) -> list[str]:
    """Its samples, which stand together."""
    found: list[str] = []
    begin = page.find(f"\n{name}")
    while begin >= 0:
        end = page.find("\n", begin + 1)
        line = page[begin + 1 : end]
        if line[len(name) : len(name) + 1] in ("{", " ", "\t"):
            found.append(line)
            begin = end if page.startswith(name, end + 1) else -1
        else:  # another metric, whose name begins alike
            begin = page.find(f"\n{name}", end)
    return found
