"""Counters of prefix caches as the guard read them, kept for days: a verdict over one rests on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import delete, func, select

from service.capacity.prefix_gate import Reading
from service.capacity.prefix_window import Look
from service.store.sql.capacity_tables import engine_readings
from service.store.sql.database import Database

READING_SECONDS = 900.0
"""Between two readings of one backend that are kept: a day has 96."""
KEPT_SECONDS = 8 * 86_400.0
BackendKey = tuple[str, str, str]
"""Model, tier, URL."""


def record_readings(db: Database, looks: Mapping[BackendKey, Look]) -> None:
    """Keep what backends told; a second word of the same moment changes nothing."""
    rows = [
        {
            "model": model,
            "tier": tier,
            "backend": backend,
            "at": look.at,
            "prefill_tokens": look.reading.prefill_tokens,
            "reused_tokens": look.reading.reused_tokens,
            "prefill_seconds": look.reading.prefill_seconds,
            "decode_seconds": look.reading.decode_seconds,
            "running": look.running,
            "kv_usage": look.kv_usage,
            "evicted_tokens": look.evicted,
        }
        for (model, tier, backend), look in sorted(looks.items())
    ]
    if not rows:
        return
    with db.write() as connection:
        connection.execute(db.insert(engine_readings).on_conflict_do_nothing(), rows)


def due_backends(db: Database, asked: Iterable[BackendKey], *, now: float) -> set[BackendKey]:
    """Those whose last reading is old enough for another one."""
    at = func.max(engine_readings.c.at).label("at")
    keys = (engine_readings.c.model, engine_readings.c.tier, engine_readings.c.backend)
    with db.read() as connection:
        rows = connection.execute(
            select(*keys, at).where(engine_readings.c.at > now - READING_SECONDS).group_by(*keys)
        ).all()
    fresh = {(row.model, row.tier, row.backend) for row in rows}
    return set(asked) - fresh


def read_looks(db: Database, model: str, tier: str, *, since: float) -> list[Look]:
    """What the serving backends of a tier told from a time on, by backend and time."""
    table = engine_readings.c
    with db.read() as connection:
        rows = connection.execute(
            select(engine_readings)
            .where(table.model == model, table.tier == tier, table.at >= since)
            .order_by(table.backend, table.at)
        ).all()
    return [
        Look(
            backend=row.backend,
            at=row.at,
            reading=Reading(
                prefill_tokens=row.prefill_tokens,
                reused_tokens=row.reused_tokens,
                prefill_seconds=row.prefill_seconds,
                decode_seconds=row.decode_seconds,
            ),
            running=row.running,
            kv_usage=row.kv_usage,
            evicted=row.evicted_tokens,
        )
        for row in rows
    ]


def forget_readings(db: Database, *, before: float) -> int:
    """Take away what was told before a time; how many readings."""
    with db.write() as connection:
        return connection.execute(delete(engine_readings).where(engine_readings.c.at < before)).rowcount
