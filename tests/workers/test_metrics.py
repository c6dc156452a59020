from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from workers.metrics import CAPTURES, HELP, PAIRS, Listener, page, series


def test_a_series_is_written_as_prometheus_reads_it() -> None:
    written = series(PAIRS, tier='a"b\\c\nd', model="m")
    assert written == 'tiergate_worker_pairs_total{model="m",tier="a\\"b\\\\c\\nd"}'


def test_a_name_without_a_help_text_is_an_error() -> None:
    with pytest.raises(KeyError):
        series("tiergate_worker_surprises_total")


def test_the_page_groups_series_under_their_help() -> None:
    counts = {series(PAIRS, tier="b"): 2, series(CAPTURES, ending="processed"): 3, series(PAIRS, tier="a"): 1}
    lines = page(counts).splitlines()
    at = lines.index(f"# TYPE {PAIRS} counter")
    assert lines[at - 1] == f"# HELP {PAIRS} {HELP[PAIRS]}"
    assert lines[at + 1 : at + 3] == [f'{PAIRS}{{tier="a"}} 1', f'{PAIRS}{{tier="b"}} 2']
    assert f'{CAPTURES}{{ending="processed"}} 3' in lines


def test_prometheus_itself_can_read_the_page() -> None:
    counts = {series(PAIRS, tier='x"y', model="m"): 2, series(CAPTURES, ending="lost"): 3}
    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page(counts))
        for sample in family.samples
    }
    assert samples == {
        (PAIRS, (("model", "m"), ("tier", 'x"y'))): 2.0,
        (CAPTURES, (("ending", "lost"),)): 3.0,
    }


@pytest.fixture
def faults() -> list[str]:
    return []


@pytest.fixture
def listener(faults: list[str]) -> Iterator[Listener]:
    def ready() -> None:
        if faults:
            raise ConnectionError(faults[0])

    made = Listener("127.0.0.1", 0, counts=lambda: {series(CAPTURES, ending="lost"): 1}, ready=ready)
    made.start()
    yield made
    made.close()


def get(listener: Listener, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{listener.port}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_it_serves_counts_health_and_readiness(listener: Listener) -> None:
    assert 'tiergate_worker_captures_total{ending="lost"} 1' in get(listener, "/metrics")[1]
    assert get(listener, "/healthz") == (200, "ok\n")
    assert get(listener, "/readyz") == (200, "ok\n")
    assert get(listener, "/")[0] == 404


def test_a_worker_that_is_not_ready_says_so_without_telling_addresses(
    listener: Listener, faults: list[str]
) -> None:
    faults.append("redis://:password@secret-host")
    status, told = get(listener, "/readyz")
    assert status == 503
    assert told == "ConnectionError; see the worker's log\n"
    assert get(listener, "/healthz")[0] == 200
