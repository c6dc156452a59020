"""`tiergate capacity diagnose MODEL TIER`: from the last load run, and from engines as they serve."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from service.cli import capacity, offline
from service.store.sql.database import open_database
from tests.launch.conftest import serving
from tests.report.gathering.jobs import job_over, run


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIERGATE_CONFIG", raising=False)


def configured(url: str = "http://127.0.0.1:9", **more: Any) -> None:
    tiers = [
        {"tier": "bf16", "backends": [url], "model": "m"},
        {"tier": "w8a8", "backends": [url], "model": "m", "declares": {"weights": "int8"}},
    ]
    model = {"ladder": tiers, "slo": {"ttft": "500ms", "tpot": "50ms"}, **more}
    Path("tiergate.yaml").write_text(json.dumps({"models": {"m": model}}))
    Path(".tiergate").mkdir(exist_ok=True)
    with closing(open_database(f"sqlite:///{Path('.tiergate/tiergate.db').absolute()}")):
        pass


def ran(*arguments: str, code: int = 0) -> Result:
    app = typer.Typer()
    offline.register(app)
    capacity.register(app)
    environment = {"COLUMNS": "200", "TERM": "dumb"}
    outcome = CliRunner().invoke(app, ["capacity", "diagnose", *arguments], env=environment)
    assert outcome.exit_code == code, outcome.output
    return outcome


def buckets(name: str, counts: dict[str, float]) -> str:
    return "".join(f'{name}_bucket{{engine="0",le="{le}"}} {count}\n' for le, count in counts.items())


class Engine(Mapping[str, tuple[int, str]]):
    """Pages of a vLLM under a queue: at each look 50 more requests, all slow to begin."""

    def __init__(self) -> None:
        self.looks = 0
        self.lock = threading.Lock()

    def __getitem__(self, path: str) -> tuple[int, str]:
        if path != "/metrics":
            raise KeyError(path)
        return 200, self.page()

    def __iter__(self) -> Iterator[str]:
        return iter(("/metrics",))

    def __len__(self) -> int:
        return 1

    def page(self) -> str:
        with self.lock:
            self.looks += 1
            served = 50.0 * self.looks
        slow = {"0.25": 0.0, "0.5": 0.0, "1.0": served, "+Inf": served}
        fast = {"0.025": served, "0.05": served, "+Inf": served}
        return (
            'vllm:num_requests_running{engine="0"} 8\nvllm:num_requests_waiting{engine="0"} 6\n'
            'vllm:kv_cache_usage_perc{engine="0"} 0.5\nvllm:num_preemptions_total{engine="0"} 0\n'
            + buckets("vllm:time_to_first_token_seconds", slow)
            + buckets("vllm:request_time_per_output_token_seconds", fast)
        )


@pytest.fixture
def engine() -> Iterator[str]:
    with serving(Engine()) as url:
        yield url


def test_a_queue_is_seen_while_it_is_there(engine: str) -> None:
    configured(engine)
    told = ran("m", "bf16", "--live", "300ms", "--json", code=1)
    (tier,) = json.loads(told.stdout)["tiers"]
    assert [(each["stage"], each["cause"]) for each in tier["causes"]] == [("ttft", "queue")]
    assert tier["causes"][0]["evidence"] == "6.0 requests wait on average beside 8.0 that run"
    assert tier["causes"][0]["hurts"] == "P95 of TTFT is 975 ms, its limit 500 ms"
    assert tier["source"].startswith("live, 0.3 s: ")
    assert tier["not_judged"] == ["cost"]
    assert "watching 1 backends of bf16 for 0.3 s" in told.stderr


def test_what_is_given_stands_beside_what_is_seen(engine: str) -> None:
    configured(engine)
    told = ran("m", "bf16", "--live", "300ms", "--max-sequences", "256", "--most-running", "8", code=1).stdout
    assert "pattern empty batch: found: up to 256 may run at once, and 8 did at most" in told


def test_engines_that_tell_nothing_are_told_what_they_lack() -> None:
    configured()
    assert "tells anything at /metrics" in ran("m", "bf16", "--live", "100ms", code=3).output


def test_an_engine_without_histograms_or_traffic_is_not_judged_by_them() -> None:
    page = "llamacpp:requests_processing 1\nllamacpp:requests_deferred 0\n"
    with serving({"/metrics": (200, page)}) as url:
        configured(url)
        (tier,) = json.loads(ran("m", "bf16", "--live", "200ms", "--json").stdout)["tiers"]
    assert tier["causes"] == []
    assert {"ttft", "tpot"} <= set(tier["not_judged"])
    assert "0 requests had a first token, too few for a P95 of them" in tier["source"]


def test_the_last_load_run_that_is_stored_is_judged() -> None:
    configured(slo={"ttft": "1500ms", "tpot": "80ms"})
    with closing(open_database(f"sqlite:///{Path('.tiergate/tiergate.db').absolute()}")) as db:
        manifest, blocks = run()
        job = job_over(db, manifest, blocks)
    outcome = ran("m", "w8a8", "--json")
    (tier,) = json.loads(outcome.stdout)["tiers"]
    assert tier["source"].startswith(f"load run {job.job_id}, ended ")
    assert "ttft" not in tier["not_judged"]
    assert tier["patterns"][2]["reason"] == "8 bits"


def test_without_a_load_run_the_next_step_is_told() -> None:
    configured()
    told = ran("m", "w8a8", code=3).output
    assert "`tiergate shadow run m` begins one, and --live 60s watches its engines" in told


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("n", "w8a8"), "no file and no model is called 'n'; did you mean 'm'?"),
        (("m", "w8a9"), "has no tier 'w8a9'; did you mean 'w8a8'?"),
        (("report.json", "--live", "5s"), "--live needs a MODEL and a TIER"),
        (("m", "w8a8", "--live", "soon"), "--live"),
        (("m", "w8a8", "--live", "0s"), "longer than 0 s"),
        (("m", "w8a8", "--tier", "x"), "go with a REPORT"),
    ],
)
def test_what_cannot_be_asked_says_so(arguments: tuple[str, ...], says: str) -> None:
    configured()
    assert says in " ".join(ran(*arguments, code=2).output.replace("│", " ").split())
