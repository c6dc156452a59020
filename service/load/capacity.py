"""What must not be loaded: a load run never targets capacity that clients depend on (design section 7). Pure.

A backend serves when a tier of any model with a weight in that model's route lists it under `backends`; it may
be listed elsewhere as well, such as another tier's `shadow`, and by another spelling of its address.
"""

from __future__ import annotations

import ipaddress
import posixpath
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from service.fleet import Backend, Ladder

_PORTS = {"http": 80, "https": 443}
_LOOPBACK = "localhost"


def serving_among(
    targets: Iterable[Backend],
    ladders: Iterable[Ladder],
    weights: Mapping[str, Mapping[str, int]],
) -> tuple[str, ...]:
    """A sentence for each target that serves clients, naming it, the model and the tier; empty when none does.

    `weights`: by model, the weight of each tier in its route. A model without a route is served by its baseline.
    """
    pools: dict[str, str] = {}
    for ladder in ladders:
        route = weights.get(ladder.model) or {ladder.baseline.name: 100}
        for tier in ladder.tiers:
            if weight := route.get(tier.name, 0):
                for backend in tier.backends:
                    words = f"serves {ladder.model} as {tier.name} ({weight} % of its traffic)"
                    pools.setdefault(address(backend), words)
    found: dict[str, str] = {}
    for target in targets:
        if words := pools.get(address(target)):
            found[target.url] = f"{target.url} {words}"
    return tuple(found.values())


def address(backend: Backend) -> str:
    """The same for two spellings of one listener: case, default ports, names and numbers of this machine."""
    if backend.socket is not None:
        return f"unix:{posixpath.normpath(backend.socket)}"
    split = urlsplit(backend.url)
    host = (split.hostname or "").rstrip(".")
    try:
        number = ipaddress.ip_address(host)
        if number.is_loopback or number.is_unspecified:
            host = _LOOPBACK
        else:
            host = str(number)
    except ValueError:
        pass
    return f"{host}:{split.port or _PORTS.get(split.scheme, 0)}"
