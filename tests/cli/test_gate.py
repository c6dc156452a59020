"""`tiergate gate` as a pipeline sees it: exit codes, against the real API and against what is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner, Result

from service.cli import gate
from tests.approval.conftest import captures, sqlite_api, sqlite_database
from tests.approval.live import MODEL, LiveApi
from tests.client.test_connection import answering
from tests.leash import Leashed
from tests.patience import PATIENCE
from tests.ports import free_port

__all__ = ["captures", "sqlite_api", "sqlite_database"]

pytestmark = pytest.mark.usefixtures("elsewhere")

APPROVAL = f"/api/v1/models/{MODEL}/tiers/w8a8/approval"
ARTIFACT = "ab" * 32


def ran(url: str, *arguments: str, token: str = "") -> Result:
    app = typer.Typer()
    gate.register(app)
    environ = {"TIERGATE_URL": url, "TIERGATE_TOKEN": token, "COLUMNS": "140", "TERM": "dumb"}
    return CliRunner().invoke(app, list(arguments), env=environ)


def asked(api: LiveApi, *arguments: str) -> Result:
    return ran(api.url, MODEL, "w8a8", *arguments, token=api.secrets["read"])


def test_each_judgement_has_its_exit_code_and_one_line(sqlite_api: LiveApi) -> None:
    sqlite_api.accept("w8a8")
    waiting = asked(sqlite_api)
    assert waiting.exit_code == 2
    assert waiting.stdout.startswith("inconclusive: ")
    assert waiting.stdout.count("\n") == 1
    assert asked(sqlite_api, "--verdict-alone").exit_code == 0
    approve = sqlite_api.client("approve").put(APPROVAL, json={"artifact": ARTIFACT})
    assert approve.status_code == 200
    approved = asked(sqlite_api, "--artifact", ARTIFACT)
    assert approved.exit_code == 0
    assert approved.stdout.startswith("approved: ")
    assert asked(sqlite_api, "--artifact", "cd" * 32).exit_code == 2
    sqlite_api.record("w8a8", harm=200)
    rejected = asked(sqlite_api)
    assert rejected.exit_code == 1
    assert rejected.stdout.startswith("rejected: ")


def test_json_is_the_judgement(sqlite_api: LiveApi) -> None:
    found = asked(sqlite_api, "--json")
    assert found.exit_code == 2
    document = json.loads(found.stdout)
    assert (document["verdict"], document["ok"], document["n_pairs"]) == ("inconclusive", False, 0)


def test_a_variable_that_is_not_set_does_not_open_the_gate(sqlite_api: LiveApi) -> None:
    sqlite_api.accept("w8a8")
    assert sqlite_api.client("approve").put(APPROVAL, json={}).status_code == 200
    assert asked(sqlite_api).exit_code == 0
    refused = asked(sqlite_api, "--artifact", "")
    assert refused.exit_code == 3
    assert "artifact" in refused.stderr


def test_waiting_ends_with_the_decision(sqlite_api: LiveApi) -> None:
    sqlite_api.accept("w8a8")
    secret = sqlite_api.secrets["read"]
    command = (
        sys.executable,
        "-m",
        "service.cli",
        "gate",
        MODEL,
        "w8a8",
        "--url",
        sqlite_api.url,
        "--wait",
        "2h",
    )
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environ = {**os.environ, "TIERGATE_TOKEN": secret}
    with Leashed(command, env=environ, **piped) as asking:  # type: ignore[call-overload]
        told = asking.stderr.readline()
        assert told.startswith("waiting, ")
        assert "nobody has approved it yet" in told
        sqlite_api.client("approve").put(APPROVAL, json={}).raise_for_status()
        assert asking.wait(PATIENCE) == 0
        assert asking.stdout.read().startswith("approved: ")


def test_what_is_inconclusive_at_the_deadline_is_exit_code_2(sqlite_api: LiveApi) -> None:
    found = asked(sqlite_api, "--wait", "50ms")
    assert found.exit_code == 2
    assert found.stdout.startswith("inconclusive: ")


def test_who_cannot_be_asked_is_exit_code_3(sqlite_api: LiveApi) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    assert ran(nobody, MODEL, "w8a8").exit_code == 3
    assert ran(nobody, MODEL, "w8a8", "--wait", "50ms").exit_code == 3
    assert ran(sqlite_api.url, MODEL, "w8a8", token="tg_a_b").exit_code == 3
    assert ran(sqlite_api.url, MODEL, "nope", "--wait", "2h", token=sqlite_api.secrets["read"]).exit_code == 3
    assert ran(sqlite_api.url, MODEL, "w8a8", "--wait", "soon").exit_code == 3
    assert ran(sqlite_api.url, MODEL).exit_code == 3


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/html", b"<p>Please log in</p>"),
        ("application/json", b'{"data": {"verdict": "yes", "ok": true}}'),
    ],
)
def test_a_login_page_is_no_approval(kind: str, body: bytes) -> None:
    with answering(200, kind, body) as url:
        assert ran(url, MODEL, "w8a8").exit_code == 3
