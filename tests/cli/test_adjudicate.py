"""`tiergate adjudicate` against the real API: here, and through a file that may break off."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from evaluators.rubrics import RUBRICS
from service.approval.config import Adjudicating
from service.cli import adjudicate
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.adjudicating import BASELINE, CANDIDATE, KEYRING, Queueing
from tests.approval.conftest import captures, sqlite_database
from tests.approval.live import MODEL, LiveApi, live_api

__all__ = ["captures", "sqlite_database"]

pytestmark = pytest.mark.usefixtures("elsewhere")

runner = CliRunner()


@pytest.fixture
def api(sqlite_database: Database, captures: Captures) -> Iterator[LiveApi]:
    given = Adjudicating(keyring=KEYRING, rubrics=RUBRICS, queued=("refusal",))
    with live_api(sqlite_database, captures, adjudication=given) as running:
        yield running


def ran(api: LiveApi, *arguments: str, scope: str = "label", given: str | None = None) -> Result:
    app = typer.Typer()
    adjudicate.register(app)
    environ = {
        "COLUMNS": "140",
        "TERM": "dumb",
        "TIERGATE_URL": api.url,
        "TIERGATE_TOKEN": api.secrets[scope],
    }
    return runner.invoke(app, ["adjudicate", *arguments], env=environ, input=given)


def add(api: LiveApi, judged: str = "pf", times: int = 1, **changes: Any) -> list[str]:
    queueing = Queueing(db=api.db, model=MODEL, epoch="epoch-w8a8", at=1_700_000_000.0)
    queueing.number = iter(range(add.count, add.count + 10_000))  # type: ignore[attr-defined]
    add.count += 10_000  # type: ignore[attr-defined]
    return sorted(queueing.add(judged, times, **changes))


add.count = 0  # type: ignore[attr-defined]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def queue(api: LiveApi) -> dict[str, Any]:
    (found,) = api.client("label").get("/api/v1/adjudication").json()["queues"]
    return dict(found)


def test_pairs_are_judged_one_after_the_other_until_there_are_none(api: LiveApi) -> None:
    add(api, times=3)
    done = ran(api, "next", given="maybe\na\nBOTH\nskip\n")
    assert done.exit_code == 0, done.output
    assert done.output.count("=== a ===") == 3
    assert done.output.count("which pass?") == 4
    assert "nothing is left for this labeller" in done.output
    assert "3 labelled" in done.output
    assert queue(api)["labellers"] == [{"labeller": "test-label", "labelled": 2, "skipped": 1}]


@pytest.mark.parametrize("end", ["q\n", "quit\n", ""])
def test_q_or_the_end_of_input_ends(end: str, api: LiveApi) -> None:
    add(api, times=2)
    done = ran(api, "next", given=f"a\n{end}")
    assert done.exit_code == 0, done.output
    assert "1 labelled" in done.output
    assert queue(api)["labelled"] == 1


def test_a_script_asks_and_answers(api: LiveApi) -> None:
    (item,) = add(api)
    told = json.loads(ran(api, "next", "--json").stdout)
    assert told["item"]["item"] == item
    assert ran(api, "next", "--item", item, "--label", "b").exit_code == 0
    again = ran(api, "next", "--item", item, "--label", "a")
    assert again.exit_code == 1
    assert "conflict: test-label said b of" in again.output
    assert ran(api, "next", "--item", item, "--label", "a", "--replace").exit_code == 0
    assert ran(api, "next", "--item", "0" * 32, "--label", "a").exit_code == 1
    for wrong in (["--item", item], ["--label", "a"], ["--item", item, "--label", "c"]):
        assert ran(api, "next", *wrong).exit_code == 2


def test_hostile_answers_do_nothing_to_the_terminal(api: LiveApi) -> None:
    add(api, candidate="\x1b[2J\u202eevil\x9b31m\r[bold]x[/]" + "y" * 1_000_000)
    done = ran(api, "next", given="q\n")
    assert done.exit_code == 0, done.output
    assert [each for each in done.stdout if not each.isprintable() and each != "\n"] == []
    assert len(done.stdout) < 40_000
    assert "\\x1b[2J\\u202eevil" in done.stdout


def test_a_file_goes_out_is_filled_in_and_comes_back(api: LiveApi, tmp_path: Path) -> None:
    ids = add(api, times=25)
    out = ran(api, "export", "pairs.jsonl")
    assert out.exit_code == 0, out.output
    path = tmp_path / "pairs.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    exported = lines(path)
    assert [each["item"] for each in exported] == ids
    assert all({each["a"]["text"], each["b"]["text"]} == {BASELINE, CANDIDATE} for each in exported)
    assert all(each["label"] == "" for each in exported)
    assert "w8a8" not in path.read_text()
    filled = [{**each, "label": "both", "labeller": "test-label"} for each in exported[:20]] + exported[20:]
    path.write_text("\n".join(map(json.dumps, filled)) + "\n")
    back = ran(api, "import", "pairs.jsonl")
    assert back.exit_code == 0, back.output
    assert "20 recorded, 0 replaced, 0 known" in back.output
    assert "5 lines have no label yet" in back.output
    again = json.loads(ran(api, "import", "pairs.jsonl", "--json").stdout)
    assert (again["recorded"], again["unchanged"], again["empty"]) == (0, 20, 5)
    assert queue(api)["labelled"] == 20


def test_an_export_that_broke_off_goes_on_where_it_ended(api: LiveApi, tmp_path: Path) -> None:
    ids = add(api, times=30)
    assert ran(api, "export", "pairs.jsonl", "--most", "7").exit_code == 0
    path = tmp_path / "pairs.jsonl"
    with open(path, "a") as file:
        file.write('{"item": "half a li')
    rest = ran(api, "export", "pairs.jsonl")
    assert rest.exit_code == 0, rest.output
    assert "23 items added, 30 in all" in rest.output
    assert [each["item"] for each in lines(path)] == ids
    assert "0 items added, 30 in all" in ran(api, "export", "pairs.jsonl").output


def test_a_file_that_is_something_else_is_left_alone(api: LiveApi, tmp_path: Path) -> None:
    add(api)
    (tmp_path / "other.txt").write_text("no JSON\n")
    refused = ran(api, "export", "other.txt")
    assert refused.exit_code == 1
    assert "line 1 is no exported item" in refused.output
    assert (tmp_path / "other.txt").read_text() == "no JSON\n"


def test_a_file_that_cannot_be_written_is_named(api: LiveApi) -> None:
    add(api)
    refused = ran(api, "export", "no/such/pairs.jsonl")
    assert refused.exit_code == 1
    assert "no/such/pairs.jsonl cannot be written: No such file or directory" in refused.output


def test_conflicts_and_strangers_of_a_file_are_named_and_the_rest_is_taken(
    api: LiveApi, tmp_path: Path
) -> None:
    first, second = add(api, times=2)
    ran(api, "next", "--item", first, "--label", "a")
    told = [{"item": first, "label": "b"}, {"item": second, "label": "b"}, {"item": "0" * 32, "label": "b"}]
    (tmp_path / "labels.jsonl").write_text("\n".join(map(json.dumps, told)))
    done = ran(api, "import", "labels.jsonl")
    assert done.exit_code == 1
    assert f"conflict: test-label said a of {first} before, now b" in done.output
    assert f"unknown: {'0' * 32}" in done.output
    assert "1 recorded" in done.output
    assert ran(api, "import", "labels.jsonl", "--replace").exit_code == 1
    assert queue(api)["labelled"] == 2


def test_a_file_of_another_labeller_is_refused_and_says_what_to_do(api: LiveApi, tmp_path: Path) -> None:
    (item,) = add(api, by_two=True)
    (tmp_path / "labels.jsonl").write_text(json.dumps({"item": item, "label": "a", "labeller": "ben"}))
    refused = ran(api, "import", "labels.jsonl")
    assert refused.exit_code != 0
    assert "this token labels as" in refused.output
    assert "tiergate token new NAME --scope label" in refused.output
    assert queue(api)["labelled"] == 0


def test_what_a_token_has_labelled_can_be_left_out_of_a_file(api: LiveApi, tmp_path: Path) -> None:
    first, second = add(api, times=2)
    ran(api, "next", "--item", first, "--label", "a")
    assert ran(api, "export", "pairs.jsonl", "--todo").exit_code == 0
    assert [each["item"] for each in lines(tmp_path / "pairs.jsonl")] == [second]


WRONG = {
    b"{": "line 1 is no label",
    b"[]\n": "line 1 is no label",
    b'\n{"item": "a"}\n': "line 2 is no label",
    b'{"item": "a", "label": "c"}': "a label is one of a, b, both, neither, skip, not 'c'",
    b'{"item": 1, "label": "a"}': "item, label, labeller and at are texts",
    b'{"item": "a", "label": "a", "at": 3}': "item, label, labeller and at are texts",
    b"\xff\xfe": "is not text in UTF-8",
    b"[" * 100_000: "line 1 is no label",
}


def test_a_line_that_is_no_label_is_named_and_nothing_is_recorded(api: LiveApi, tmp_path: Path) -> None:
    (item,) = add(api)
    right = json.dumps({"item": item, "label": "a"}).encode()
    for content, said in WRONG.items():
        for document in (content, content.rstrip(b"\n") + b"\n" + right):
            (tmp_path / "labels.jsonl").write_bytes(document)
            refused = ran(api, "import", "labels.jsonl")
            assert refused.exit_code == 1, (content, refused.output)
            assert said in refused.output
    assert queue(api)["labelled"] == 0


def test_a_file_that_is_not_there_is_named(api: LiveApi) -> None:
    assert "labels.jsonl cannot be read: No such file" in ran(api, "import", "labels.jsonl").output


def test_the_status_is_for_everybody_and_says_the_next_step(api: LiveApi) -> None:
    assert "nothing is queued yet" in ran(api, "status", scope="read").output
    add(api, times=2)
    told = ran(api, "status", scope="read")
    assert "2 queued (2 in which the arms differ), 0 labelled" in told.output
    assert json.loads(ran(api, "status", "--json", scope="read").stdout)["queues"][0]["queued"] == 2
    refused = ran(api, "next", scope="read")
    assert refused.exit_code == 3
    assert "needs scope `label`" in refused.output


def test_nothing_to_export_is_said(api: LiveApi, tmp_path: Path) -> None:
    done = ran(api, "export", "pairs.jsonl")
    assert done.exit_code == 0
    assert "nothing is queued" in done.output
    assert os.path.getsize(tmp_path / "pairs.jsonl") == 0


def test_help_teaches(api: LiveApi) -> None:
    for command in ("next", "export", "import", "status"):
        shown = ran(api, command, "--help")
        assert shown.exit_code == 0
    assert "tiergate adjudicate import pairs.jsonl" in ran(api, "export", "--help").output
