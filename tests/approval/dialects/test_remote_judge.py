"""What Kayenta posts to its remote judge, and the CanaryJudgeResult that it needs back."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.approval.dialects.argo_client import strict
from tests.approval.live import LiveApi

EXAMPLES = Path(__file__).parents[3] / "deploy" / "examples" / "kayenta"


def judge(api: LiveApi, sets: Mapping[str, tuple[list[Any], list[Any]]], **changes: Any) -> Any:
    """What Kayenta's RemoteJudge posts and needs: every field of a CanaryJudgeResult."""
    config = json.loads((EXAMPLES / "canary-config.json").read_text(encoding="utf-8"))
    body = {
        "canaryConfig": {**config, **changes},
        "scoreThresholds": {"pass": 90, "marginal": 75},
        "metricSetPairList": [
            {
                "name": name,
                "id": f"id of {name}",
                "tags": {},
                "values": {"control": control, "experiment": experiment},
                "scopes": {"control": {"stepMillis": 60000}, "experiment": {"stepMillis": 60000}},
                "attributes": {},
            }
            for name, (control, experiment) in sets.items()
        ],
    }
    token = api.secrets["read"]
    answer = api.client().post(f"/gates/token/{token}/kayenta/judge", content=json.dumps(body), headers=JSON)
    assert answer.status_code == 200, answer.text
    told = strict(answer.text)
    assert set(told) == {"judgeName", "results", "groupScores", "score"}
    return told


JSON = {"Content-Type": "application/json"}
TTFT, ABORTED = "ttft_p95_seconds", "requests_aborted"
DRAWN = random.Random(7)
NOISE = [DRAWN.gauss(1, 0.1) for _ in range(800)]


def classes(told: Any) -> dict[str, str]:
    return {each["name"]: each["classification"] for each in told["results"]}


def test_series_that_differ_by_chance_pass_and_a_slower_one_is_high(shared_api: LiveApi) -> None:
    quiet = ([0.0] * 400, [0.0] * 400)
    same = judge(shared_api, {TTFT: (NOISE[:400], NOISE[400:]), ABORTED: quiet})
    assert classes(same) == {TTFT: "Pass", ABORTED: "Pass"}
    assert (same["score"]["score"], same["score"]["classification"]) == (100, "Pass")
    slower = judge(shared_api, {TTFT: (NOISE[:400], [value * 1.5 for value in NOISE[400:]]), ABORTED: quiet})
    assert classes(slower) == {TTFT: "High", ABORTED: "Pass"}
    assert (slower["score"]["score"], slower["score"]["classification"]) == (50, "Fail")


def test_a_faster_one_passes_where_only_an_increase_is_worse(shared_api: LiveApi) -> None:
    told = judge(shared_api, {TTFT: (NOISE[:400], [value / 2 for value in NOISE[400:]])})
    assert classes(told) == {TTFT: "Pass"}


def test_a_critical_metric_that_is_worse_fails_everything(shared_api: LiveApi) -> None:
    told = judge(shared_api, {TTFT: (NOISE[:400], NOISE[400:]), ABORTED: ([0.0] * 400, [1.0] * 400)})
    assert classes(told)[ABORTED] == "High"
    assert told["score"] == {
        "score": 0,
        "classification": "Fail",
        "classificationReason": "critical: requests_aborted.",
    }


def test_few_steps_decide_nothing_and_lie_between_the_thresholds(shared_api: LiveApi) -> None:
    told = judge(shared_api, {TTFT: (NOISE[:10], NOISE[400:410])})
    assert classes(told) == {TTFT: "Nodata"}
    assert 75 < told["score"]["score"] < 90
    assert told["score"]["classification"] == "Marginal"


def test_missing_values_are_no_steps_however_they_are_written(shared_api: LiveApi) -> None:
    missing = ["NaN", None, math.nan]
    told = judge(shared_api, {ABORTED: (missing, [1.0, 2.0, 3.0])})
    assert classes(told) == {ABORTED: "NodataFailMetric"}
    assert told["results"][0]["controlMetadata"]["stats"]["count"] == 0
    assert told["score"]["score"] == 0


def test_a_configuration_may_leave_out_what_it_may_leave_null(shared_api: LiveApi) -> None:
    canary = {"direction": "increase", "critical": None, "mustHaveData": None, "effectSize": None}
    for analysis in (None, {}, {"canary": None}, {"canary": canary}):
        metric = {"name": TTFT, "groups": None, "analysisConfigurations": analysis}
        bare = {"metrics": [metric], "judge": None, "classifier": None}
        told = judge(shared_api, {TTFT: (NOISE[:400], NOISE[400:])}, **bare)
        assert classes(told) == {TTFT: "Pass"}, analysis
        assert told["results"][0]["groups"] == ["ungrouped"]


def test_no_metrics_at_all_are_no_pass(shared_api: LiveApi) -> None:
    told = judge(shared_api, {})
    assert told["score"]["classification"] == "Marginal"


def test_series_that_do_not_fit_each_other_are_refused(shared_api: LiveApi) -> None:
    client = shared_api.client("read")
    pair = {"name": "x", "id": "x", "values": {"control": [1.0], "experiment": []}}
    body = {
        "canaryConfig": {"metrics": [{"name": "x"}]},
        "scoreThresholds": {"pass": 90, "marginal": 75},
        "metricSetPairList": [pair],
    }
    assert client.post("/gates/kayenta/judge", json=body).status_code == 422
    assert (
        client.post("/gates/kayenta/judge", json={**body, "canaryConfig": {"metrics": []}}).status_code == 422
    )
    huge = {**pair, "values": {"control": [1e200], "experiment": [1.0]}}
    assert client.post("/gates/kayenta/judge", json={**body, "metricSetPairList": [huge]}).status_code == 422


def test_a_day_of_minutes_of_twenty_metrics_is_not_too_large(shared_api: LiveApi) -> None:
    names = [f"m{number}" for number in range(20)]
    metrics = [{"name": name, "groups": ["g"]} for name in names]
    series = (NOISE + NOISE[:640], NOISE[::-1] + NOISE[:640])
    told = judge(shared_api, dict.fromkeys(names, series), metrics=metrics, classifier={})
    assert len(told["results"]) == 20
