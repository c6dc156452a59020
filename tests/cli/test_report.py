"""`tiergate report` against the real API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from service.cli import report
from service.report.document import from_json
from service.store.load.jobs import Job
from service.store.redis.captures import open_captures
from service.store.sql.database import open_database
from tests.approval.live import LiveApi
from tests.approval.reporting import reporting_api
from tests.conftest import ValkeyServer


@pytest.fixture(scope="module")
def reporting(
    tmp_path_factory: pytest.TempPathFactory, valkey_server: ValkeyServer
) -> Iterator[tuple[LiveApi, Job]]:
    database = open_database(f"sqlite:///{tmp_path_factory.mktemp('api') / 'tiergate.db'}")
    captures = open_captures(valkey_server.url, timeout=2)
    try:
        with reporting_api(database, captures) as running:
            yield running
    finally:
        captures.close()
        database.close()


@pytest.fixture(autouse=True)
def _in_english(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)


def ran(api: LiveApi, *arguments: str, **environ: str) -> Result:
    app = typer.Typer()
    report.register(app)
    return CliRunner().invoke(
        app, list(arguments), env={"COLUMNS": "140", "TERM": "dumb", "TIERGATE_URL": api.url, **environ}
    )


def test_a_job_is_told_as_markdown(reporting: tuple[LiveApi, Job]) -> None:
    api, job = reporting
    told = ran(api, job.job_id)
    assert told.exit_code == 0
    assert told.stdout.startswith("# Shadow report: m\n")
    assert f"- Run: {job.job_id}\n" in told.stdout


def test_the_ending_of_the_file_says_what_it_is_and_the_environment_in_which_language(
    reporting: tuple[LiveApi, Job], tmp_path: Path
) -> None:
    api, _ = reporting
    told = ran(api, "m", "-o", "report.html", LANG="zh_CN.UTF-8")
    assert told.exit_code == 0
    assert told.stdout == ""
    assert told.stderr == "wrote report.html\n"
    assert 'lang="zh-Hans"' in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_what_is_asked_for_goes_before_what_could_be_guessed(
    reporting: tuple[LiveApi, Job], tmp_path: Path
) -> None:
    api, job = reporting
    told = ran(
        api, job.job_id[:-1], "--format", "json", "--lang", "en", "-o", "report.html", LC_ALL="zh_CN.UTF-8"
    )
    assert told.exit_code == 0
    assert from_json((tmp_path / "report.html").read_bytes()).run.id == job.job_id


def test_an_unknown_run_is_one_clear_line(reporting: tuple[LiveApi, Job]) -> None:
    api, _ = reporting
    told = ran(api, "nobody")
    assert told.exit_code == 3
    assert "no shadow job is called 'nobody'" in told.stderr
    assert "tiergate shadow list" in told.stderr


def test_a_file_that_cannot_be_written_is_one_clear_line(reporting: tuple[LiveApi, Job]) -> None:
    api, job = reporting
    told = ran(api, job.job_id, "-o", "nowhere/report.html")
    assert told.exit_code == 1
    assert told.stderr == "nowhere/report.html cannot be written: No such file or directory\n"
