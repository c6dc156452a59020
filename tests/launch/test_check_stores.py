from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.launch import Supervisor
from service.launch.check import Level, Line
from service.launch.check_stores import is_too_old, store_lines
from service.launch.valkey import embedded_valkey
from service.settings import load
from service.store.sql.database import open_database
from tests.conftest import ValkeyServer
from tests.ports import free_port

Asked = Callable[..., dict[str, Line]]


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    """Store lines by subject, with this environment."""

    def ask(**environ: str) -> dict[str, Line]:
        path = tmp_path / "tiergate.yaml"
        path.write_text("models: {qwen: {ladder: [{tier: bf16, backends: ['http://a:1']}]}}\n")
        return {line.subject: line for line in store_lines(load(path, environ, make_key=False))}

    return ask


@contextmanager
def valkey_with(directory: Path, **options: str) -> Iterator[str]:
    directory.mkdir()
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    server = ValkeyServer(directory=directory, options=("--save", "", *flags))
    server.start()
    try:
        yield server.url
    finally:
        server.kill()


def test_what_is_embedded_needs_nothing(asked: Asked, tmp_path: Path) -> None:
    lines = asked()
    assert {line.level for line in lines.values()} == {Level.OK}
    assert "embedded" in lines["redis"].text
    assert str(tmp_path / ".tiergate" / "tiergate.db") in lines["database"].text
    assert f"none in {tmp_path / '.tiergate'} yet" in lines["capture key"].text
    assert not (tmp_path / ".tiergate").exists()


def test_stores_that_are_there_are_read_and_not_changed(asked: Asked, tmp_path: Path) -> None:
    settings = load(tmp_path / "tiergate.yaml", {}) if asked() else None
    assert settings is not None
    open_database(settings.database_url).close()
    before = {path.name: path.read_bytes() for path in (tmp_path / ".tiergate").iterdir()}
    lines = asked()
    assert "seals with" in lines["capture key"].text
    assert "yet" not in lines["database"].text
    assert {path.name: path.read_bytes() for path in (tmp_path / ".tiergate").iterdir()} == before


