from __future__ import annotations

import base64
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.settings import Settings
from service.settings.secrets import (
    SecretUnreadable,
    make_key,
    read_keyring,
    read_secret,
    sampling_salt,
    secret_from,
)
from tests.leash import Leashed

KEY = bytes(range(32))
OTHER = bytes(range(1, 33))


def test_a_secret_is_the_first_line_without_white_space(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("\n  sk-123  \nsecond\n")
    assert read_secret(path) == "sk-123"


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xfe"])
def test_a_file_without_a_secret_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    with pytest.raises(SecretUnreadable, match=str(path)):
        read_secret(path)


def test_a_missing_file_and_a_directory_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SecretUnreadable, match="there is no file"):
        read_secret(tmp_path / "nowhere")
    with pytest.raises(SecretUnreadable, match="is a directory"):
        read_secret(tmp_path)


def test_a_variable_goes_before_the_file_that_its_sibling_names(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("from-file\n")
    assert secret_from({"X": "plain", "X_FILE": str(path)}, "X") == "plain"
    assert secret_from({"X": "", "X_FILE": str(path)}, "X") == "from-file"
    assert secret_from({}, "X") is None


@pytest.mark.parametrize("write", [bytes.hex, lambda key: base64.b64encode(key).decode()])
def test_a_capture_key_may_be_hex_or_base64(tmp_path: Path, write: Callable[[bytes], str]) -> None:
    path = tmp_path / "capture.key"
    path.write_text(f"# ours\n{write(KEY)}\n")
    keyring = read_keyring(path)
    assert keyring.keys[keyring.current] == KEY


def test_the_first_key_seals_and_the_others_still_open(tmp_path: Path) -> None:
    path = tmp_path / "capture.key"
    path.write_text(f"{KEY.hex()}\n")
    before = read_keyring(path)
    path.write_text(f"{OTHER.hex()}\n{KEY.hex()}\n")
    after = read_keyring(path)
    assert after.keys[after.current] == OTHER
    assert after.keys[before.current] == KEY


def test_adding_a_key_changes_neither_samples_nor_tenants(tmp_path: Path) -> None:
    path = tmp_path / "capture.key"
    path.write_text(f"{KEY.hex()}\n")
    salt = sampling_salt(read_keyring(path))
    path.write_text(f"{OTHER.hex()}\n{KEY.hex()}\n")
    assert sampling_salt(read_keyring(path)) == salt
    path.write_text(f"{OTHER.hex()}\n")
    assert sampling_salt(read_keyring(path)) != salt


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no capture key"),
        ("not a key!", "neither hex nor base64"),
        ("00" * 31, "neither hex nor base64"),
        (base64.b64encode(bytes(16)).decode(), "16 bytes instead of 32"),
    ],
)
def test_a_file_without_a_good_key_says_how_to_make_one(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "capture.key"
    path.write_text(content)
    with pytest.raises(SecretUnreadable, match=message) as caught:
        read_keyring(path)
    assert "openssl rand -hex 32" in str(caught.value)
    assert content == "" or content not in str(caught.value)


def test_many_processes_that_make_the_key_at_once_agree_on_one(tmp_path: Path) -> None:
    path = tmp_path / "state" / "capture.key"
    code = (
        "import sys, pathlib\n"
        "from service.settings.secrets import make_key\n"
        "make_key(pathlib.Path(sys.argv[1]))"
    )
    children = [Leashed([sys.executable, "-c", code, str(path)]) for _ in range(3)]
    assert [child.wait() for child in children] == [0] * 3
    made = path.read_text()
    make_key(path)
    assert path.read_text() == made
    assert [each.name for each in path.parent.iterdir()] == ["capture.key"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_key_is_never_made_where_other_machines_must_share_it(
    minimal: dict[str, Any], problems: Callable[..., list[str]], tmp_path: Path
) -> None:
    (problem,) = problems(minimal, {"TIERGATE_REDIS_URL": "redis://redis.internal:6379/0"})
    assert "key_file is needed where Redis is on another machine" in problem
    assert not (tmp_path / ".tiergate" / "capture.key").exists()


def test_a_named_key_serves_where_redis_is_on_another_machine(
    minimal: dict[str, Any], loaded: Callable[..., Settings], tmp_path: Path
) -> None:
    (tmp_path / "capture.key").write_text(KEY.hex())
    minimal["mirror"] = {"capture": {"key_file": "capture.key"}}
    found = loaded(minimal, {"TIERGATE_REDIS_URL": "redis://redis.internal:6379/0"})
    assert found.proxy.capture_keys[found.proxy.capture_key_id] == KEY


def test_secrets_do_not_show_when_settings_are_printed(
    minimal: dict[str, Any], loaded: Callable[..., Settings], tmp_path: Path
) -> None:
    (tmp_path / "api.key").write_text("sk-very-secret")
    minimal["models"]["qwen"]["ladder"][0]["backends"] = [{"url": "http://a:1", "api_key_file": "api.key"}]
    found = loaded(minimal)
    assert found.ladders["qwen"].baseline.backends[0].api_key == "sk-very-secret"
    assert "sk-very-secret" not in repr(found)
    assert repr(next(iter(found.keyring.keys.values()))) not in repr(found)
