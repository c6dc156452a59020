"""`tiergate corpus`: a file in, out again and gone; what is said of wrong lines and of nothing."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from service.cli import corpus
from service.proxy.entry.admission import tenant_of
from service.settings import load
from service.store.kept.corpus import Drawn, place_of, rank_of, seal_request, take_in
from service.store.sql.database import open_database


@pytest.fixture
def config(config: Path) -> Path:
    """With its state directory."""
    (config.parent / ".tiergate").mkdir()
    return config


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    """Three requests of a test set."""
    path = tmp_path / "tests.jsonl"
    path.write_text("".join(line(f"id-{n}", f"question {n} of ann@example.org") + "\n" for n in range(3)))
    return path


def line(name: str, text: str, **more: Any) -> str:
    body = {"model": "gpt", "messages": [{"role": "user", "content": text}], **more}
    return json.dumps({"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body})


def ran(config: Path, *arguments: str) -> Result:
    app = typer.Typer()
    corpus.register(app)
    app.command("other")(lambda: None)  # a group of its own needs a neighbour
    return CliRunner().invoke(
        app, ["corpus", *arguments, "-c", str(config)], env={"COLUMNS": "200", "TERM": "dumb"}
    )


def document(config: Path, *arguments: str) -> Any:
    found = ran(config, *arguments)
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def test_a_batch_file_goes_in_masked_and_comes_out_as_the_same_corpus(
    config: Path, batch: Path, tmp_path: Path
) -> None:
    found = ran(config, "import", "m", str(batch))
    assert found.exit_code == 0, found.output
    assert "3 requests are in the corpus tests of m" in found.stdout
    assert "`corpus: {use: tests}`" in found.stdout
    told = document(config, "manifest", "m", "--name", "tests")
    assert (told["requests"], told["strata"]) == (
        3,
        [{"stratum": "under-2k/free/whole/en", "tenant": "", "seen": 3, "requests": 3}],
    )
    out = tmp_path / "out.jsonl"
    assert ran(config, "export", "m", "--name", "tests", "-o", str(out)).exit_code == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    lines = [json.loads(each) for each in out.read_text().splitlines()]
    assert sorted(each["custom_id"] for each in lines) == ["id-0", "id-1", "id-2"]
    assert {each["body"]["model"] for each in lines} == {"m"}
    assert all("masked@example.com" in each["body"]["messages"][0]["content"] for each in lines)
    again = document(config, "import", "m", str(out), "--name", "again", "--json")
    assert (again["new"], again["digest"]) == (3, told["digest"])


@pytest.mark.parametrize(
    ("fields", "stratum"),
    [
        ({}, "under-2k/free/whole/en"),
        ({"stream": True, "tools": []}, "under-2k/structured/stream/en"),
        ({"grammar": 'root ::= "a"'}, "under-2k/structured/whole/en"),
        ({"response_format": {"type": "text"}}, "under-2k/structured/whole/en"),
        ({"messages": [{"role": "user", "content": "你好，请问今天天气怎么样？"}]}, "under-2k/free/whole/zh"),
        ({"messages": [{"role": "system", "content": "今天天气怎么样？"}]}, "under-2k/free/whole/zh"),
    ],
)
def test_a_request_is_in_the_stratum_that_a_proxy_would_have_told(
    fields: dict[str, Any], stratum: str, config: Path, tmp_path: Path
) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "What do I owe for it?"}], **fields}
    line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": body}
    (tmp_path / "one.jsonl").write_text(json.dumps(line) + "\n")
    assert ran(config, "import", "m", str(tmp_path / "one.jsonl"), "--name", "one").exit_code == 0
    [told] = document(config, "manifest", "m", "--name", "one")["strata"]
    assert told["stratum"] == stratum


def test_a_corpus_that_jobs_send_and_nobody_filled_is_told(config: Path, batch: Path) -> None:
    ran(config, "import", "m", str(batch))
    assert (
        "shadow jobs send the corpus traffic (corpus.use), which holds no request yet"
        in ran(config, "show").stdout
    )


def test_what_is_there_already_is_not_taken_twice(config: Path, batch: Path) -> None:
    ran(config, "import", "m", str(batch))
    found = ran(config, "import", "m", str(batch))
    assert "0 requests are in the corpus tests of m (3 were there already" in found.stdout


def test_one_wrong_line_stops_an_import_and_is_named_unless_it_may_be_left_out(
    config: Path, batch: Path
) -> None:
    batch.write_bytes(batch.read_bytes() + b'{"custom_id": "x"}\n\xff\xfe\n')
    found = ran(config, "import", "m", str(batch))
    assert found.exit_code == 1
    assert "line 4: method must be POST, got None" in found.stderr
    assert "line 5: this is not UTF-8" in found.stderr
    assert "nothing is taken: 2 lines are wrong, 3 are right" in found.stderr
    skipping = ran(config, "import", "m", str(batch), "--skip-bad", "--json")
    assert skipping.exit_code == 1
    told = json.loads(skipping.stdout)
    assert (told["new"], [each["line"] for each in told["bad"]]) == (3, [4, 5])


def test_a_trace_of_lengths_becomes_requests_of_these_lengths(config: Path, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    rows = [
        "TIMESTAMP,ContextTokens,GeneratedTokens",
        *(f"2023-11-16 18:15:4{n},{50 + n},{n}" for n in range(5)),
    ]
    path.write_text("\n".join(rows))
    told = document(config, "import", "m", str(path), "--limit", "4", "--seed", "s", "--json")
    assert (told["kind"], told["new"], told["corpus"]) == ("trace", 4, "trace")
    out = ran(config, "export", "m", "--name", "trace", "-o", "-")
    bodies = [json.loads(each)["body"] for each in out.stdout.splitlines() if each.startswith("{")]
    assert sorted(len(body["messages"][0]["content"].split()) for body in bodies) == [50, 51, 52, 53]
    same = document(config, "import", "m", str(path), "--limit", "4", "--seed", "s", "--name", "b", "--json")
    other = document(config, "import", "m", str(path), "--limit", "4", "--name", "c", "--json")
    assert told["digest"] == same["digest"] != other["digest"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ("hello\n", "is neither"),
        ("a,b,c\n1,2,3\n", "is neither"),
    ],
)
def test_a_file_of_no_known_kind_is_told(config: Path, tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "some.txt"
    path.write_text(text)
    found = ran(config, "import", "m", str(path))
    assert found.exit_code == 2
    assert told in found.stderr


def test_wrong_names_are_told(config: Path, batch: Path) -> None:
    assert "did you mean 'm'" in ran(config, "import", "n", str(batch)).stderr.replace("\n", " ")
    assert "drawn from captures" in ran(config, "import", "m", str(batch), "--name", "traffic").stderr
    assert "without spaces" in ran(config, "import", "m", str(batch), "--name", "a b").stderr
    assert "No such file" in ran(config, "import", "m", "missing.jsonl").stderr
    assert "say what" in ran(config, "forget").stderr
    assert "say what" in ran(config, "forget", "m").stderr


def test_nothing_kept_says_what_fills_it(config: Path, batch: Path) -> None:
    found = ran(config, "show")
    assert found.exit_code == 2
    assert "nothing is kept yet; workers keep requests as they score captures" in found.stderr
    ran(config, "import", "m", str(batch))
    ran(config, "forget", "m", "--name", "tests")
    found = ran(config, "show")
    assert found.exit_code == 0
    assert "no request is kept yet" in found.stdout
    assert ran(config, "export", "m", "-o", "-").exit_code == 1


def test_an_import_beyond_the_limit_is_refused_with_what_to_do(config: Path, batch: Path) -> None:
    config.write_text(config.read_text() + "corpus: {max_bytes: 100B}\n")
    found = ran(config, "import", "m", str(batch))
    assert found.exit_code == 2
    assert "corpus.max_bytes (100)" in found.stderr


@pytest.fixture
def drawn(config: Path) -> str:
    """One request of a customer, as a worker draws it; the hash of that customer's key."""
    settings = load(config, {})
    tenant = tenant_of(settings.proxy.mirroring.salt, b"the key")
    place = place_of(settings.corpus.plan, model="m", stratum="short/en", tenant=tenant, at=time.time())
    blob = seal_request(
        place,
        digest="d1",
        path="/v1/chat/completions",
        body=b"{}",
        conversation=None,
        at=time.time(),
        keyring=settings.keyring,
    )
    one = Drawn(place=place, digest="d1", original="d0", rank=rank_of(b"", "d0"), blob=blob)
    db = open_database(settings.database_url)
    take_in(db, settings.corpus.plan, [one])
    db.close()
    return tenant


