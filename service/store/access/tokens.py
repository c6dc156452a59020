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

from sqlalchemy import Connection, Row, delete, select, update
from sqlalchemy.exc import IntegrityError

from service.store.decided.decisions import append_within
from service.store.sql.database import Database
from service.store.sql.schema import tokens
from service.store.sql.token_tables import former_secrets, token_models

SCOPES = frozenset({"read", "label", "approve", "admin"})
MOST_GRACE = 30 * 86400.0
LONGEST = 100 * 365.25 * 86400.0
"""Seconds to a token's end; beyond the year 9999 nobody can say when it is."""
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
    models: frozenset[str] | None = None
    """The only ones it is for; None = all."""


class NameTaken(ValueError):
    """There is a token of that name, in force or revoked: the log names tokens, so names are used once."""


def create(
    db: Database,
    *,
    name: str,
    scopes: Collection[str],
    now: float,
    expires_at: float | None = None,
    models: Collection[str] = (),
    actor: str = SHELL,
) -> str:
    """Make a token, log it, and return its secret, which is stored nowhere. ValueError for bad input.

    With `models` it is for these alone.
    """
    if not name or len(name) > 100 or not name.isprintable():
        raise ValueError(f"a token needs a name of 1 to 100 printable characters, got {name!r}")
    if unknown := set(scopes) - SCOPES:
        raise ValueError(f"unknown scopes {sorted(unknown)}; there are {sorted(SCOPES)}")
    if not scopes:
        raise ValueError(f"a token needs at least one scope of {sorted(SCOPES)}")
    if not all(model and model.isprintable() for model in models):
        raise ValueError("a model that a token is for has a name of printable characters")
    _check_end(expires_at, now)
    token_id, secret = _new_secret()
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
            for model in sorted(set(models)):
                connection.execute(token_models.insert().values(name=name, model=model))
            detail: dict[str, object] = {
                "token": name,
                "token_id": token_id,
                "scopes": sorted(scopes),
                "expires_at": expires_at,
            }
            if models:
                detail["models"] = sorted(set(models))
            _log(db, connection, "token_made", detail, now, actor)
    except IntegrityError as error:
        raise NameTaken(f"there is a token named {name!r} already; take another name") from error
    return secret


def lookup(db: Database, secret: str, now: float) -> Token | None:
    """The token of a secret, None when there is none, it was revoked or it has expired.

    A secret that was rotated away is one until the time it was given ends.
    """
    token_id = id_of(secret)
    former = former_secrets.c
    with db.read() as connection:
        row = connection.execute(select(tokens).where(tokens.c.token_id == token_id)).one_or_none()
        expected = "" if row is None else str(row.digest)
        if row is None and token_id:
            found = connection.execute(
                select(tokens, former.digest.label("former_digest"))
                .join(former_secrets, former.name == tokens.c.name)
                .where(former.token_id == token_id, former.until > now)
            ).one_or_none()
            row, expected = found, "" if found is None else str(found.former_digest)
        if not hmac.compare_digest(_digest(secret), expected) or row is None:
            return None
        if row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= now):
            return None
        return _token(row, _models_of(connection, row.name).get(row.name))


def named_by(db: Database, token_id: str, now: float) -> Token | None:
    """The token in force whose present secret begins with that id; None once that was rotated away."""
    alive = tokens.c.revoked_at.is_(None) & (tokens.c.expires_at.is_(None) | (tokens.c.expires_at > now))
    with db.read() as connection:
        row = connection.execute(select(tokens).where(tokens.c.token_id == token_id, alive)).one_or_none()
        return None if row is None else _token(row, _models_of(connection, row.name).get(row.name))


def id_of(secret: str) -> str:
    """The part of a secret that is none, by which its row is found; empty for what is no secret of ours."""
    parts = secret.split("_", 2)
    return parts[1] if len(parts) == 3 and parts[0] == "tg" and parts[1].isalnum() else ""


def rotate(
    db: Database,
    name: str,
    *,
    now: float,
    grace_seconds: float = 0.0,
    expires_at: float | None = None,
    actor: str = SHELL,
) -> str:
    """A new secret for a token in force, logged; the one before is good for `grace_seconds` more.

    Scopes, models and name stay. `expires_at` is a new end; None keeps the one there is. KeyError where no
    token of that name is in force; ValueError for bad input.
    """
    if not 0 <= grace_seconds <= MOST_GRACE:
        raise ValueError(f"a secret that is rotated away is good for 0 to {MOST_GRACE / 3600:g} hours more")
    _check_end(expires_at, now)
    token_id, secret = _new_secret()
    with db.write() as connection:
        alive = tokens.c.expires_at.is_(None) | (tokens.c.expires_at > now)
        mine = select(tokens).where(tokens.c.name == name, tokens.c.revoked_at.is_(None), alive)
        row = connection.execute(mine.with_for_update()).one_or_none()
        if row is None:
            raise KeyError(name)
        # One secret besides the new one at most: whoever rotates twice means the first to be gone.
        connection.execute(
            delete(former_secrets).where((former_secrets.c.name == name) | (former_secrets.c.until <= now))
        )
        if grace_seconds:
            connection.execute(
                former_secrets.insert().values(
                    token_id=row.token_id, name=name, digest=row.digest, until=now + grace_seconds
                )
            )
        ends = row.expires_at if expires_at is None else expires_at
        connection.execute(
            update(tokens)
            .where(tokens.c.name == name)
            .values(token_id=token_id, digest=_digest(secret), expires_at=ends)
        )
        detail = {
            "token": name,
            "token_id": token_id,
            "former_until": now + grace_seconds,
            "expires_at": ends,
        }
        _log(db, connection, "token_rotated", detail, now, actor)
    return secret


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
        models = _models_of(connection)
        rows = connection.execute(select(tokens).where(alive).order_by(tokens.c.name))
        return [_token(row, models.get(row.name)) for row in rows]


def _check_end(expires_at: float | None, now: float) -> None:
    if expires_at is not None and not now < expires_at <= now + LONGEST:
        raise ValueError("a token expires later than now, and within a hundred years")


def _new_secret() -> tuple[str, str]:
    """An id and the secret that begins with it."""
    token_id = secrets.token_hex(6)
    return token_id, f"tg_{token_id}_{secrets.token_urlsafe(32)}"


def _models_of(connection: Connection, only: str | None = None) -> dict[str, frozenset[str]]:
    """By name of token, of all or of one; a token that is not in here is for every model."""
    known: dict[str, set[str]] = {}
    asked = select(token_models.c.name, token_models.c.model)
    if only is not None:
        asked = asked.where(token_models.c.name == only)
    for name, model in connection.execute(asked):
        known.setdefault(name, set()).add(model)
    return {name: frozenset(models) for name, models in known.items()}


def _log(
    db: Database, connection: Connection, action: str, detail: Mapping[str, object], at: float, actor: str
) -> None:
    """A token is of no model: that of its row is empty."""
    append_within(db, connection, at=at, actor=actor, action=action, model="", tier=None, detail=detail)


def _digest(secret: str) -> str:
    return sha256(secret.encode(errors="surrogatepass")).hexdigest()


def _token(row: Row[tuple[object, ...]], models: frozenset[str] | None) -> Token:
    return Token(
        name=row.name,
        scopes=frozenset(row.scopes.split(",")),
        created_at=row.created_at,
        expires_at=row.expires_at,
        models=models,
    )
