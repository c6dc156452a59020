"""What of a new configuration takes hold at once, and what waits for a restart. Pure."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from service.proxy.config import ProxyConfig

AT_START_ONLY = {
    "listen_host": "proxy.listen",
    "listen_port": "proxy.listen",
    "listen_path": "proxy.listen",
    "listen_mode": "proxy.socket_mode",
    "admin_host": "proxy.admin",
    "admin_port": "proxy.admin",
    "processes": "proxy.processes",
    "redis_url": "store.redis",
    "broker_url": "store.broker",
    "state_dir": "store.state_dir",
}
"""Sockets, processes and connections that were made once; what the file calls them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload:
    """A configuration that can take the place of another without a restart."""

    config: ProxyConfig
    """The new one, with the old one's sockets, processes and stores."""
    waiting: tuple[str, ...]
    """Keys whose new value waits for a restart."""
    is_change: bool


def naming_what_is_pinned(wanted: ProxyConfig, *, before: ProxyConfig, now: ProxyConfig) -> ProxyConfig:
    """`wanted`, with what the file says of the next start where that has changed.

    Whoever starts the proxy may pin an address that the file left to it, so that a crash changes nothing.
    Then `wanted` has the pinned one, whatever the file says; `before` and `now` are the file alone, at the
    start and now.
    """
    changed = [name for name in AT_START_ONLY if getattr(before, name) != getattr(now, name)]
    return replace(wanted, **{name: getattr(now, name) for name in changed})


def reload(current: ProxyConfig, wanted: ProxyConfig) -> Reload:
    """As much of `wanted` as can be had now."""
    differing = [name for name in AT_START_ONLY if getattr(current, name) != getattr(wanted, name)]
    config = replace(wanted, **{name: getattr(current, name) for name in differing})
    return Reload(
        config=config,
        waiting=tuple(dict.fromkeys(AT_START_ONLY[name] for name in differing)),
        is_change=any(getattr(config, each.name) != getattr(current, each.name) for each in fields(config)),
    )