def test_a_database_that_could_not_be_made_fails(asked: Asked, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.touch(mode=0o600)  # a file where a directory should be, which stops even root
    line = asked(TIERGATE_DATABASE_URL=f"sqlite:///{closed}/tiergate.db")["database"]
    assert line.level is Level.FAIL
    assert "let this user write there" in line.text


def test_a_state_directory_that_cannot_be_made_fails(asked: Asked, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.touch()
    place = str(closed / "state" / "deeper")
    line = asked(TIERGATE_STATE_DIR=place)["state directory"]
    assert line.level is Level.FAIL
    assert place in line.text
    assert f"{closed} is no directory; set store.state_dir or TIERGATE_STATE_DIR" in line.text


def test_a_state_directory_that_this_user_may_not_write_to_fails(tmp_path: Path) -> None:
    (tmp_path / "tiergate.yaml").write_text(
        "models: {qwen: {ladder: [{tier: bf16, backends: ['http://a:1']}]}}\n"
    )
    tmp_path.chmod(0o555)
    # Root may write everywhere, unless it gives that up.
    give_up = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]
    look = (
        "from pathlib import Path; from service.settings import load;"
        " from service.launch.check_stores import store_lines;"
        " print(*store_lines(load(Path('tiergate.yaml'), {}, make_key=False)), sep='\\n')"
    )
    try:
        told = subprocess.run(
            [*(give_up if os.geteuid() == 0 else []), sys.executable, "-c", look],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        tmp_path.chmod(0o755)
    assert (
        f"fail  state directory: {tmp_path / '.tiergate'}: {tmp_path} may not be written to" in told.stdout
    ), told


def test_one_server_for_both_is_a_broker_and_must_not_evict(asked: Asked, tmp_path: Path) -> None:
    with valkey_with(tmp_path / "v", appendonly="yes", maxmemory_policy="noeviction") as url:
        line = asked(TIERGATE_REDIS_URL=url)["redis"]
    assert (line.level, "noeviction" in line.text, "Valkey" in line.text) == (Level.OK, True, True)


def test_a_broker_that_may_evict_fails_with_what_to_set(asked: Asked, tmp_path: Path) -> None:
    with valkey_with(tmp_path / "v", appendonly="yes", maxmemory_policy="allkeys-lru") as url:
        line = asked(TIERGATE_REDIS_URL=url)["redis"]
    assert line.level is Level.FAIL
    assert "CONFIG SET maxmemory-policy noeviction" in line.text


def test_a_broker_without_append_only_file_is_warned_of(asked: Asked, tmp_path: Path) -> None:
    with valkey_with(tmp_path / "v", appendonly="no") as url:
        line = asked(TIERGATE_REDIS_URL=url)["redis"]
    assert (line.level, "no append-only file" in line.text) == (Level.WARN, True)


@pytest.mark.parametrize(("maxmemory", "level"), [("2047mb", Level.WARN), ("2048mb", Level.OK)])
def test_a_server_that_captures_may_fill_is_warned_of(
    maxmemory: str, level: Level, asked: Asked, tmp_path: Path
) -> None:
    with valkey_with(tmp_path / "v", appendonly="yes", maxmemory=maxmemory) as url:
        line = asked(TIERGATE_REDIS_URL=url)["redis"]
    assert (line.level, "1024 MiB of captures" in line.text) == (level, level is Level.WARN)


def test_captures_may_live_on_a_server_of_their_own_that_evicts_what_expires(
    asked: Asked, tmp_path: Path
) -> None:
    with (
        valkey_with(tmp_path / "captures", maxmemory_policy="volatile-ttl") as captures,
        valkey_with(tmp_path / "broker", appendonly="yes") as broker,
    ):
        lines = asked(TIERGATE_REDIS_URL=captures, TIERGATE_BROKER_URL=broker)
    assert lines["redis"].level is Level.OK
    assert lines["broker"].level is Level.OK


def test_a_password_that_is_refused_is_told_without_it(asked: Asked, tmp_path: Path, said: list[str]) -> None:
    valkey = embedded_valkey(tmp_path)
    with Supervisor([valkey.part()], tmp_path / "logs", environ=os.environ, say=said.append):
        line = asked(TIERGATE_REDIS_URL=valkey.url.replace(valkey.password, "wrong-one"))["redis"]
    assert line.level is Level.FAIL
    assert "wrong-one" not in line.text


def test_a_server_that_is_not_there_names_the_variable(asked: Asked) -> None:
    line = asked(TIERGATE_REDIS_URL=f"redis://127.0.0.1:{free_port()}/0")["redis"]
    assert line.level is Level.FAIL
    assert "TIERGATE_REDIS_URL" in line.text


def test_a_frozen_server_is_given_up(asked: Asked, own_valkey: ValkeyServer) -> None:
    own_valkey.freeze()
    try:
        line = asked(TIERGATE_REDIS_URL=own_valkey.url)["redis"]
    finally:
        own_valkey.thaw()
    assert line.level is Level.FAIL


def test_a_corrupt_database_says_what_to_do(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / ".tiergate").mkdir()
    (tmp_path / ".tiergate" / "tiergate.db").write_bytes(os.urandom(8192))
    line = asked()["database"]
    assert line.level is Level.FAIL
    assert "restore a backup, or move it away" in line.text


def test_damage_in_the_middle_of_a_database_is_found(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / ".tiergate").mkdir()
    open_database(f"sqlite:///{tmp_path}/.tiergate/tiergate.db").close()
    assert asked()["database"].level is Level.OK
    (file,) = (tmp_path / ".tiergate").glob("*.db")
    with file.open("r+b") as pages:
        pages.seek(file.stat().st_size - 4096)
        pages.write(b"\xff" * 4096)
    line = asked()["database"]
    assert line.level is Level.FAIL
    assert "it is damaged: restore a backup, or move it away" in line.text


def test_older_keys_are_counted(asked: Asked, tmp_path: Path) -> None:
    key_file = tmp_path / "capture.key"
    key_file.write_text(f"{'01' * 32}\n{'02' * 32}\n{'03' * 32}\n")
    assert (
        "opens what 2 older ones sealed" in asked(TIERGATE_CAPTURE_KEY_FILE=str(key_file))["capture key"].text
    )


@pytest.mark.parametrize(
    ("facts", "too_old"),
    [
        ({"redis_version": "6.2.14"}, True),
        ({"redis_version": "7.0.0"}, False),
        ({"redis_version": "7.2.4", "valkey_version": "9.1.2"}, False),
        ({"redis_version": "10.0"}, False),
        ({}, False),
        ({"redis_version": "of my own"}, False),
    ],
)
def test_captures_need_a_redis_of_version_7(facts: dict[str, object], too_old: bool) -> None:
    assert is_too_old(facts) is too_old
