"""A database of an older version made into one of this version; its counts are made again from its pairs.

Never done by opening: a part of the older Tiergate may still write. `tiergate recount --upgrade` asks for it.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, inspect, select, update

from service.store.scored.recount import EVERY, rebuild
from service.store.sql import schema
from service.store.sql.database import Database, StoreUnusable, connect
from service.store.sql.schema import captures, schema_version, units
from service.strata import split_crossed

_BEFORE_COUNTS = 3
"""The last version whose counts are made again; later ones lack tables and columns only."""


def upgrade(url: str, *, told: Callable[[int, int], None] | None = None, every: int = EVERY) -> int | None:
    """How many units were counted again; None when nothing was to be done. Raises StoreUnusable.

    From version 5 on only tables are added, and nothing has to be counted. One transaction: after a failure
    the database is as it was.
    """
    database = connect(url)
    try:
        with database.write() as connection:
            database.lock(connection, "schema")
            if not inspect(connection).has_table("schema_version"):
                raise StoreUnusable(f"{database.shown_url} is no database of Tiergate: nothing to upgrade")
            version = connection.execute(select(schema_version.c.version)).scalar_one_or_none()
            if version == schema.VERSION:
                return None
            if version not in schema.UPGRADABLE:
                raise StoreUnusable(
                    f"the database {database.shown_url} has schema version {version}, which this Tiergate "
                    f"cannot upgrade to {schema.VERSION}"
                )
            if version == _BEFORE_COUNTS:
                _change_counts(database, connection)
            schema.metadata.create_all(connection)  # tables that an older version did not have
            for index in captures.indexes:
                index.create(connection, checkfirst=True)
            if "run" not in {column["name"] for column in inspect(connection).get_columns("measurements")}:
                connection.exec_driver_sql("ALTER TABLE measurements ADD COLUMN run INTEGER")
            if "own_stratum" not in {column["name"] for column in inspect(connection).get_columns("pairs")}:
                # What is recorded already is in no stratum of its own, and stays so.
                connection.exec_driver_sql(
                    "ALTER TABLE pairs ADD COLUMN own_stratum VARCHAR NOT NULL DEFAULT ''"
                )
            counted = 0
            if version == _BEFORE_COUNTS:
                counted = rebuild(database, connection, told=told, every=every)
            connection.execute(update(schema_version).values(version=schema.VERSION))
            return counted
    finally:
        database.close()


def _change_counts(database: Database, connection: Connection) -> None:
    """From version 3: counts by stratum and tenant beside a small tally; strata told by workers."""
    false = "0" if database.is_sqlite else "false"
    for statement in (
        "ALTER TABLE units ADD COLUMN marginals VARCHAR NOT NULL DEFAULT ''",
        f"ALTER TABLE units ADD COLUMN waits BOOLEAN NOT NULL DEFAULT {false}",
        "DROP INDEX units_by_taking",
        "DROP TABLE tallies",
    ):
        connection.exec_driver_sql(statement)
    schema.metadata.create_all(connection)
    for index in units.indexes:
        index.create(connection, checkfirst=True)
    # What only a worker could tell is not known of these; what the proxy told is.
    for stratum in connection.execute(select(units.c.stratum).distinct()).scalars().all():
        if parts := split_crossed(stratum):
            told = update(units).where(units.c.stratum == stratum).values(marginals=" ".join(parts))
            connection.execute(told)
