"""`tiergate capacity batch`, `diagnose` and `compare`, from the files of a shadow job."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from service.cli import capacity, offline
from service.report.document import Report, TierReport, to_json
from service.report.measured import EngineSeries, Metric
from tests.report.sample import sample

GOODPUT = {1: 38.0, 2: 76.0, 4: 152.0, 8: 304.0, 16: 608.0, 32: 500.0, 64: 300.0, 128: 0.0}


def ran(*arguments: str | Path, code: int = 0) -> Result:
    app = typer.Typer()
    offline.register(app)  # a second command, so that `capacity` is one of several
    capacity.register(app)
    environment = {"COLUMNS": "100", "TERM": "dumb"}
    outcome = CliRunner().invoke(app, ["capacity", *map(str, arguments)], env=environment)
    assert outcome.exit_code == code, outcome.output
    return outcome


def document(*arguments: str | Path, code: int = 0) -> Any:
    return json.loads(
        ran(*arguments, "--json", code=code).stdout, parse_constant=lambda name: pytest.fail(name)
    )


def block(report: Report, **told: Any) -> dict[str, Any]:
    moments = {
        name: datetime.fromtimestamp(report.run.began_at + seconds, UTC).isoformat()
        for name, seconds in (("started_at", 0), ("ended_at", 600))
    }
    common = {"tier": "bf16", "part": "concurrency", "concurrency": None, "goodput": None, "tpot_p95": None}
    return {**common, **moments, "invalid": [], **told}


@pytest.fixture
def report() -> Report:
    return sample()


@pytest.fixture
def kept(report: Report, tmp_path: Path) -> Path:
    return put(tmp_path, "report.json", report)


def put(directory: Path, name: str, told: Report | object) -> Path:
    path = directory / name
    path.write_text(to_json(told) if isinstance(told, Report) else json.dumps(told), encoding="utf-8")
    return path


def job(report: Report, directory: Path, *blocks: dict[str, Any]) -> Path:
    return put(directory, "job.json", {"job": report.run.id, "blocks": list(blocks)})


def curve(report: Report) -> list[dict[str, Any]]:
    return [
        block(report, concurrency=count, goodput=goodput, tpot_p95=0.02 + 0.09 * count / 64)
        for count, goodput in GOODPUT.items()
    ]


def test_a_report_tells_where_to_begin_and_what_it_lacks(kept: Path) -> None:
    told = ran("batch", kept, "--tier", "bf16").stdout
    assert "max-num-seqs  16: 16 at once keeps P95 of TPOT at most 64 ms, 80% of its SLO; 32 does not" in told
    assert "not reached: tokens that met the SLO are not told" in told
    assert "Costs need --job FILE, from: tiergate shadow status 20261130-030000-a1b2c3 --json" in told


def test_blocks_of_the_job_tell_what_tokens_that_count_cost(
    report: Report, kept: Path, tmp_path: Path
) -> None:
    found = document("batch", kept, "--job", job(report, tmp_path, *curve(report)), "--tier", "bf16")
    (tier,) = found["tiers"]
    assert found["currency"] == "CNY"
    assert (tier["start"]["concurrency"], tier["cheapest"]["concurrency"]) == (16, 16)
    assert tier["turn"]["concurrency"] == 32
    assert tier["offline"]["verdict"] == "above"
    assert tier["curve"][4]["million"] == pytest.approx(60e6 / (3600 * 608))
    dearer = document(
        *("batch", kept, "--job", job(report, tmp_path, *curve(report)), "--tier", "bf16", "--price", "120")
    )
    assert dearer["tiers"][0]["curve"][4]["million"] == pytest.approx(120e6 / (3600 * 608))


def test_blocks_that_may_not_be_used_are_not(report: Report, kept: Path, tmp_path: Path) -> None:
    spoiled = {**curve(report)[4], "tpot_p95": 0.5, "invalid": ["generator_lag"]}
    waits = {**curve(report)[4], "tpot_p95": 0.5, "invalid": None}
    path = job(report, tmp_path, *curve(report), spoiled, waits)
    found = document("batch", kept, "--job", path, "--tier", "bf16")
    assert found["tiers"][0]["start"]["concurrency"] == 16


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"job": "another", "blocks": []}, "is of job another"),
        ({"job": "another"}, "has no blocks"),
        ({"blocks": [1]}, "has no blocks"),
        ([], "is not a JSON object"),
    ],
)
def test_another_job_is_refused(kept: Path, tmp_path: Path, told: object, says: str) -> None:
    assert says in ran("batch", kept, "--job", put(tmp_path, "job.json", told), code=2).output


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"goodput": "many"}, {"goodput": 10**400}])
def test_a_block_of_nonsense_is_refused(
    report: Report, kept: Path, tmp_path: Path, wrong: dict[str, Any]
) -> None:
    path = job(report, tmp_path, {**curve(report)[0], **wrong})
    ran("batch", kept, "--job", path, code=2)


@pytest.mark.parametrize("command", ["batch", "diagnose"])
def test_what_is_no_report_is_refused_with_the_next_step(command: str, tmp_path: Path) -> None:
    nothing = put(tmp_path, "nothing.json", {"a": 1})
    assert "tiergate report RUN --format json" in ran(command, nothing, code=2).output
    text = tmp_path / "text"
    text.write_bytes(b"\xff")
    assert "is not JSON" in ran(command, text, code=2).output
    assert "cannot read" in ran(command, tmp_path / "none", code=2).output


def test_a_tier_or_a_curve_that_is_not_there_is_told(report: Report, kept: Path, tmp_path: Path) -> None:
    assert "which has bf16, w8a8" in ran("batch", kept, "--tier", "int2", code=2).output
    bare = replace(report, tiers=tuple(replace(each, concurrency=None) for each in report.tiers))
    assert "part `concurrency`" in ran("batch", put(tmp_path, "bare.json", bare), code=2).output


def slow(report: Report, metric: Metric) -> Report:
    """The baseline alone, with a limit that it misses, and an engine whose queue grows in the sweep alone."""
    base = report.tiers[0]
    assert base.load is not None
    latencies = tuple(
        replace(each, limit_seconds=0.001 if each.metric is metric else 1e6) for each in base.load.latencies
    )
    waiting = EngineSeries(metric="waiting", points=((60.0, 3.0), (120.0, 5.0), (700.0, 90.0)))
    changed: TierReport = replace(
        base, load=replace(base.load, latencies=latencies, failed={}), engine=(waiting,)
    )
    return replace(report, tiers=(changed, *report.tiers[1:]))


def test_a_slow_first_token_is_put_down_to_the_queue_of_its_own_blocks(
    report: Report, tmp_path: Path
) -> None:
    kept = put(tmp_path, "slow.json", slow(report, Metric.TTFT))
    path = job(report, tmp_path, block(report, part="slo"), block(report, part="sweep"))
    (tier,) = document("diagnose", kept, "--job", path, "--tier", "bf16", code=1)["tiers"]
    assert [(each["stage"], each["cause"]) for each in tier["causes"]] == [("ttft", "queue")]
    assert tier["causes"][0]["evidence"] == "4.0 requests wait on average"
    assert not any("max-num-seqs" in remedy for remedy in tier["causes"][0]["remedies"])
    told = ran("diagnose", kept, "--job", path, "--tier", "bf16", code=1).stdout
    assert "    queue: 4.0 requests wait on average\n      may help: more backends; " in told


def test_without_blocks_the_engine_is_not_believed(report: Report, tmp_path: Path) -> None:
    kept = put(tmp_path, "slow.json", slow(report, Metric.TTFT))
    (tier,) = document("diagnose", kept, "--tier", "bf16", code=1)["tiers"]
    assert [each["cause"] for each in tier["causes"]] == ["unknown"]
    assert "memory" in tier["not_judged"]


def test_a_slow_next_token_is_put_down_to_reading_or_to_the_batch(report: Report, tmp_path: Path) -> None:
    kept = put(tmp_path, "slow.json", slow(report, Metric.TPOT))
    (tier,) = document("diagnose", kept, "--tier", "bf16", code=1)["tiers"]
    assert [(each["stage"], each["cause"]) for each in tier["causes"]] == [("tpot", "bandwidth")]


def test_patterns_are_found_in_what_is_told_of_traffic(kept: Path) -> None:
    given = ("--rate", "0.1", "--prefixes", "4000", "--max-sequences", "256", "--most-running", "6")
    found = document("diagnose", kept, *given, "--bits", "4", "--sensitive-share", "0.5", code=1)["tiers"]
    states = {each["tier"]: [pattern["state"] for pattern in each["patterns"]] for each in found}
    assert states["bf16"] == ["found"] * 3
    assert states["w8a8"] == ["found", "found", "absent"]  # a verdict accepts it
    assert states["w4a16-fp8kv"] == ["found"] * 3


def manifest(report: Report, **plan: Any) -> dict[str, Any]:
    told = deepcopy(dict(report.manifest))
    told["plan"] = {"rate": 4.0, **plan}
    for tier in told["tiers"]:
        tier["declares"] = {"weights": tier.pop("weights")}
    return told


def test_two_runs_are_put_side_by_side(report: Report, tmp_path: Path) -> None:
    was = put(tmp_path, "was.json", replace(report, manifest=manifest(report)))
    now = put(tmp_path, "now.json", replace(report, manifest=manifest(report, rate=8.0)))
    found = document("compare", was, now)
    assert found["label"] == "one variable: arrival rate"
    assert {each["verdict"] for each in found["figures"]} <= {"within", "told"}
    assert "ttft_p95" in ran("compare", was, now).stdout


def test_two_tiers_of_one_run_are_compared(report: Report, tmp_path: Path) -> None:
    path = put(tmp_path, "one.json", replace(report, manifest=manifest(report)))
    found = document("compare", path, path, "--tier", "bf16", "--to", "w8a8")
    assert found["label"] == "one variable: precision"
    goodput = next(each for each in found["figures"] if each["figure"] == "goodput")
    assert goodput["verdict"] == "higher"
    assert goodput["was"]["value"] == 1450.0


def test_more_than_one_variable_is_refused_unless_forced(report: Report, tmp_path: Path) -> None:
    was, now = manifest(report), manifest(report, rate=8.0)
    now["slo"]["tpot_seconds"] = 0.05
    files = (put(tmp_path, "was.json", was), put(tmp_path, "now.json", now))
    refused = ran("compare", *files, code=1).output
    assert "refused: 2 variables changed" in refused
    assert "arrival rate: was 4.0, is 8.0" in refused
    assert "No figures" in ran("compare", *files, "--force").stdout
    forced = document("compare", *files, "--force")
    assert forced["forced"]
    assert forced["label"].startswith("FORCED: 2 variables changed (arrival rate, SLO)")


def test_what_cannot_be_compared_is_told(report: Report, kept: Path, tmp_path: Path) -> None:
    assert "no tier 'x'" in ran("compare", kept, kept, "--tier", "x", code=2).output
    nothing = put(tmp_path, "nothing.json", {"a": 1})
    assert "is no report, matrix or manifest" in ran("compare", kept, nothing, code=2).output
    bare = put(tmp_path, "bare.json", replace(report, manifest={}))
    assert "names no tier" in ran("compare", bare, bare, code=2).output


def test_a_manifest_inside_an_answer_of_the_api_is_read(report: Report, tmp_path: Path) -> None:
    path = put(tmp_path, "answer.json", {"digest": "x", "manifest": manifest(report)})
    assert document("compare", path, path)["label"] == "none of the six variables changed"


def test_what_differs_besides_is_listed(report: Report, tmp_path: Path) -> None:
    now = manifest(report)
    now["seed"] = 8
    files = (put(tmp_path, "was.json", manifest(report)), put(tmp_path, "now.json", now))
    assert "Differs too:\n  seed: was 20261130, is 8\n" in ran("compare", *files).stdout


def test_a_report_without_an_slo_or_a_block_without_a_time_is_refused(
    report: Report, kept: Path, tmp_path: Path
) -> None:
    bare = put(tmp_path, "bare.json", replace(report, slo_tpot_seconds=None))
    assert "has no SLO of TPOT" in ran("batch", bare, code=2).output
    path = job(report, tmp_path, block(report, part="slo", started_at=None))
    assert "started_at of a block is a moment" in ran("diagnose", kept, "--job", path, code=2).output
