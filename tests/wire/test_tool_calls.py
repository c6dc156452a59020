"""Tool calls put together from the fragments that engines really send."""

from __future__ import annotations

import time
from typing import Any

import pytest

from evaluators.exchange import ToolCall
from service.wire.shapes import WrongShape
from service.wire.tool_calls import ToolCallCollector
from tests.patience import here


def fragment(arguments: Any = None, *, index: Any = None, id: Any = None, name: Any = None) -> dict[str, Any]:
    function: dict[str, Any] = {}
    if name is not None:
        function["name"] = name
    if arguments is not None:
        function["arguments"] = arguments
    found: dict[str, Any] = {"function": function}
    if index is not None:
        found["index"] = index
    if id is not None:
        found["id"] = id
    return found


def collected(*fragments: dict[str, Any]) -> list[tuple[str, str, str]]:
    collector = ToolCallCollector()
    for one in fragments:
        collector.add(one, whole=False)
    return [(call.name, call.arguments, call.id) for call in collector.calls()]


def test_fragments_by_the_protocol_make_one_call() -> None:
    assert collected(
        fragment("", index=0, id="a", name="f"), fragment('{"x"', index=0), fragment(":1}", index=0)
    ) == [("f", '{"x":1}', "a")]


def test_parallel_calls_interleaved_and_out_of_order_come_in_the_order_of_their_index() -> None:
    assert collected(
        fragment("{", index=1, id="b", name="g"),
        fragment("{", index=0, id="a", name="f"),
        fragment("}", index=0),
        fragment("}", index=1),
    ) == [("f", "{}", "a"), ("g", "{}", "b")]


def test_a_missing_index_continues_the_last_call() -> None:
    assert collected(fragment("", id="a", name="f"), fragment("{"), fragment("}")) == [("f", "{}", "a")]


def test_whole_calls_without_index_or_id_are_calls_of_their_own() -> None:
    assert collected(fragment("{}", name="f"), fragment('{"a":1}', name="g"), fragment("{}", name="g")) == [
        ("f", "{}", ""),
        ("g", '{"a":1}', ""),
        ("g", "{}", ""),
    ]


def test_an_index_that_changes_between_fragments_is_followed_by_the_id() -> None:
    assert collected(
        fragment("{", index=0, id="a", name="f"),
        fragment('"x":', index=1, id="a"),
        fragment("1}", index=2, id="a"),
    ) == [("f", '{"x":1}', "a")]


def test_an_index_that_changes_without_an_id_or_name_goes_on_with_the_last_call() -> None:
    assert collected(fragment("{", index=0, id="a", name="f"), fragment("}", index=1)) == [("f", "{}", "a")]


def test_an_index_repeated_for_every_call_is_told_by_ids() -> None:
    assert collected(
        fragment("{}", index=0, id="a", name="f"),
        fragment('{"y"', index=0, id="b", name="f"),
        fragment(":2}", index=0, id="b"),
    ) == [("f", "{}", "a"), ("f", '{"y":2}', "b")]


def test_an_index_repeated_without_ids_is_told_by_names() -> None:
    assert collected(fragment("{}", index=0, name="f"), fragment("{}", index=0, name="g")) == [
        ("f", "{}", ""),
        ("g", "{}", ""),
    ]
    assert collected(fragment('{"x":1}', index=0, name="f"), fragment('{"x":2}', index=0, name="f")) == [
        ("f", '{"x":1}', ""),
        ("f", '{"x":2}', ""),
    ]
    assert collected(fragment({"x": 1}, index=0, name="f"), fragment({"x": 2}, index=0, name="f")) == [
        ("f", '{"x":1}', ""),
        ("f", '{"x":2}', ""),
    ]


def test_an_id_that_is_new_in_each_fragment_is_one_call() -> None:
    assert collected(
        fragment("", index=0, id="r1", name="f"),
        fragment("{", index=0, id="r2"),
        fragment("}", index=0, id="r3"),
    ) == [("f", "{}", "r1")]


def test_one_id_for_two_calls_is_told_by_index_and_name() -> None:
    assert collected(
        fragment("{}", index=0, id="call_0", name="f"), fragment("{}", index=1, id="call_0", name="g")
    ) == [("f", "{}", "call_0"), ("g", "{}", "call_0")]


def test_an_id_may_come_late() -> None:
    assert collected(fragment("", index=0, name="f"), fragment("{}", index=0, id="a")) == [("f", "{}", "a")]