def test_show_tells_corpora_and_of_one_model_its_strata(config: Path, batch: Path, drawn: str) -> None:
    ran(config, "import", "m", str(batch))
    told = ran(config, "show").stdout
    assert "traffic *" in told
    assert "* is what shadow jobs send" in told
    assert "tests" in told
    strata = ran(config, "show", "m").stdout
    assert "short/en" in strata
    assert drawn in strata
    found = document(config, "show", "--json")
    assert [(each["corpus"], each["requests"]) for each in found["corpora"]] == [("tests", 3), ("traffic", 1)]
    assert found["answers"] == {}


def test_a_customer_is_forgotten_by_the_key_it_had(config: Path, drawn: str, tmp_path: Path) -> None:
    key = tmp_path / "leaving.key"
    key.write_text("the key\n")
    found = ran(config, "forget", "--api-key-file", str(key))
    assert found.exit_code == 0, found.output
    assert "gone: 1 requests" in found.stdout
    assert f"captures of tenant {drawn} may still wait" in found.stderr
    assert document(config, "forget", "--tenant", drawn, "--json")["requests"] == 0
    assert document(config, "manifest", "m")["requests"] == 0
    missing = ran(config, "forget", "--api-key-file", str(tmp_path / "none"))
    assert (missing.exit_code, "there is no file" in missing.stderr) == (2, True)
    assert "twice" in ran(config, "forget", "--api-key-file", str(key), "--tenant", drawn).stderr


def test_a_manifest_goes_to_a_file_when_asked(config: Path, batch: Path, tmp_path: Path) -> None:
    ran(config, "import", "m", str(batch))
    out = tmp_path / "corpus.json"
    assert ran(config, "manifest", "m", "--name", "tests", "-o", str(out)).exit_code == 0
    assert json.loads(out.read_text())["corpus"] == "tests"
    nowhere = ran(config, "manifest", "m", "-o", str(tmp_path / "no" / "where"))
    assert (nowhere.exit_code, "cannot be written" in nowhere.stderr) == (2, True)
