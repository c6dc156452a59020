"""What a proxy process is told at its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from service.fleet import Ladder


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Limits on a backend, in seconds; None = no limit."""

    connect: float = 5.0
    first_byte: float | None = 600.0
    idle: float | None = 120.0
    """Between two reads of one answer."""
    total: float | None = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """Patience with clients, in seconds unless said otherwise."""

    head: float = 30.0
    """For the whole head of a request."""
    body: float = 60.0
    """Between two reads of a request body; in that time it must also bring 1KiB a second."""
    keep_alive: float = 75.0
    """Without a request on an open connection."""
    stalled: float | None = 600.0
    """Without taking a byte of an answer that waits for it; None = no limit."""
    max_head: int = 64 * 1024
    """Bytes of request line and headers; more is 431."""
    buffered: int = 512 * 1024 * 1024
    """Bytes of request bodies above 64 KiB that one process holds until their answers begin; more is 503."""
    connections: int | None = None
    """Open at once in one process; None = as its file descriptors allow. See `processes.descriptors`."""
    pipelined: int = 32
    """Requests read ahead on one connection before reading pauses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirroring:
    """What is captured and where it goes."""

    sample: float = 0.05
    """Share of eligible requests, 0 to 1."""
    salt: bytes = b""
    """Keys the sampling hash and the tenant hash; the same on every proxy."""
    ttl_seconds: int = 6 * 3600
    max_body: int = 8 * 1024 * 1024
    """Bytes of request plus answer kept per exchange; larger ones are `skipped(too_large)`."""
    max_bytes: int = 1024**3
    """Bytes of sealed captures waiting in Redis before `dropped(store_full)`."""
    buffer_bytes: int = 64 * 1024 * 1024
    """Bytes of captures one proxy process may hold before `dropped(buffer_full)`."""
    conversation_header: str = "x-conversation-id"
    queue: str = "replay"
    batch: int = 16
    """Most capture ids per Celery message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLogPlan:
    """Where lines about requests go, and about which."""

    to: str = "stderr"
    """`stderr`, `stdout`, or the path of a file that is appended to."""
    sample: float = 0.01
    """Share of all requests, 0 to 1."""
    errors: float = 1.0
    """Share of those that the client saw fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerTls:
    """The proxy's certificate: where it is, and what was last read there (PEM text)."""

    certificate_file: Path
    key_file: Path
    client_ca_file: Path | None = None
    certificate: str = ""
    key: str = field(default="", repr=False)
    client_ca: str | None = None
    """Authorities that a client's certificate must come from; None = clients need none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutesFrom:
    """The API that is asked for routes besides Redis."""

    url: str
    """Its base URL."""
    token: str | None = field(default=None, repr=False)
    """Of scope `read`; None where the API lets this machine read without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyConfig:
    """Everything one proxy needs; the same for all its processes."""

    ladders: Mapping[str, Ladder]
    listen_host: str = "127.0.0.1"
    listen_port: int = 8080
    listen_path: str | None = None
    """Of a unix socket, in place of host and port."""
    listen_mode: int = 0o660
    """Permissions of that socket."""
    tls: ListenerTls | None = None
    """None = plain HTTP."""
    admin_host: str = "127.0.0.1"
    admin_port: int = 8082
    admin_hosts: tuple[str, ...] = ()
    """Names in the Host header that the admin listener takes, besides its own and addresses."""
    processes: int = 1
    redis_url: str = "redis://127.0.0.1:6379/0"
    """Where captures, the ledger and routes live."""
    routes_from: RoutesFrom | None = None
    """None: routes come through Redis alone."""
    broker_url: str = "redis://127.0.0.1:6379/0"
    capture_key_id: str = "1"
    capture_keys: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """AES keys by id, 16 or 32 bytes."""
    timeouts: Timeouts = Timeouts()
    clients: ClientLimits = ClientLimits()
    mirroring: Mirroring = Mirroring()
    max_request: int = 32 * 1024 * 1024
    """Bytes of a request body; larger is 413."""
    forward_paths: tuple[str, ...] = ("/v1/", "/health", "/version", "/tokenize", "/detokenize")
    """A trailing slash forwards everything below it."""
    default_model: str | None = None
    """Serves requests that name no model; without it, the only ladder does, if there is just one."""
    half_close: bool = False
    """Whether a client may end its side of the connection and still wait for the answer."""
    probe_seconds: float | None = 5.0
    """Between two health checks of a backend; None = passive ejection only."""
    drain_seconds: float = 30.0
    access_log: AccessLogPlan | None = None
    state_dir: Path = Path(".tiergate")
    """Holds the last known routes, so that a restart without Redis keeps them."""