def test_a_name_may_be_split_or_repeated() -> None:
    assert collected(fragment("", index=0, id="a", name="get_"), fragment("{}", index=0, name="time")) == [
        ("get_time", "{}", "a")
    ]
    assert collected(fragment("", id="a", name="get_"), fragment("{}", name="time")) == [
        ("get_time", "{}", "a")
    ]
    assert collected(
        fragment('{"x"', index=0, id="a", name="f"), fragment(":1}", index=0, id="a", name="f")
    ) == [("f", '{"x":1}', "a")]
    assert collected(fragment('{"x"', index=0, name="f"), fragment(":1}", index=0, name="f")) == [
        ("f", '{"x":1}', "")
    ]


def test_arguments_may_be_null_or_empty_first() -> None:
    first = {"index": 0, "id": "a", "function": {"name": "f", "arguments": None}}
    assert collected(first, fragment("", index=0), fragment("{}", index=0)) == [("f", "{}", "a")]
    assert collected(first) == [("f", "", "a")]


def test_arguments_as_an_object_are_written_as_json_and_give_way_to_text() -> None:
    assert collected(fragment({"x": "é"}, index=0, id="a", name="f")) == [("f", '{"x":"é"}', "a")]
    assert collected(fragment([1], index=0, id="a", name="f")) == [("f", "[1]", "a")]
    assert collected(fragment({}, index=0, id="a", name="f"), fragment('{"x":1}', index=0)) == [
        ("f", '{"x":1}', "a")
    ]


def test_an_empty_object_and_then_another_stay_as_they_were_written() -> None:
    """`{}{"x":1}` is what a client would put together, too."""
    assert collected(fragment("{}", index=0, id="a", name="f"), fragment('{"x":1}', index=0)) == [
        ("f", '{}{"x":1}', "a")
    ]


def test_a_fragment_of_nothing_begins_a_call_that_the_next_ones_fill() -> None:
    assert collected(fragment(index=0), fragment("{}", index=0, id="a", name="f")) == [("f", "{}", "a")]


def test_a_custom_tool_takes_its_input_as_arguments() -> None:
    collector = ToolCallCollector()
    collector.add({"index": 0, "id": "a", "custom": {"name": "sql", "input": "select 1"}}, whole=False)
    assert collector.calls() == (ToolCall(name="sql", arguments="select 1", id="a"),)


def test_calls_of_a_whole_message_are_never_merged() -> None:
    collector = ToolCallCollector()
    for arguments in ("{}", '{"x":1}'):
        collector.add(fragment(arguments, index=0, id="same", name="f"), whole=True)
    assert [call.arguments for call in collector.calls()] == ["{}", '{"x":1}']


@pytest.mark.parametrize(
    "broken",
    [
        "text",
        {"index": "0"},
        {"function": []},
        {"function": {"name": 1}},
        {"function": {"arguments": 3}},
        {"id": 4},
        {"custom": "x"},
    ],
)
def test_a_fragment_of_another_shape_is_refused(broken: Any) -> None:
    with pytest.raises(WrongShape):
        ToolCallCollector().add(broken, whole=False)


@pytest.mark.parametrize("arguments", ["1", "{", "{}"])
def test_a_call_in_very_many_fragments_takes_time_in_their_number_and_not_its_square(arguments: str) -> None:
    began = time.process_time()
    collector = ToolCallCollector()
    for _ in range(60_000):
        collector.add(fragment(arguments, index=0, name="f"), whole=False)
    assert sum(len(call.arguments) for call in collector.calls()) == 60_000 * len(arguments)
    took = time.process_time() - began
    assert took < here(3)


def test_arguments_that_only_end_like_json_go_on() -> None:
    fragments = [fragment(written, index=0, name="f") for written in ('{"a": "}', '{"}')]
    assert collected(*fragments) == [("f", '{"a": "}{"}', "")]


@pytest.mark.parametrize(
    ("first", "fragments"),
    [("[", "{}"), ("{", "{}"), ("", '{"a":[1,2]}'), ('{"a":"', '{"}'), ("[", "{},"), ("{bad", "{}}")],
)
def test_work_is_linear_in_what_came_whatever_the_fragments_look_like(first: str, fragments: str) -> None:
    def work(times: int) -> tuple[int, int]:
        collector = ToolCallCollector()
        collector.add(fragment(first, index=0, id="a", name="f"), whole=False)
        for _ in range(times):
            collector.add(fragment(fragments, index=0, name="f"), whole=False)
        return collector.looked_at, len(first) + times * len(fragments)

    for times in (10, 1000):
        looked_at, came = work(times)
        assert looked_at <= 2 * came
