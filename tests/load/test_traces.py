from __future__ import annotations

from pathlib import Path

import pytest

from service.load.traces import NotATrace, TracedRequest, read_trace

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
2023-11-16 18:15:51,12,3
"""
MOONCAKE = """{"timestamp": 3000, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}

{"timestamp": 27482, "input_length": 7322, "output_length": 490, "hash_ids": [0, 14]}
"""


def test_azures_times_are_seconds_since_the_first() -> None:
    first, second, third = read_trace(AZURE.splitlines())
    assert first == TracedRequest(at=0.0, prompt_tokens=374, output_tokens=44)
    assert second.at == pytest.approx(4.314579)
    assert third.at == pytest.approx(4.31941)


def test_mooncakes_times_are_milliseconds() -> None:
    assert read_trace(MOONCAKE.splitlines(keepends=True)) == (
        TracedRequest(at=0.0, prompt_tokens=6758, output_tokens=500),
        TracedRequest(at=24.482, prompt_tokens=7322, output_tokens=490),
    )


def test_requests_are_ordered_by_their_times() -> None:
    lines = [f'{{"timestamp": {at}, "input_length": {at}, "output_length": 1}}' for at in (2000, 0, 1000)]
    assert [request.at for request in read_trace(lines)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("lines", "match"),
    [
        ([], "line 1"),
        (["time,a,b", "1,2,3"], "line 1"),
        (["TIMESTAMP,ContextTokens,GeneratedTokens"], "no request"),
        (["TIMESTAMP,ContextTokens,GeneratedTokens", "yesterday,1,2"], "line 2"),
        (["TIMESTAMP,ContextTokens,GeneratedTokens", "2023-11-16 18:15:46,1"], "line 2"),
        (["TIMESTAMP,ContextTokens,GeneratedTokens", "2023-11-16 18:15:46,1,-2"], "line 2.*negative"),
        (['{"timestamp": 0, "input_length": 1}'], "line 1.*output_length"),
        (['{"timestamp": 0, "input_length": 1, "output_length": 1}', "{"], "line 2"),
        (['{"timestamp": null, "input_length": 1, "output_length": 1}'], "line 1"),
        (['{"timestamp": 1e999, "input_length": 1, "output_length": 1}'], "line 1"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_line(lines: list[str], match: str) -> None:
    with pytest.raises(NotATrace, match=match):
        read_trace(lines)


def test_the_public_traces_are_read(suites: Path) -> None:
    with (suites / "traces/azure_llm_2023/AzureLLMInferenceTrace_conv.csv").open(encoding="utf-8") as lines:
        azure = read_trace(lines)
    with (suites / "traces/mooncake/conversation_trace.jsonl").open(encoding="utf-8") as lines:
        mooncake = read_trace(lines)
    assert (len(azure), len(mooncake)) == (19_366, 12_031)
    assert (azure[0].prompt_tokens, azure[0].output_tokens) == (374, 44)
    for trace in (azure, mooncake):
        assert trace[0].at == 0
        assert 3000 < trace[-1].at < 4000  # each is about an hour of traffic
        assert min(request.prompt_tokens for request in trace) > 0
