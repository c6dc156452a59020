"""A new configuration in a process that serves: everything under way ends as it began."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.proxy.config import ProxyConfig
from service.proxy.entry.door import Door
from service.proxy.traffic.access_lines import Lines
from service.proxy.traffic.telling import begin_at_zero
from service.store.redis.capture import Keyring

if TYPE_CHECKING:
    from service.proxy.processes.entrance import Entrance
    from service.proxy.traffic.health import Watches
    from service.proxy.traffic.plane import DataPlane


def adopt(config: ProxyConfig, plane: DataPlane, entrance: Entrance, watches: Watches) -> None:
    """Serve by `config` from the next request on; ValueError, with nothing changed, when that cannot be.

    Streams go on with the backend they have. A backend that is configured as before keeps its connections
    and what is known of it; one that is configured no longer gets nothing new.
    """
    keyring = Keyring(current=config.capture_key_id, keys=config.capture_keys)
    if config.tls != plane.config.tls:
        entrance.adopt(config.tls)
    retired = plane.servers.adopt(config.ladders)
    plane.config = config
    door = Door(config, instance=plane.instance, ledger=plane.meters.ledger)
    door.continue_from(plane.door)
    plane.door = door
    plane.routes.adopt(config.ladders)
    begin_at_zero(plane)
    plane.budget.limit = config.mirroring.buffer_bytes
    plane.bodies.limit = config.clients.buffered
    plane.shipper.adopt(keyring, config.mirroring)
    plane.conversation_header = config.mirroring.conversation_header.lower().encode()
    plane.lines = Lines(
        instance=plane.instance, salt=config.mirroring.salt, forward_paths=config.forward_paths
    )
    plane.access_log.adopt(config.access_log)  # also when it says the same: its file may have been moved
    for client in plane.clients:
        client.adopt()
    plane.limit()
    entrance.limit()
    watches.adopt(config.probe_seconds)
    for server in retired:
        for connection in tuple(server.idle):
            connection.drop()
        for name in [key for key in plane.meters.gauges if ("backend", server.url) in key[1]]:
            del plane.meters.gauges[name]
