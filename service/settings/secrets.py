"""Secrets, read from files or the environment, never from the configuration's own text."""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import os
from collections.abc import Mapping
from pathlib import Path

from service.store.redis.capture import Keyring

KEY_BYTES = 32
NO_KEY_YET = "none yet"
"""Id of the key that stands for one which is still to be made."""
MAKE_A_KEY = "make one with `openssl rand -hex 32 > FILE`"


class SecretUnreadable(Exception):
    """A secret that is not where the configuration says, with what to do."""


def read_secret(path: Path) -> str:
    """The first line of a file, without white space around it; raises `SecretUnreadable`."""
    lines = _lines(path)
    if not lines:
        raise SecretUnreadable(f"{path} is empty")
    return lines[0]


def read_secrets(path: Path, *, most: int) -> tuple[str, ...]:
    """The lines of a file, one secret each; raises `SecretUnreadable`."""
    lines = _lines(path)
    if not lines:
        raise SecretUnreadable(f"{path} is empty")
    if len(lines) > most:
        raise SecretUnreadable(f"{path} holds {len(lines)} secrets, one a line; {most} at most")
    return tuple(lines)


def secret_from(environ: Mapping[str, str], name: str) -> str | None:
    """The variable, or the first line of the file that `NAME_FILE` names; None when neither is set."""
    if environ.get(name):
        return environ[name]
    if file := environ.get(f"{name}_FILE"):
        return read_secret(Path(file))
    return None


def read_keyring(path: Path) -> Keyring:
    """Capture keys, one a line, the first of which seals; raises `SecretUnreadable`.

    A key's id is the beginning of its hash, so that keys can be added and removed without naming them.
    """
    keys: dict[str, bytes] = {}
    lines = [line for line in _lines(path) if not line.startswith("#")]
    for line in lines:
        key = _decode(line, path)
        keys[hashlib.sha256(key).hexdigest()[:8]] = key
    if not keys:
        raise SecretUnreadable(f"{path} holds no capture key; {MAKE_A_KEY}")
    return Keyring(current=next(iter(keys)), keys=keys)


def make_key(path: Path) -> None:
    """Write a new capture key, mode 0600, unless the file is there already; safe among several processes."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(base64.b64encode(os.urandom(KEY_BYTES)).decode() + "\n")
    try:
        # A link appears whole and never replaces the key that another process made first.
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        fresh.unlink()


def key_to_be_made() -> Keyring:
    """What stands for the keys until somebody makes them; nothing sealed with it can be opened again."""
    return Keyring(current=NO_KEY_YET, keys={NO_KEY_YET: os.urandom(KEY_BYTES)})


def sampling_salt(keyring: Keyring) -> bytes:
    """Keys the sampling and tenant hashes; from the oldest key, so that adding a key changes no sample."""
    oldest = list(keyring.keys.values())[-1]
    return hmac.digest(oldest, b"tiergate sampling and tenants", "sha256")


def session_secret(keyring: Keyring) -> bytes:
    """What signs browsers' sessions besides the database's key: whoever reads that alone can forge none.

    From the oldest key, so that adding a key ends no session.
    """
    oldest = list(keyring.keys.values())[-1]
    return hmac.digest(oldest, b"tiergate sessions of browsers", "sha256")


def read_text(path: Path) -> str:
    """All of a file; raises `SecretUnreadable`."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SecretUnreadable(f"there is no file {path}") from None
    except IsADirectoryError:
        raise SecretUnreadable(f"{path} is a directory") from None
    except PermissionError:
        raise SecretUnreadable(f"{path} may not be read by this user") from None
    except UnicodeDecodeError:
        raise SecretUnreadable(f"{path} is not text") from None
    except OSError as error:
        raise SecretUnreadable(f"{path} cannot be read: {error.strerror}") from None


def _lines(path: Path) -> list[str]:
    return [line.strip() for line in read_text(path).splitlines() if line.strip()]


def _decode(line: str, path: Path) -> bytes:
    try:
        key = bytes.fromhex(line) if len(line) == 2 * KEY_BYTES else base64.b64decode(line, validate=True)
    except (ValueError, binascii.Error):
        raise SecretUnreadable(f"{path} holds a line that is neither hex nor base64; {MAKE_A_KEY}") from None
    if len(key) != KEY_BYTES:
        raise SecretUnreadable(f"{path} holds a key of {len(key)} bytes instead of {KEY_BYTES}; {MAKE_A_KEY}")
    return key
