"""Traces of lengths: what is read of the public ones, what is said of wrong lines, which prompts are made."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pytest

from service.traces import (
    BLOCK_TOKENS,
    NotATrace,
    Traced,
    body_of,
    looks_like_trace,
    prompt_of,
    read_trace,
)
from tests.evaluators.conftest import suites as suites


def first_lines(suites: Path, name: str, lines: int) -> Iterable[str]:
    with (suites / "traces" / name).open() as file:
        return list(islice(file, lines))


def test_azure_s_trace_is_read(suites: Path) -> None:
    trace = read_trace(first_lines(suites, "azure_llm_2023/AzureLLMInferenceTrace_conv.csv", 1000))
    assert trace.bad == ()
    assert len(trace.requests) == 999
    first, second = trace.requests[:2]
    assert (first.arrived, first.prompt_tokens, first.output_tokens) == (0.0, 374, 44)
    assert second.arrived == pytest.approx(4.314579, abs=1e-6)
    assert [each.arrived for each in trace.requests] == sorted(each.arrived for each in trace.requests)


def test_mooncake_s_trace_is_read_with_its_prefixes_and_milliseconds(suites: Path) -> None:
    trace = read_trace(first_lines(suites, "mooncake/conversation_trace.jsonl", 200))
    assert trace.bad == ()
    first = trace.requests[0]
    assert (first.prompt_tokens, first.output_tokens, first.prefix[:3]) == (6758, 500, (0, 1, 2))
    assert trace.requests[-1].arrived < 200
    one, other = (prompt_of(each, seed="s").split() for each in trace.requests[:2])
    assert (len(one), len(other)) == (6758, 7322)
    assert one[:BLOCK_TOKENS] == other[:BLOCK_TOKENS]
    assert one[BLOCK_TOKENS : 2 * BLOCK_TOKENS] != other[BLOCK_TOKENS : 2 * BLOCK_TOKENS]


def test_other_names_of_the_same_columns_are_read() -> None:
    burst = ["Timestamp,Model,Request tokens,Response tokens\n", "5,GPT,10,20\n", "7.5,GPT,1,0\n"]
    assert [
        (each.arrived, each.prompt_tokens, each.output_tokens) for each in read_trace(burst).requests
    ] == [
        (0.0, 10, 20),
        (2.5, 1, 0),
    ]
    own = ['{"arrived_at": 3, "prompt_tokens": 4, "output_tokens": 5}']
    assert read_trace(own).requests == (Traced(line=1, arrived=0.0, prompt_tokens=4, output_tokens=5),)


def test_every_wrong_line_is_named_with_its_number_and_reason() -> None:
    lines = [
        '{"timestamp": 0, "input_length": 5, "output_length": 5}',
        "",
        "{",
        "[1]",
        '{"timestamp": 1, "input_length": 0, "output_length": 5}',
        '{"timestamp": 1, "input_length": 5}',
        '{"input_length": 5, "output_length": 5}',
        '{"timestamp": 1, "input_length": 5.5, "output_length": 5}',
        '{"timestamp": "yesterday", "input_length": 5, "output_length": 5}',
        '{"timestamp": 1, "input_length": 5, "output_length": 5, "hash_ids": ["a"]}',
        '{"timestamp": 1, "input_length": 5, "output_length": 99999999}',
        '{"timestamp": 1e300, "input_length": 5, "output_length": 5}',
        '{"timestamp": 1, "input_length": true, "output_length": 5}',
        '{"timestamp": 1, "input_length": 5, "output_length": 5} \udcff',
        f'{{"timestamp": {10**400}, "input_length": 5, "output_length": 5}}',
        f'{{"arrived_at": {10**400}, "input_length": 5, "output_length": 5}}',
        '{"timestamp": true, "input_length": 5, "output_length": 5}',
    ]
    trace = read_trace(lines)
    assert len(trace.requests) == 1
    assert {each.line: each.reason for each in trace.bad} == {
        3: "this is not JSON",
        4: "this is not a JSON object",
        5: "the length of the prompt is 0, not a whole number of 1 to 4000000",
        6: "output_length is missing",
        7: "timestamp is missing",
        8: "the length of the prompt is 5.5, not a whole number of 1 to 4000000",
        9: "the time 'yesterday' is neither seconds nor a date and time",
        10: "hash_ids is no list of whole numbers",
        11: "the length of the answer is 99999999, not a whole number of 0 to 4000000",
        12: "the time 1e+297 is out of range",
        13: "the length of the prompt is True, not a whole number of 1 to 4000000",
        14: "this is not UTF-8",
        15: "the time inf is out of range",
        16: f"the time {10**400} is out of range",
        17: "the time 'True' is neither seconds nor a date and time",
    }
    wrong = read_trace(
        [
            "TIMESTAMP,ContextTokens,GeneratedTokens",
            "2023-11-16 18:15:46,7",
            "x,1,1",
            "1,1,-1",
            f"{'9' * 200_000},1,1",
        ]
    )
    assert [str(each) for each in wrong.bad] == [
        "line 2: 2 columns, and the header has 3",
        "line 3: the time 'x' is neither seconds nor a date and time",
        "line 4: the length of the answer is -1, not a whole number of 0 to 4000000",
        "line 5: this is not CSV: field larger than field limit (131072)",
    ]


@pytest.mark.parametrize("lines", [[], ["\n"], ["a,b,c", "1,2,3"], ["hello"], ["x" * 200_000]])
def test_what_is_no_trace_is_refused(lines: list[str]) -> None:
    with pytest.raises(NotATrace):
        read_trace(lines)


def test_lengths_without_a_time_are_refused_once_and_not_line_by_line() -> None:
    with pytest.raises(NotATrace, match="lengths and no time: expected a column TIMESTAMP"):
        read_trace(["ContextTokens,GeneratedTokens", "7,8", "9,10"])


def test_a_batch_file_is_not_taken_for_a_trace() -> None:
    assert looks_like_trace('{"timestamp": 0, "input_length": 5, "output_length": 5}')
    assert looks_like_trace("TIMESTAMP,ContextTokens,GeneratedTokens")
    assert not looks_like_trace('{"custom_id": "a", "input_length": 5, "output_length": 5}')
    assert not looks_like_trace('{"custom_id": "a", "method": "POST"}')
    assert not looks_like_trace("{")


def test_prompts_are_as_long_as_told_and_the_same_for_the_same_seed() -> None:
    traced = Traced(line=7, arrived=0.0, prompt_tokens=1300, output_tokens=9, prefix=(4, 5))
    text = prompt_of(traced, seed="a")
    assert len(text.split()) == 1300
    assert text == prompt_of(traced, seed="a") != prompt_of(traced, seed="b")
    short = Traced(line=8, arrived=0.0, prompt_tokens=600, output_tokens=0, prefix=(4, 9, 10))
    assert prompt_of(short, seed="a").split()[:512] == text.split()[:512]
    assert len(prompt_of(short, seed="a").split()) == 600


def test_a_body_asks_for_as_much_as_the_trace_tells() -> None:
    traced = Traced(line=1, arrived=0.0, prompt_tokens=3, output_tokens=0)
    body = body_of(traced, model="m", seed="s")
    assert (body["model"], body["max_tokens"], body["stream"]) == ("m", 1, True)
    assert "ignore_eos" not in body
    assert body_of(traced, model="m", seed="s", exact=True)["ignore_eos"] is True
