"""What Prometheus reads."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from tests.approval.live import LiveApi


def samples(api: LiveApi) -> dict[tuple[str, ...], float]:
    page = api.client().get("/metrics")
    assert page.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, *(f"{name}={label}" for name, label in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page.text)
        for sample in family.samples
    }


def test_verdicts_routes_and_findings_are_gauges(api: LiveApi) -> None:
    api.accept("w8a8")
    api.client("approve").put("/api/v1/models/org/model/tiers/w8a8/approval", json={})
    seen = samples(api)
    place = ("model=org/model", "tier=w8a8")
    assert seen["tiergate_verdict", "decision=accept", *place] == 1
    assert seen["tiergate_verdict", "decision=reject", *place] == 0
    assert seen["tiergate_route_weight_percent", *place] == 100
    assert seen["tiergate_route_version", "model=org/model"] == 1
    assert seen["tiergate_gate", "gate=slo", "model=org/model", "state=not_asked", "tier=w8a8"] == 1
    assert seen["tiergate_pairs", "criterion=refusal", *place] == 40
    assert seen["tiergate_failure_rise_upper", "criterion=refusal", *place] < 0.2
    assert seen["tiergate_api_database_up",] == 1


def test_where_there_is_no_number_there_is_no_sample(sqlite_api: LiveApi) -> None:
    names = {name for name, *_ in samples(sqlite_api)}
    assert "tiergate_failure_rise" not in names
    assert "tiergate_worst_stratum_log_e_harm" not in names
    assert "tiergate_pairs" in names


def test_the_worst_stratum_and_what_is_not_shown_are_gauges(sqlite_api: LiveApi) -> None:
    sqlite_api.record("w8a8", harm=15, clean=15, stratum="8k-32k/free/whole")
    seen = samples(sqlite_api)
    place = ("criterion=structured_output", "model=org/model", "tier=w8a8")
    assert ("tiergate_worst_stratum_log_e_harm", *place) in seen
    assert seen["tiergate_not_shown", *place] == 0


def test_answers_are_counted_by_operation_and_never_by_what_clients_send(sqlite_api: LiveApi) -> None:
    client = sqlite_api.client()
    for number in range(20):
        client.get(f"/api/v1/models/made-up-{number}/ladder")
        client.get(f"/made-up-{number}")
        client.request(f"MADE{number}", "/api/v1/models")
    counted = {
        key: count for key, count in samples(sqlite_api).items() if key[0] == "tiergate_api_answers_total"
    }
    assert not any("made" in part.lower() for key in counted for part in key)
    name = "tiergate_api_answers_total"
    assert counted[name, "method=GET", "operation=ladder", "status=404"] == 20
    assert counted[name, "method=GET", "operation=none", "status=404"] == 20
