"""Bearer tokens of the API, stored as sha256: whoever reads the database cannot use them.

A secret is `tg_ID_RANDOM`. The row is found by the id, which is no secret, and the rest is compared in
constant time; 256 random bits need no slow hash.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import Connection, Row, select, update
from sqlalchemy.exc import IntegrityError

from service.store.database import Database
from service.store.decisions import append_within
from service.store.schema import tokens

SCOPES = frozenset({"read", "label", "approve", "admin"})
SHELL = "shell"
"""Signs what somebody did who may write to the database anyway and did not say who."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Who a secret belongs to and what it may do."""

    name: str
    scopes: frozenset[str]
    created_at: float
    """Unix seconds."""
    expires_at: float | None
    """None = until revoked."""


class NameTaken(ValueError):
    """There is a token of that name, in force or revoked: the log names tokens, so names are used once."""


def create(
    db: Database,
    *,
    name: str,
    scopes: Collection[str],
    now: float,
    expires_at: float | None = None,
    actor: str = SHELL,
) -> str:
    """Make a token, log it, and return its secret, which is stored nowhere. ValueError for bad input."""
    if not name or len(name) > 100 or not name.isprintable():
        raise ValueError(f"a token needs a name of 1 to 100 printable characters, got {name!r}")
    if unknown := set(scopes) - SCOPES:
        raise ValueError(f"unknown scopes {sorted(unknown)}; there are {sorted(SCOPES)}")
    if not scopes:
        raise ValueError(f"a token needs at least one scope of {sorted(SCOPES)}")
    if expires_at is not None and expires_at <= now:
        raise ValueError("a token must expire after it is made")
    token_id = secrets.token_hex(6)
    secret = f"tg_{token_id}_{secrets.token_urlsafe(32)}"
    try:
        with db.write() as connection:
            connection.execute(
                tokens.insert().values(
                    token_id=token_id,
                    name=name,
                    digest=_digest(secret),
                    scopes=",".join(sorted(scopes)),
                    created_at=now,
                    expires_at=expires_at,
                )
            )
            detail = {"token": name, "token_id": token_id, "scopes": sorted(scopes), "expires_at": expires_at}
            _log(db, connection, "token_made", detail, now, actor)
    except IntegrityError as error:
        raise NameTaken(f"there is a token named {name!r} already; take another name") from error
    return secret


def lookup(db: Database, secret: str, now: float) -> Token | None:
    """The token of a secret, None when there is none, it was revoked or it has expired."""
    parts = secret.split("_", 2)
    token_id = parts[1] if len(parts) == 3 and parts[0] == "tg" and parts[1].isalnum() else ""
    with db.read() as connection:
        row = connection.execute(select(tokens).where(tokens.c.token_id == token_id)).one_or_none()
    expected = "" if row is None else str(row.digest)
    if not hmac.compare_digest(_digest(secret), expected) or row is None:
        return None
    if row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= now):
        return None
    return _token(row)


def revoke(db: Database, name: str, *, now: float, actor: str = SHELL, reason: str | None = None) -> bool:
    """End a token and log it; False when there is none in force of that name."""
    with db.write() as connection:
        done = connection.execute(
            update(tokens).where(tokens.c.name == name, tokens.c.revoked_at.is_(None)).values(revoked_at=now)
        )
        if done.rowcount:
            _log(db, connection, "token_revoked", {"token": name, "reason": reason}, now, actor)
        return done.rowcount > 0


def list_tokens(db: Database, now: float) -> list[Token]:
    """Tokens in force, by name."""
    alive = tokens.c.revoked_at.is_(None) & (tokens.c.expires_at.is_(None) | (tokens.c.expires_at > now))
    with db.read() as connection:
        return [
            _token(row) for row in connection.execute(select(tokens).where(alive).order_by(tokens.c.name))
        ]


def _log(
    db: Database, connection: Connection, action: str, detail: Mapping[str, object], at: float, actor: str
) -> None:
    """A token is of no model: that of its row is empty."""
    append_within(db, connection, at=at, actor=actor, action=action, model="", tier=None, detail=detail)


def _digest(secret: str) -> str:
    return sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _token(row: Row[tuple[object, ...]]) -> Token:
    return Token(
        name=row.name,
        scopes=frozenset(row.scopes.split(",")),
        created_at=row.created_at,
        expires_at=row.expires_at,
    )
