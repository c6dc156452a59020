"""Counts of several processes add up to one page that Prometheus reads."""

from __future__ import annotations

import json

from prometheus_client.parser import text_string_to_metric_families

from service.proxy.gauges.exposition import HELP, Totals
from service.proxy.gauges.meters import Meters
from service.store.redis.counters import Dropped, Skipped


def samples(text: str) -> dict[str, float]:
    return {
        sample.name + str(sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def meters(number: int) -> Meters:
    made = Meters()
    for _ in range(number):
        made.ledger.arrived('a|"b"\n', "", None)
        made.ledger.skipped("m", Skipped.TOO_LARGE)
        made.ledger.dropped("m", Dropped.STORE_FULL)
        made.ledger.arrived("m", "under-2k/free/whole", None)
        made.count("requests", ("model", "m\\"), ("tier", "t"), ("status", "200"), ("ending", "complete"))
        made.histograms["first_byte_seconds", (("model", "m"),)].observe(0.02)
        made.histograms["first_byte_seconds", (("model", "m"),)].observe(500.0)
    made.gauges["requests_in_flight", ()] = number
    return made


def test_processes_add_up_and_those_that_ended_keep_their_counters_only() -> None:
    totals = Totals()
    for number, gauges in ((2, True), (3, True), (5, False)):
        totals.add(json.loads(json.dumps(meters(number).snapshot())), gauges=gauges)
    totals.set("processes", 2)
    totals.set_counter("restarts", 1)
    page = samples(totals.text())
    assert (
        page["tiergate_proxy_ledger_total[('count', 'seen'), ('model', 'a|\"b\"\\n'), ('reason', '')]"] == 10
    )
    assert (
        page["tiergate_proxy_ledger_total[('count', 'skipped'), ('model', 'm'), ('reason', 'too_large')]"]
        == 10
    )
    assert page["tiergate_proxy_traffic_total[('model', 'm'), ('stratum', 'under-2k/free/whole')]"] == 10
    assert page["tiergate_proxy_requests_in_flight[]"] == 5
    assert page["tiergate_proxy_processes[]"] == 2
    assert page["tiergate_proxy_restarts_total[]"] == 1
    bucket = "tiergate_proxy_first_byte_seconds_bucket[('le', '{}'), ('model', 'm')]"
    assert page[bucket.format("0.01")] == 0
    assert page[bucket.format("0.025")] == 10
    assert page[bucket.format("120")] == 10
    assert page[bucket.format("+Inf")] == 20
    assert page["tiergate_proxy_first_byte_seconds_count[('model', 'm')]"] == 20
    assert page["tiergate_proxy_first_byte_seconds_sum[('model', 'm')]"] == 10 * 500.02


def test_every_series_has_a_help_text() -> None:
    text = Totals().text()
    assert text == "\n"
    assert all(line for line in HELP.values())
