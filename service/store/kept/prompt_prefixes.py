"""Hashes of the beginnings of captured prompts, kept for a while: what a cache could reuse of traffic."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, select

from service.store.sql.capacity_tables import prompt_prefixes
from service.store.sql.database import Database

_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPrefix:
    """One captured prompt."""

    capture_id: str
    model: str
    tenant: str
    at: float
    """When it was asked, in Unix seconds."""
    tokens: int
    """About as many."""
    named: tuple[int, ...]
    """See `service.wire.prompt_blocks`."""
    share: float
    """Of requests that were sampled then, above 0."""
    together: bool
    """Whether it was sampled with its conversation."""


def keep_prefix_within(
    db: Database, connection: Connection, kept: PromptPrefix, *, expires_at: float
) -> None:
    """Keep it, once: a capture that is delivered twice was asked once."""
    row = {
        "capture_id": kept.capture_id,
        "model": kept.model,
        "tenant": kept.tenant,
        "at": kept.at,
        "tokens": kept.tokens,
        "blocks": b"".join(name.to_bytes(_BYTES, "big") for name in kept.named),
        "share": kept.share,
        "together": kept.together,
        "expires_at": expires_at,
    }
    connection.execute(db.insert(prompt_prefixes).values(row).on_conflict_do_nothing())


def read_prefixes(db: Database, model: str, *, since: float | None = None) -> list[PromptPrefix]:
    """Those of a model in the order in which they were asked, as far back as as many were sampled as now.

    `since`: none from before that (unix seconds).
    """
    table = prompt_prefixes.c
    with db.read() as connection:
        latest = connection.execute(
            select(table.share).where(table.model == model).order_by(table.at.desc()).limit(1)
        ).scalar_one_or_none()
        other = select(table.at).where(table.model == model, table.share != latest).order_by(table.at.desc())
        changed = connection.execute(other.limit(1)).scalar_one_or_none()
        bounds = [] if changed is None else [table.at > changed]
        bounds += [] if since is None else [table.at >= since]
        rows = connection.execute(
            select(prompt_prefixes).where(table.model == model, *bounds).order_by(table.at, table.capture_id)
        ).all()
    return [
        PromptPrefix(
            capture_id=row.capture_id,
            model=row.model,
            tenant=row.tenant,
            at=row.at,
            tokens=row.tokens,
            named=_names(bytes(row.blocks)),
            share=row.share,
            together=row.together,
        )
        for row in rows
    ]


def trim_prefixes(db: Database, *, most: int) -> int:
    """Keep the latest `most` of each model; how many are gone."""
    table, gone = prompt_prefixes.c, 0
    with db.write() as connection:
        for model in connection.execute(select(table.model).distinct()).scalars().all():
            newest = select(table.at).where(table.model == model).order_by(table.at.desc()).offset(most)
            last = connection.execute(newest.limit(1)).scalar_one_or_none()
            if last is not None:
                old = delete(prompt_prefixes).where(table.model == model, table.at <= last)
                gone += connection.execute(old).rowcount
    return gone


def _names(blocks: bytes) -> tuple[int, ...]:
    return tuple(
        int.from_bytes(blocks[begin : begin + _BYTES], "big") for begin in range(0, len(blocks), _BYTES)
    )
