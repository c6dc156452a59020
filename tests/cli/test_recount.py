"""`tiergate recount`: what it says, and with which exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from sqlalchemy import delete, update
from typer.testing import CliRunner, Result

from service.cli import recount
from service.store.sql import schema
from service.store.sql.database import Database
from service.store.sql.tally_tables import stratum_sums, takings, tallies
from tests.approval.live import add_pairs


@pytest.fixture
def db(db: Database) -> Database:
    """With some evidence."""
    add_pairs(db, "w8a8", epoch="e", model="m", harm=2, clean=3)
    return db


def ran(*arguments: str) -> Result:
    app = typer.Typer()
    recount.register(app)
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200", "TERM": "dumb"})


def test_equal_counts_are_told_with_how_much_was_counted(db: Database, config: Path) -> None:
    outcome = ran("-c", str(config))
    assert outcome.exit_code == 0, outcome.output
    assert "from 10 units with 10 pairs: equal" in outcome.stdout
    document = json.loads(ran("-c", str(config), "--json").stdout)
    assert (document["equal"], document["units"], document["pairs"]) == (True, 10, 10)
    assert (document["differences"], document["upgraded_units"]) == ([], None)


def test_every_row_that_differs_is_told_with_both_amounts(db: Database, config: Path) -> None:
    with db.write() as connection:
        connection.execute(update(tallies).where(tallies.c.harm == 1).values(amount=7))
        connection.execute(update(stratum_sums).values(drift=0))
        connection.execute(delete(takings))
    outcome = ran("-c", str(config))
    assert outcome.exit_code == 1
    told = " ".join(outcome.stdout.split())
    assert "kind=unit pairs=1 harm=1 version=1 amount=7 amount=2" in told
    assert f"drift=0 drift={2 * 2**32}" in told
    assert "5 differ" in told
    document = json.loads(ran("-c", str(config), "--json").stdout)
    assert not document["equal"]
    assert {each["table"] for each in document["differences"]} == {"tallies", "stratum_sums", "takings"}
    assert document["differences"][0]["stored"] == {"amount": 7}


def test_a_database_of_an_older_version_is_told_and_upgraded_when_asked(db: Database, config: Path) -> None:
    with db.write() as connection:
        for statement in (
            "DROP INDEX units_by_taking",
            "DROP INDEX units_by_conversation",
            "ALTER TABLE units DROP COLUMN marginals",
            "ALTER TABLE units DROP COLUMN waits",
            "DROP TABLE stratum_tallies",
            "CREATE INDEX units_by_taking ON units (model, tier, arm, taken_at)",
        ):
            connection.exec_driver_sql(statement)
        connection.execute(update(schema.schema_version).values(version=3))
    outcome = ran("-c", str(config))
    assert outcome.exit_code == 2
    assert "run `tiergate recount --upgrade`" in outcome.stderr
    outcome = ran("-c", str(config), "--upgrade")
    assert outcome.exit_code == 0, outcome.output
    assert "upgraded: 10 units counted again" in outcome.stdout
    assert ": equal" in outcome.stdout


def test_no_database_is_told_and_none_is_made(tmp_path: Path, config: Path) -> None:
    for arguments in ((), ("--upgrade",)):
        outcome = ran("-c", str(config), *arguments)
        assert outcome.exit_code == 2
        assert "there is no database" in outcome.stderr
    assert not list(tmp_path.rglob("*.db"))
