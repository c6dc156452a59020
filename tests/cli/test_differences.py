"""`tiergate differences` and the pairs of one evaluator, against the real API."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner, Result

from service.cli import differences, questions
from service.store.scored.pairs import PairRow, Unit, record
from tests.approval.conftest import captures, sqlite_api, sqlite_database
from tests.approval.live import MODEL, LiveApi, add_pairs

__all__ = ["captures", "sqlite_api", "sqlite_database"]

pytestmark = pytest.mark.usefixtures("elsewhere")


def ran(api: LiveApi, *arguments: str) -> Result:
    app = typer.Typer()
    questions.register(app)
    differences.register(app)
    environ = {"COLUMNS": "140", "TERM": "dumb", "TIERGATE_URL": api.url}
    return CliRunner().invoke(app, list(arguments), env=environ)


def test_fields_are_a_table_and_json_for_pipelines(sqlite_api: LiveApi) -> None:
    empty = ran(sqlite_api, "differences", MODEL, "w8a8")
    assert empty.exit_code == 0
    assert "nothing was compared yet" in empty.stdout
    row = PairRow(
        outcome="scored", baseline_passed=True, candidate_passed=False, details=(("/total", "value", 1),)
    )
    unit = Unit(
        capture_id="c",
        model=MODEL,
        tier="w8a8",
        arm="candidate",
        evaluator="field_agreement",
        version="1",
        epoch="epoch-w8a8",
        conversation="talk",
        stratum="short",
        tenant="",
        digest="",
        counted=True,
        rows=(row,),
        at=1.0,
    )
    assert record(sqlite_api.db, capture_id="c", owner="w", units=[unit], at=1.0)
    assert "/total  1         100.0 %" in ran(sqlite_api, "differences", MODEL, "w8a8").stdout
    told = json.loads(ran(sqlite_api, "differences", MODEL, "w8a8", "--json").stdout)
    assert told["names"] == [{"name": "/total", "candidate": {"value": 1}, "control": {}}]


def test_an_unknown_evaluator_is_one_line_and_exit_3(sqlite_api: LiveApi) -> None:
    found = ran(sqlite_api, "differences", MODEL, "w8a8", "--evaluator", "fields")
    assert found.exit_code == 3
    assert "no evaluator is called 'fields'" in found.stderr


def test_evidence_lists_the_pairs_of_one_evaluator(sqlite_api: LiveApi) -> None:
    add_pairs(sqlite_api.db, "w8a8", epoch="epoch-w8a8", harm=1)
    add_pairs(sqlite_api.db, "w8a8", epoch="epoch-w8a8", harm=1, criteria=("field_agreement",))
    latest = ran(sqlite_api, "evidence", MODEL, "w8a8").stdout.partition("latest pairs")[2]
    assert "refusal" in latest
    assert "field_agreement" not in latest
    latest = ran(sqlite_api, "evidence", MODEL, "w8a8", "--evaluator", "field_agreement").stdout
    assert "field_agreement" in latest.partition("latest pairs")[2]
    assert "refusal" not in latest.partition("latest pairs")[2]
