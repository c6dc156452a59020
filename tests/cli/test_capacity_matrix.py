"""`tiergate capacity matrix`: against a backend that answers at once, and against a real llama.cpp."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
from typer.testing import CliRunner, Result

from service.cli import capacity, corpus, offline
from service.cli.capacity_matrix_prompts import near, weighted_quantile
from service.demo.llama_server import command
from service.demo.tiers import KvType
from service.fleet import Route
from service.store.decided.routes import set_route
from service.store.load.jobs import Cause, begin_job
from service.store.load.manifest import Manifest
from service.store.sql.database import Database, open_database
from tests.cli.loaded import Loaded, loaded
from tests.demo.tiny_llama import write_tiny_llama
from tests.leash import Leashed
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.store.load.test_manifest import document as manifest

SLOW = f"{PATIENCE:g}s"
"""An SLO that even a machine in trouble keeps."""


@pytest.fixture
def backend() -> Iterator[Loaded]:
    with loaded() as found:
        yield found


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIERGATE_CONFIG", raising=False)


def configured(url: str, **more: Any) -> None:
    """A ladder whose candidate is the backend; its baseline is nowhere."""
    tiers = [
        {"tier": "bf16", "backends": ["http://127.0.0.1:9"], "model": "m"},
        {"tier": "w8a8", "backends": [url], "model": "m", "declares": {"weights": "int8"}},
    ]
    model = {"ladder": tiers, "slo": {"ttft": SLOW, "tpot": SLOW}, **more}
    Path("tiergate.yaml").write_text(json.dumps({"models": {"client/m": model}}))
    Path(".tiergate").mkdir(exist_ok=True)


SMALL = ("--prompt", "200", "--prompt", "400", "--concurrency", "1", "--concurrency", "2")
ONE = ("--prompt", "200", "--concurrency", "1")
QUICK = ("--window", "400ms", "--warm-up", "100ms", "--output-tokens", "3")


def ran(*arguments: str, code: int = 0) -> Result:
    app = typer.Typer()
    offline.register(app)
    corpus.register(app)
    capacity.register(app)
    environment = {"COLUMNS": "200", "TERM": "dumb"}
    outcome = CliRunner().invoke(app, ["capacity", "matrix", *arguments], env=environment)
    assert outcome.exit_code == code, outcome.output
    return outcome


def measured(*more: str, cells: tuple[str, ...] = SMALL, code: int = 0) -> Result:
    return ran("client/m", "w8a8", *cells, *QUICK, *more, code=code)


def stored() -> closing[Database]:
    return closing(open_database(f"sqlite:///{Path('.tiergate/tiergate.db').absolute()}"))


def kept() -> Any:
    return json.loads(Path("matrix-client-m-w8a8.json").read_text())


def test_every_cell_that_matters_is_measured_written_down_and_shown(backend: Loaded) -> None:
    configured(backend.url)
    told = measured("--batch-tokens", "2048", "--html", "matrix.html")
    document = kept()
    places = [(each["prompt"]["name"], each["concurrency"]) for each in document["cells"]]
    assert places[0] == ("200", 1)
    assert ("400", 1) in places
    cell = document["cells"][0]
    assert (cell["batch_tokens"], cell["invalid"], cell["failed"]) == (2048, [], {})
    assert cell["passed"] == cell["offered"] > 0
    assert cell["prompt_tokens"] == pytest.approx(200, abs=2), "as long as the engine counts"
    assert (cell["kv_usage"], cell["running"]) == (0.5, 1.0)
    assert "prompts of 200 tokens, budget 2,048 (counted 200)" in told.stdout
    assert "A knee rests on two windows" in told.stdout
    assert "written to matrix-client-m-w8a8.json" in told.stderr
    page = Path("matrix.html").read_text()
    assert "P95 of TTFT by requests at once, limit" in page
    assert page.count("<svg") == 6
    streamed = [each for each in backend.bodies if each.get("stream")]
    assert {each["ignore_eos"] for each in streamed} == {True}
    texts = {each["messages"][0]["content"] for each in streamed}
    firsts = {text.split()[0] for text in texts}
    assert len(firsts) == len(texts), "no two prompts begin alike"


def test_a_second_sitting_goes_on_where_the_first_was_stopped(backend: Loaded) -> None:
    configured(backend.url)
    measured()
    whole = kept()
    part = {**whole, "cells": whole["cells"][:1]}
    Path("matrix-client-m-w8a8.json").write_text(json.dumps(part))
    backend.bodies.clear()
    measured()
    again = kept()
    assert again["cells"][0] == whole["cells"][0], "what was known is not measured again"
    assert {each["prompt"]["name"] for each in again["cells"]} == {"200", "400"}
    words = {len(each["messages"][0]["content"].split()) for each in backend.bodies if each.get("stream")}
    backend.bodies.clear()
    measured()
    assert [each for each in backend.bodies if each.get("stream")] == [], "all that matters is there"
    assert words


def test_another_budget_goes_into_the_same_file_and_another_question_does_not(backend: Loaded) -> None:
    configured(backend.url)
    measured("--batch-tokens", "8192", cells=ONE)
    measured("--batch-tokens", "2048", cells=ONE)
    assert {each["batch_tokens"] for each in kept()["cells"]} == {8192, 2048}
    refused = ran("client/m", "w8a8", *SMALL, "--window", "1s", "--output-tokens", "3", code=2).output
    assert "was measured otherwise:\n  window_seconds: was 0.4, is 1.0" in refused
    assert "give another -o" in refused


def test_another_engine_does_not_go_into_the_same_file(backend: Loaded) -> None:
    configured(backend.url)
    measured(cells=ONE)
    document = kept()
    document["manifest"]["tiers"][0]["engines"][backend.url]["version"] = "0.11.0"
    Path("matrix-client-m-w8a8.json").write_text(json.dumps(document))
    assert "version: was 0.11.0, is 0.32.0" in measured(code=2).output


def test_backends_that_serve_are_refused_before_anything_is_sent(backend: Loaded) -> None:
    configured(backend.url)
    with stored() as db:
        set_route(db, Route(model="client/m", weights={"bf16": 50, "w8a8": 50}), at=1.0, actor="ann")
    refused = measured(code=1).output
    assert "refused: " in refused
    assert "serves clients as client/m/w8a8" in refused
    assert "give w8a8 `shadow` backends that serve nobody" in refused
    assert backend.bodies == []


def test_a_backend_that_comes_into_service_stops_the_cell(backend: Loaded) -> None:
    configured(backend.url)

    def promoted(body: dict[str, Any]) -> int:
        if body.get("stream") and len(backend.bodies) > 3:
            backend.answers = lambda body: 200
            with stored() as db:
                set_route(db, Route.only("client/m", "w8a8"), at=1.0, actor="ann")
        return 200

    backend.answers = promoted
    stopped = ran("client/m", "w8a8", *SMALL, "--window", "1h", "--output-tokens", "3", code=1).output
    assert "serves clients as client/m/w8a8" in stopped
    assert "the same command goes on from there" in stopped


def test_a_tier_that_fails_everything_costs_two_windows_and_has_no_knee(backend: Loaded) -> None:
    configured(backend.url)
    backend.answers = lambda body: 400 if body.get("stream") else 200
    told = measured()
    assert {(each["concurrency"], each["passed"]) for each in kept()["cells"]} == {(1, 0)}
    assert len(kept()["cells"]) == 4
    assert "not reached: nothing_answered: rejected" in told.stderr


def test_prompts_beyond_the_engines_context_are_not_tried(backend: Loaded) -> None:
    configured(backend.url)
    told = ran("client/m", "w8a8", "--prompt", "200", "--prompt", "8192", "--concurrency", "1", *QUICK)
    assert (
        "8,192 tokens: not tried: prompt and answer of 8,195 tokens are more than the engine's 4,096"
        in told.stderr
    )
    assert {each["prompt"]["name"] for each in kept()["cells"]} == {"200"}


def test_captured_traffic_gives_classes_by_its_sizes(backend: Loaded) -> None:
    configured(backend.url)
    lines = []
    for number in range(40):
        body = {
            "model": "m",
            "messages": [{"role": "user", "content": f"{number} " + "word " * (10 * number)}],
        }
        line = {"custom_id": f"{number}", "method": "POST", "url": "/v1/chat/completions", "body": body}
        lines.append(json.dumps(line))
    Path("tests.jsonl").write_text("\n".join(lines) + "\n")
    document = json.loads(Path("tiergate.yaml").read_text())
    document["corpus"] = {"use": "tests"}
    Path("tiergate.yaml").write_text(json.dumps(document))
    app = typer.Typer()
    corpus.register(app)
    app.command("other")(lambda: None)
    found = CliRunner().invoke(app, ["corpus", "import", "client/m", "tests.jsonl"])
    assert found.exit_code == 0, found.output
    ran("client/m", "w8a8", "--captured", "--concurrency", "1", *QUICK)
    rows = {each["prompt"]["name"]: each for each in kept()["cells"]}
    assert set(rows) == {"p50", "p90", "p99"}
    assert rows["p50"]["prompt_tokens"] < rows["p90"]["prompt_tokens"]
    marks = {each["messages"][0]["content"].split()[0] for each in backend.bodies if each.get("stream")}
    assert len(marks) == 3, "one mark a cell"


def test_a_corpus_without_requests_says_what_to_do(backend: Loaded) -> None:
    configured(backend.url)
    refused = ran("client/m", "w8a8", "--captured", *QUICK, code=2).output
    assert "has no request: let traffic fill it" in refused


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "name a MODEL and a TIER"),
        (("client/m",), "name a MODEL and a TIER"),
        (("client/n", "w8a8"), "no model is called 'client/n'; did you mean 'client/m'?"),
        (("client/m", "w8a9"), "has no tier 'w8a9'; did you mean 'w8a8'?"),
        (("client/m", "w8a8", "--captured", "--prompt", "5"), "give --prompt or --captured, not both"),
        (("client/m", "w8a8", "--window", "soon"), "--window"),
        (("client/m", "w8a8", "--show", "x.json"), "not both"),
        (("--show", "none.json"), "cannot read none.json"),
    ],
)
def test_what_cannot_be_asked_says_so(backend: Loaded, arguments: tuple[str, ...], says: str) -> None:
    configured(backend.url)
    assert says in re.sub(r"[\s│]+", " ", ran(*arguments, code=2).output)


def test_a_model_without_an_slo_is_refused(backend: Loaded) -> None:
    configured(backend.url, slo=None)
    assert "has no service level" in measured(code=2).output


def test_a_backend_that_does_not_answer_or_serves_another_model_is_told() -> None:
    configured(f"http://127.0.0.1:{free_port()}")
    assert "cannot be reached" in measured(code=3).output
    with loaded(model="other") as other:
        configured(other.url)
        assert "serves other, not m" in measured(code=2).output


def test_a_shadow_job_that_runs_is_not_disturbed(backend: Loaded) -> None:
    configured(backend.url)
    with stored() as db:
        begin_job(
            db, manifest=Manifest.of(manifest(model="client/m")), cause=Cause.REQUEST, actor="ann", now=1.0
        )
    assert "is running, and would measure this load too" in measured(code=1).output


def test_a_file_is_shown_again_without_a_backend_or_a_configuration(backend: Loaded) -> None:
    configured(backend.url)
    first = measured().stdout
    Path("tiergate.yaml").unlink()
    assert ran("--show", "matrix-client-m-w8a8.json").stdout == first
    document = json.loads(ran("--show", "matrix-client-m-w8a8.json", "--json").stdout)
    assert [each["prompt"]["tokens"] for each in document["rows"]] == [200, 400]
    Path("wrong.json").write_text('{"schema": "x"}')
    assert "`tiergate capacity matrix MODEL TIER` makes one" in ran("--show", "wrong.json", code=2).output


def test_two_matrices_are_compared(backend: Loaded) -> None:
    configured(backend.url)
    measured("--batch-tokens", "8192", "-o", "was.json", cells=ONE)
    measured("--batch-tokens", "2048", "-o", "now.json", cells=ONE)
    app = typer.Typer()
    offline.register(app)
    capacity.register(app)
    found = CliRunner().invoke(app, ["capacity", "compare", "was.json", "now.json", "--json"])
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert "batch_tokens[0]: was 8192, is 2048" in told["others"]
    assert "ttft_p95 200 x 1" in {each["figure"] for each in told["figures"]}


def test_quantiles_of_sizes_are_weighted_and_a_class_has_its_nearest() -> None:
    sizes = [(100, 1.0), (200, 1.0), (300, 8.0)]
    assert [weighted_quantile(sizes, share) for share in (0.1, 0.2, 0.5, 1.0)] == [100, 200, 300, 300]
    assert near([10, 20, 21, 22, 500], 21) == [0, 1, 2, 3, 4], "few are taken, however far"
    spread = list(range(100, 400))
    assert near(spread, 200) == list(range(60, 151))


@pytest.mark.acceptance
def test_a_real_engine_is_measured(tmp_path: Path) -> None:
    model, port = tmp_path / "tiny.gguf", free_port()
    write_tiny_llama(model)
    server = Leashed(
        command(model, port=port, name="m", kv=KvType.F16),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        until = time.monotonic() + PATIENCE
        while not _healthy(url):
            assert time.monotonic() < until
            time.sleep(0.1)
        configured(url)
        # Its tokenizer has bytes: 600 tokens are a hundred words.
        asked = ("--prompt", "600", "--concurrency", "1", "--concurrency", "2", "--output-tokens", "4")
        ran("client/m", "w8a8", *asked, "--window", "3s", "--warm-up", "500ms")
    finally:
        server.terminate()
        server.wait(PATIENCE)
    document = kept()
    first = document["cells"][0]
    assert (first["concurrency"], first["invalid"], first["failed"]) == (1, [], {})
    assert first["prompt_tokens"] == pytest.approx(600, rel=0.05)
    assert first["output_tokens"] == 4
    assert document["manifest"]["tiers"][0]["engines"][url]["engine"] == "llama.cpp"


def _healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False
