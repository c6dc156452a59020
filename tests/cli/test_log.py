"""`tiergate log`: what it shows, what it finds, and what can be taken away and checked elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from sqlalchemy import delete, update
from typer.testing import CliRunner, Result

from service.cli import log
from service.store.decided.decisions import append, head_of
from service.store.sql.database import Database
from service.store.sql.schema import decisions


@pytest.fixture
def db(db: Database) -> Database:
    """With five decisions."""
    append(db, at=0.0, actor="ci", action="approve", model="m", tier="w8a8", detail={"reason": "a try"})
    for number in range(4):
        append(db, at=60.0 + number, actor="guard", action="promote", model="n", tier="w4a16")
    return db


def ran(config: Path, *arguments: str) -> Result:
    app = typer.Typer()
    log.register(app)
    environ = {"COLUMNS": "200", "TERM": "dumb", "TIERGATE_CONFIG": str(config)}
    return CliRunner().invoke(app, ["log", *arguments], env=environ)


def test_a_line_tells_who_when_what_why_and_from_where(db: Database, config: Path) -> None:
    shown = ran(config, "show", "m")
    assert shown.exit_code == 0, shown.output
    (line,) = [line for line in shown.stdout.splitlines() if "approve" in line]
    for told in ("1970-01-01T00:00:00Z", "ci", "m w8a8", "a try", "api@"):
        assert told in line
    assert "w4a16" not in shown.stdout
    (entry,) = json.loads(ran(config, "show", "-n", "1", "--json").stdout)["entries"]
    assert (entry["seq"], entry["actor"], entry["detail"]["whence"]["part"]) == (5, "guard", "api")


def test_a_log_that_holds_prints_its_head_and_that_is_found_again_later(db: Database, config: Path) -> None:
    whole = ran(config, "verify")
    assert whole.exit_code == 0
    kept = whole.stdout.split("head ")[1].strip()
    assert kept == str(head_of(db))
    append(db, at=100.0, actor="ci", action="revoke", model="m")
    assert ran(config, "verify", "--head", kept).exit_code == 0
    forged = ran(config, "verify", "--head", f"5:{'1' * 64}")
    assert forged.exit_code == 1
    assert "row 5" in forged.stderr
    assert "written anew" in forged.stderr


def test_rows_that_were_cut_off_with_their_head_are_missed_by_the_head_kept_elsewhere(
    db: Database, config: Path
) -> None:
    kept = str(head_of(db))
    with db.write() as connection:
        connection.execute(delete(decisions))
        connection.exec_driver_sql("DELETE FROM decision_head")
    assert ran(config, "verify").exit_code == 0, "an empty log that says nothing of an end holds"
    found = ran(config, "verify", "--head", kept, "--json")
    assert found.exit_code == 1
    assert json.loads(found.stdout)["broken"]["seq"] == 1


def test_an_altered_row_is_named(db: Database, config: Path) -> None:
    with db.write() as connection:
        connection.execute(update(decisions).where(decisions.c.seq == 3).values(actor="mallory"))
    found = ran(config, "verify")
    assert found.exit_code == 1
    assert "row 3: it was altered" in found.stderr


@pytest.fixture
def exported(db: Database, config: Path, tmp_path: Path) -> list[str]:
    path = tmp_path / "decisions.jsonl"
    assert ran(config, "export", "-o", str(path)).exit_code == 0
    lines = path.read_text().splitlines(keepends=True)
    assert "".join(lines) == ran(config, "export").stdout
    return lines


@pytest.mark.parametrize(
    ("change", "seq"),
    [
        (lambda lines: lines, None),
        (lambda lines: [*lines[:2], lines[2].replace("guard", "nobody"), *lines[3:]], 3),
        (lambda lines: [*lines[:1], *lines[2:]], 2),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], 2),
        (lambda lines: [*lines[:4], lines[5]], 5),
        (lambda lines: lines[1:], 1),
        (lambda lines: lines[:5], 5),
        (lambda lines: [*lines[:2], lines[1], *lines[2:]], 3),
    ],
    ids=["whole", "altered", "removed", "reordered", "cut off", "without a beginning", "no head", "twice"],
)
def test_an_exported_log_is_checked_without_the_database(exported, change, seq, config, tmp_path) -> None:
    path = tmp_path / "changed.jsonl"
    path.write_text("".join(change(exported)))
    found = ran(config, "verify", str(path), "--json")
    broken = json.loads(found.stdout)["broken"]
    assert (broken and broken["seq"]) == seq
    assert found.exit_code == (0 if seq is None else 1)


@pytest.mark.parametrize(
    "content", ["nonsense\n", "[]\n", '{"seq": 1}\n', '{"head": {}}\n', "\u00e4\n", "[" * 5000]
)
def test_what_is_no_log_is_told_with_its_line(content: str, config: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(content, encoding="utf-8")
    found = ran(config, "verify", str(path))
    assert found.exit_code == 2
    assert str(path) in found.stderr


@pytest.mark.parametrize("head", ["5", "x:" + "1" * 64, "5:123", "-1:" + "1" * 64])
def test_a_head_of_another_form_is_a_usage_error(head: str, db: Database, config: Path) -> None:
    found = ran(config, "verify", "--head", head)
    assert found.exit_code == 2
    assert "SEQ:DIGEST" in found.stderr


def test_without_a_database_there_is_no_log(config: Path) -> None:
    for command in ("show", "verify", "export"):
        found = ran(config, command)
        assert found.exit_code == 2
        assert "no decision log" in found.stderr
    assert not (config.parent / ".tiergate").exists()


def test_before_the_first_decision_the_next_step_is_told(db: Database, config: Path) -> None:
    assert "tiergate approve" in ran(config, "show", "nobody").stdout
