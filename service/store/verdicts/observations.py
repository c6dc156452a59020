"""What engines told of themselves, and the artifact that each tier is: kept between the guard's looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, delete, select

from service.engines.facts import EngineFacts, facts_of_json
from service.engines.settling import Settlement, Word, settle
from service.store.sql.database import Database
from service.store.sql.engine_tables import backend_words, tier_artifacts

TierKey = tuple[str, str]
"""Model and tier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A tier before and after a look."""

    before: Settlement
    after: Settlement


def record_look(
    db: Database, told: Mapping[TierKey, Mapping[str, EngineFacts | None]], *, now: float
) -> dict[TierKey, Turn]:
    """Keep what the backends of each tier told, by address, and settle the tiers; None is silence.

    Backends that are not among those of their tier any more are forgotten.
    """
    turns: dict[TierKey, Turn] = {}
    with db.write() as connection:
        db.lock(connection, "engines")
        for (model, tier), answers in sorted(told.items()):
            kept = {word.backend: word for word in _words(connection, model, tier) if word.backend in answers}
            fresh = {
                backend: Word(backend=backend, facts=facts, at=now)
                for backend, facts in answers.items()
                if facts is not None
            }
            before = _settlement(connection, model, tier)
            after = settle(before, list((kept | fresh).values()), now=now)
            turns[model, tier] = Turn(before=before, after=after)
            _keep_words(db, connection, (model, tier), fresh, set(answers))
            if after != before:
                _keep_settlement(db, connection, (model, tier), after)
    return turns


def read_words(db: Database, model: str, tier: str) -> list[Word]:
    """The latest that each backend of a tier told, and when, by address."""
    with db.read() as connection:
        return _words(connection, model, tier)


def read_settlements(db: Database) -> dict[TierKey, Settlement]:
    """Every tier that was ever heard of; within one moment read once, however many tiers ask."""

    def read() -> dict[TierKey, Settlement]:
        with db.read() as connection:
            rows = connection.execute(select(tier_artifacts)).mappings()
            return {(row["model"], row["tier"]): _settlement_of(row) for row in rows}

    return db.once("settlements", read)


def _words(connection: Connection, model: str, tier: str) -> list[Word]:
    rows = connection.execute(
        select(backend_words)
        .where(backend_words.c.model == model, backend_words.c.tier == tier)
        .order_by(backend_words.c.backend)
    )
    return [Word(backend=row.backend, facts=facts_of_json(row.facts), at=row.told_at) for row in rows]


def _keep_words(
    db: Database, connection: Connection, key: TierKey, fresh: Mapping[str, Word], configured: set[str]
) -> None:
    model, tier = key
    connection.execute(
        delete(backend_words).where(
            backend_words.c.model == model,
            backend_words.c.tier == tier,
            backend_words.c.backend.not_in(sorted(configured)),
        )
    )
    if not fresh:
        return
    insert = db.insert(backend_words)
    connection.execute(
        insert.on_conflict_do_update(
            index_elements=list(backend_words.primary_key.columns),
            set_={"facts": insert.excluded.facts, "told_at": insert.excluded.told_at},
        ),
        [
            {
                "model": model,
                "tier": tier,
                "backend": word.backend,
                "facts": word.facts.as_json(),
                "told_at": word.at,
            }
            for word in fresh.values()
        ],
    )


def _settlement(connection: Connection, model: str, tier: str) -> Settlement:
    found = connection.execute(
        select(tier_artifacts).where(tier_artifacts.c.model == model, tier_artifacts.c.tier == tier)
    ).mappings()
    row = found.one_or_none()
    return Settlement() if row is None else _settlement_of(row)


def _settlement_of(row: RowMapping) -> Settlement:
    settled, agreed = (
        None if row[name] is None else facts_of_json(row[name]) for name in ("settled", "agreed")
    )
    return Settlement(
        settled=settled,
        settled_since=row["settled_since"],
        agreed=agreed,
        agreed_since=row["agreed_since"],
        heard_at=row["heard_at"],
        unsettled=row["unsettled"],
    )


def _keep_settlement(db: Database, connection: Connection, key: TierKey, settlement: Settlement) -> None:
    model, tier = key
    values: dict[str, object] = {
        "settled": None if settlement.settled is None else settlement.settled.as_json(),
        "settled_since": settlement.settled_since,
        "agreed": None if settlement.agreed is None else settlement.agreed.as_json(),
        "agreed_since": settlement.agreed_since,
        "heard_at": settlement.heard_at,
        "unsettled": settlement.unsettled,
    }
    connection.execute(
        db.insert(tier_artifacts)
        .values(model=model, tier=tier, **values)
        .on_conflict_do_update(index_elements=list(tier_artifacts.primary_key.columns), set_=values)
    )
