"""All of Tiergate on one machine: what must be true before it starts, and the parts in their order."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from redis import RedisError

from service.launch.check_stores import check_database, check_redis
from service.launch.lock import owning
from service.launch.part import Part, Ready, http_ok
from service.launch.ports import PortUnusable, check_free, free_port, free_ports
from service.launch.supervisor import Supervisor
from service.launch.valkey import announce, embedded_valkey, write_private
from service.settings import Settings, units
from service.settings.units import Listen
from service.store.access.tokens import create, lookup
from service.store.redis.captures import open_captures
from service.store.sql.database import Database, StoreUnusable, open_database
from service.store.traffic.ledger import copy_from_redis

TOKEN_FILE = "token"
"""In the state directory."""
TOKEN_SCOPES = ("read", "approve", "admin")
PINNED = ("TIERGATE_STATE_DIR", "TIERGATE_PROXY_LISTEN", "TIERGATE_ADMIN_LISTEN")
"""Said by the file, and told to every part, so that one which crashes comes back where it was whatever the
file says by then; the proxy knows, and names what a reload cannot change."""
WORKER_LISTEN = "TIERGATE_WORKER_LISTEN"
"""The worker's metrics under `up`, too; those of guard, beat and load worker are at the ports above it."""
MOST_PORT = 65535
CELERY_PARTS = 4
API_STOP_SECONDS = 15.0
"""An API finishes for ten seconds what it was asked, and closes its stores."""
WORKER_STOP_SECONDS = 30.0
"""Whatever a replay's time limit: a stopping worker gives up after ten seconds what is not answered by then;
the rest is for judging and recording what was, and for Celery to close its pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """What runs, and where people find it."""

    supervisor: Supervisor
    proxy_url: str
    admin_url: str
    api_url: str
    token_file: Path
    """Holds a bearer token with every scope, readable by this user alone."""
    log_dir: Path
    redis_url: str
    metrics_urls: tuple[str, ...]
    """Of every part, for Prometheus."""


@contextmanager
def everything(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    say: Callable[[str], None],
    hurry: Callable[[], bool] = lambda: False,
    extra_parts: Sequence[Part] = (),
) -> Iterator[Running]:
    """Everything, for as long as the block lasts; `extra_parts` start first and stop last.

    Raises `StateDirInUse`, `PortUnusable`, `RedisUnusable`, `StoreUnusable` or `StartFailed`, each with what
    to do, and leaves nothing running.
    """
    state_dir = settings.state_dir
    with ExitStack() as stack:
        lock = stack.enter_context(owning(state_dir))
        proxy, admin, api = _addresses(settings)
        worker, guard, beat, load = _celery_addresses(environ)
        check_redis(settings)
        check_database(settings)
        token_file = keep_token(settings, now=time.time())
        told = {
            "TIERGATE_CONFIG": str(settings.path),
            "TIERGATE_STATE_DIR": str(state_dir),
            "TIERGATE_PROXY_LISTEN": str(proxy),
            "TIERGATE_ADMIN_LISTEN": str(admin),
            "TIERGATE_API_LISTEN": str(api),
            "PYTHONUNBUFFERED": "1",
        }
        parts = list(extra_parts)
        redis_url = settings.redis_url
        if settings.redis_embedded:
            valkey = embedded_valkey(state_dir)
            redis_url = valkey.url
            parts.append(valkey.part())
            announced = announce(state_dir, valkey.url)
            stack.callback(announced.unlink, missing_ok=True)
        parts += tiergate_parts(
            settings,
            proxy_admin=admin,
            api=api,
            guard=guard,
            worker=worker,
            beat=beat,
            load=load,
            pinned=[name for name in told if name in PINNED and not environ.get(name)],
            last_copy=lambda: copy_ledger(settings.database_url, redis_url, say),
        )
        supervisor = stack.enter_context(
            Supervisor(
                parts,
                state_dir / "logs",
                environ={**environ, **told},
                say=say,
                hurry=hurry,
                keep_open=(lock,),
            )
        )
        yield Running(
            supervisor=supervisor,
            proxy_url=proxy.url("http" if settings.proxy.tls is None else "https"),
            admin_url=admin.url(),
            api_url=api.url(),
            token_file=token_file,
            log_dir=state_dir / "logs",
            redis_url=redis_url,
            metrics_urls=tuple(f"{each.url()}/metrics" for each in (admin, api, worker, guard, beat, load)),
        )


def tiergate_parts(
    settings: Settings,
    *,
    proxy_admin: Listen,
    api: Listen,
    guard: Listen,
    worker: Listen,
    beat: Listen,
    load: Listen,
    last_copy: Callable[[], None],
    pinned: Sequence[str] = (),
) -> list[Part]:
    """The API, the Celery parts and the proxy, in the order of their start; each has a health address.

    They do not need each other while they start, so they start together. They stop in the opposite order:
    first nothing new comes in, then nothing new is scheduled, then what is under way is finished.
    """
    tiergate = (sys.executable, "-m", "service.cli")
    celery = (sys.executable, "-m", "celery", "-A", "workers.app")
    # Gossip, mingling and heartbeats tell workers of each other; here they would only delay the start.
    work = ("worker", "--loglevel", "INFO", "--without-gossip", "--without-mingle", "--without-heartbeat")
    children = str(min(4, max(1, (os.cpu_count() or 1) // 2)))
    return [
        Part(
            name="api",
            command=(*tiergate, "api"),
            ready=_ready(api),
            awaited=False,
            stop_seconds=API_STOP_SECONDS,
        ),
        Part(
            name="guard",
            command=(*celery, *work, "-Q", "guard", "-c", "1", "-n", "guard@%h"),
            env={WORKER_LISTEN: str(guard)},
            ready=_ready(guard),
            awaited=False,
            stop_seconds=WORKER_STOP_SECONDS,
            after_stop=last_copy,
        ),
        Part(
            name="worker",
            command=(*celery, *work, "-Q", "replay", "-c", children, "-n", "replay@%h"),
            env={WORKER_LISTEN: str(worker)},
            ready=_ready(worker),
            awaited=False,
            stop_seconds=WORKER_STOP_SECONDS,
        ),
        # One child: a machine that sends two loads at once measures neither.
        Part(
            name="load",
            command=(*celery, *work, "-Q", "load", "-c", "1", "-n", "load@%h"),
            env={WORKER_LISTEN: str(load)},
            ready=_ready(load),
            awaited=False,
            stop_seconds=WORKER_STOP_SECONDS,
        ),
        # An empty pidfile means none: a stale one would keep beat from starting.
        Part(
            name="beat",
            command=(*celery, "beat", "--loglevel", "INFO", "--pidfile="),
            env={WORKER_LISTEN: str(beat)},
            ready=_ready(beat),
            awaited=False,
        ),
        Part(
            name="proxy",
            command=(*tiergate, "proxy", *(f"--pinned={name}" for name in pinned)),
            ready=_ready(proxy_admin),
            stop_seconds=settings.proxy.drain_seconds + 10,
        ),
    ]


def copy_ledger(database_url: str, redis_url: str, say: Callable[[str], None]) -> None:
    """Bring the last counters of stopped proxies from Redis into SQL, when no guard is left to do it."""
    try:
        database = open_database(database_url)
        try:
            with closing(open_captures(redis_url)) as captures:
                copy_from_redis(database, captures.redis)
        finally:
            database.close()
    except (StoreUnusable, RedisError) as error:
        say(f"the ledger's last counters stay in Redis until the next start: {error}")


def keep_token(settings: Settings, *, now: float) -> Path:
    """Make sure that the state directory holds a token that the database knows; raises `StoreUnusable`."""
    path = settings.state_dir / TOKEN_FILE
    database = open_database(settings.database_url, part="up")
    try:
        if not _is_known(database, path, now):
            secret = create(
                database, name=f"up-{now:.0f}", scopes=TOKEN_SCOPES, now=now, expires_at=None, actor="up"
            )
            write_private(path, secret + "\n")
    finally:
        database.close()
    return path


def _ready(listen: Listen) -> Ready:
    return http_ok(f"{listen.url()}/readyz")


def _is_known(database: Database, path: Path, now: float) -> bool:
    try:
        secret = path.read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return False
    return lookup(database, secret, now) is not None


def _addresses(settings: Settings) -> tuple[Listen, Listen, Listen]:
    proxy, api = settings.proxy, settings.api
    configured = (
        (
            Listen(host=proxy.listen_host, port=proxy.listen_port, path=proxy.listen_path),
            "proxy.listen",
            "TIERGATE_PROXY_LISTEN",
        ),
        (Listen(host=proxy.admin_host, port=proxy.admin_port), "proxy.admin", "TIERGATE_ADMIN_LISTEN"),
        (Listen(host=api.host, port=api.port), "api.listen", "TIERGATE_API_LISTEN"),
    )
    addresses: list[Listen] = []
    for listen, key, variable in configured:
        if listen.path is not None:
            addresses.append(listen)  # the proxy itself finds out whether somebody is there
            continue
        if listen.port:
            check_free(listen, key, variable)
        addresses.append(Listen(host=listen.host, port=listen.port or free_port(listen.host)))
    return addresses[0], addresses[1], addresses[2]


def _celery_addresses(environ: Mapping[str, str]) -> tuple[Listen, Listen, Listen, Listen]:
    """Where worker, guard, beat and load worker are read: at WORKER_LISTEN and above, else at free ports."""
    given = environ.get(WORKER_LISTEN)
    try:
        first = units.listen(given) if given else Listen(host="127.0.0.1")
    except ValueError as error:
        raise PortUnusable(f"{WORKER_LISTEN}: {error}") from None
    if first.port == 0:
        ports = free_ports(CELERY_PARTS, first.host)
    elif first.port + CELERY_PARTS - 1 > MOST_PORT:
        raise PortUnusable(
            f"{WORKER_LISTEN}: guard, beat and load worker need the {CELERY_PARTS - 1} ports above "
            f"{first.port}"
        )
    else:
        ports = [first.port + place for place in range(CELERY_PARTS)]
    worker, guard, beat, load = (Listen(host=first.host, port=port) for port in ports)
    if first.port:
        for listen in (worker, guard, beat, load):
            check_free(listen, WORKER_LISTEN)
    return worker, guard, beat, load
