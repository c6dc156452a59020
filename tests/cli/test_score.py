"""`tiergate score`: what a person reads, what a pipeline parses, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from service.cli import score

runner = CliRunner()
Files = Callable[..., tuple[str, str]]

REQUEST = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "Invoice number: INV-20391\nThe door code is 4821.\n\nGive me JSON."}
    ],
    "response_format": {"type": "json_object"},
}


def ran(*arguments: str, stdin: bytes = b"") -> Result:
    app = typer.Typer()
    score.register(app)
    return runner.invoke(app, list(arguments), input=stdin, env={"COLUMNS": "140", "TERM": "dumb"})


def answering(content: str | None, finish: str = "stop", **message: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"content": content, **message}, "finish_reason": finish}]}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Writes a request and an answer, and gives their names."""

    def write(answer: Any, request: Any = None) -> tuple[str, str]:
        asked, told = tmp_path / "request.json", tmp_path / "answer.json"
        asked.write_bytes(request if isinstance(request, bytes) else json.dumps(request or REQUEST).encode())
        told.write_bytes(answer if isinstance(answer, bytes) else json.dumps(answer).encode())
        return str(asked), str(told)

    return write


def states(found: Result) -> dict[str, str]:
    document = json.loads(found.stdout)
    return {row["evaluator"]: row["state"] for row in document["scores"]}


def test_an_answer_that_passes_exits_0_and_says_what_could_be_asked(files: Files) -> None:
    found = ran(*files(answering('{"a": 1}')))
    assert found.exit_code == 0
    assert "structured_output    passed         ok" in found.stdout
    assert "long_context_recall  not applicable" in found.stdout
    assert "refusal              passed         comply" in found.stdout
    assert "2 facts could be asked for:" in found.stdout
    assert "What is the invoice number? -> INV-20391" in found.stdout


def test_an_answer_that_fails_exits_1_with_its_class_reason_and_evidence(files: Files) -> None:
    found = ran(*files(answering("Here is [bold]no[/bold] JSON")))
    assert found.exit_code == 1
    assert "failed         not_json" in found.stdout
    assert "reason: expected JSON, found: Expecting value at character 0" in found.stdout
    assert "evidence: Here is [bold]no[/bold] JSON" in found.stdout


def test_json_has_stable_keys(files: Files) -> None:
    found = ran(*files(answering("I'm sorry, I can't help with that.")), "--json")
    assert found.exit_code == 1
    document = json.loads(found.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert list(document) == [
        "endpoint",
        "model",
        "format",
        "constrained",
        "outcome",
        "scores",
        "needles",
        "needles_found",
    ]
    assert list(document["scores"][0]) == ["evaluator", "version", "state", "label", "reason", "evidence"]
    labels = {row["evaluator"]: row["label"] for row in document["scores"]}
    assert list(labels.values())[:3] == ["refused", "", "full"]
    assert labels["answer_health"] == "ok"
    assert document["outcome"]["finish_reason"] == "stop"
    assert document["needles"][0]["value"] == "INV-20391"


def test_a_stream_from_stdin_is_scored_like_a_file(files: Files) -> None:
    request, _ = files(answering("{}"))
    event = {"choices": [{"delta": {"content": '{"a": 1}'}, "finish_reason": "stop"}]}
    found = ran(request, "-", "--json", stdin=f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n".encode())
    assert found.exit_code == 0
    assert states(found)["structured_output"] == "passed"
    _, answer = files(answering("{}"))
    assert ran("-", answer, stdin=json.dumps(REQUEST).encode()).exit_code == 0


def test_tool_calls_are_named(files: Files) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    call = {"id": "1", "function": {"name": "f", "arguments": "{}"}}
    request = {**REQUEST, "tools": [tool], "response_format": {"type": "text"}}
    found = ran(*files(answering(None, "tool_calls", tool_calls=[call]), request))
    assert found.exit_code == 0
    assert "finish_reason tool_calls, calls f" in found.stdout


def test_a_broken_stream_is_a_fault_and_fails(files: Files) -> None:
    found = ran(*files(b'data: {"choices":[{"delta":{"content":"{}"}}]}\n\n'))
    assert found.exit_code == 1
    assert "fault cut_off" in found.stdout
    assert "refusal              not applicable" in found.stdout
    told = ran(*files(b'{"error": {"message": "boom"}}'), "--json")
    assert json.loads(told.stdout)["outcome"] == {"fault": "stream_error", "detail": "boom"}


@pytest.mark.parametrize(
    ("options", "text", "code"),
    [
        (("--needle-key", "Invoice Number"), "It is INV-20391.", 0),
        (("--needle-key", "invoice number"), "It is INV-20392.", 1),
        (("--needle-value", "4821"), "4821", 0),
        (("--needle-value", "4821", "--needle-key", "code"), "48211", 1),
    ],
)
def test_an_answer_to_a_recall_probe_is_judged_for_recall_alone(
    options: tuple[str, ...], text: str, code: int, files: Files
) -> None:
    found = ran(*files(answering(text)), *options, "--json")
    assert found.exit_code == code
    told = states(found)
    assert told.pop("long_context_recall") == ("passed" if code == 0 else "failed")
    assert set(told.values()) == {"not_applicable"}


def test_another_answer_is_judged_as_a_candidates_and_laid_beside(files: Files, tmp_path: Path) -> None:
    request, answer = files(answering('{"a": 1, "b": "x"}'))
    other = tmp_path / "other.json"
    other.write_text(json.dumps(answering('{"a": 2, "b": "x", "c": [')))
    found = ran(request, answer, str(other), "--json")
    assert found.exit_code == 0
    pair = json.loads(found.stdout)["pair"]
    counted = {row["evaluator"]: row["counts_as"] for row in pair["scores"]}
    assert counted["structured_output"] == "harm"
    assert counted["answer_health"] == "none"
    assert counted["long_context_recall"] == "not_applicable"
    assert pair["differences"]["length_ratio"] == pytest.approx(25 / 18)
    assert pair["differences"]["tool_choice_agrees"] is True
    told = ran(request, answer, str(other)).stdout
    assert "structured_output    harm           ok -> not_json" in told
    assert "length ratio: 1.39" in told
    assert "token ratio: unknown" in told
    assert "length ratio: 1\n" in ran(request, answer, answer).stdout
    assert ran(request, "-", "-", stdin=b"{}").exit_code == 2


def test_of_two_answers_every_field_that_differs_is_named(files: Files, tmp_path: Path) -> None:
    request, answer = files(answering('{"total": 1, "lines": [1, 2], "id": 7, "at": "x"}'))
    other = tmp_path / "other.json"
    other.write_text(json.dumps(answering('{"total": 2, "lines": [1], "id": "7", "at": "x"}')))
    pair = json.loads(ran(request, answer, str(other), "--json").stdout)["pair"]
    assert pair["fields"] == {
        "fields": 5,
        "missing": ["/lines/1"],
        "types": ["/id"],
        "values": ["/total"],
        "same": ["/at", "/lines/0"],
        "differing": 3,
        "share": pytest.approx(0.4),
    }
    told = ran(request, answer, str(other)).stdout
    assert "field_agreement      harm           reference -> fields_differ" in told
    assert "of another type: /id; of another value: /total" in told
    prose = tmp_path / "prose.json"
    prose.write_text(json.dumps(answering("prose")))
    assert json.loads(ran(request, answer, str(prose), "--json").stdout)["pair"]["fields"] is None


def test_a_rule_may_expect_one_value_a_line_and_let_a_fence_pass(files: Files) -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    names = files(answering('```\n{"a": 1}\n{"a": 2}\n```'), request)
    assert states(ran(*names, "--json", "--json-lines"))["structured_output"] == "failed"
    lenient = ran(*names, "--json", "--json-lines", "--accept-recoverable")
    assert states(lenient)["structured_output"] == "passed"


def test_a_fault_beside_an_answer_has_nothing_to_compare(files: Files, tmp_path: Path) -> None:
    request, answer = files(answering("{}"))
    other = tmp_path / "other.json"
    other.write_bytes(b'{"error": {"message": "boom"}}')
    pair = json.loads(ran(request, answer, str(other), "--json").stdout)["pair"]
    assert (pair["differences"], pair["fields"]) == (None, None)
    assert pair["outcome"] == {"fault": "stream_error", "detail": "boom"}


def test_a_key_that_the_request_does_not_hold_is_refused_with_those_it_does(files: Files) -> None:
    found = ran(*files(answering("x")), "--needle-key", "room number")
    assert found.exit_code == 2
    assert "no unambiguous 'room number'" in found.stderr
    assert "'invoice number', 'door code'" in found.stderr
    bare = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    assert "asked for: nothing" in ran(*files(answering("x"), bare), "--needle-key", "x").stderr


def test_a_rule_may_expect_json_though_the_request_does_not(files: Files) -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    names = files(answering("prose"), request)
    assert states(ran(*names, "--json"))["structured_output"] == "not_applicable"
    assert states(ran(*names, "--json", "--expects-json"))["structured_output"] == "failed"


def test_other_endpoints_are_named_by_their_path(files: Files) -> None:
    request = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
    answer = {"type": "message", "content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn"}
    assert ran(*files(answer, request), "--path", "/v1/messages").exit_code == 0


def test_a_schema_that_cannot_be_evaluated_exits_2(files: Files) -> None:
    odd = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"pattern": "(?=a)"}}}
    found = ran(*files(answering("{}"), {**REQUEST, "response_format": odd}))
    assert found.exit_code == 2
    assert "unscored       unsupported_schema" in found.stdout


def test_input_that_cannot_be_judged_exits_2_and_says_why(files: Files, tmp_path: Path) -> None:
    request, answer = files(answering("x"))
    missing = str(tmp_path / "none.json")
    for arguments, complaint in (
        ((missing, answer), f"cannot read {missing}: No such file"),
        ((request, str(tmp_path)), "Is a directory"),
        (("-", "-"), "only one of REQUEST and ANSWER"),
        ((request, request), "not an answer of /v1/chat/completions"),
        ((answer, answer), "model is missing|messages is missing"),
        ((request, answer, "--path", "/v1/embeddings"), "/v1/embeddings generates nothing"),
    ):
        found = ran(*arguments)
        assert found.exit_code == 2, arguments
        assert any(part in found.stderr for part in complaint.split("|")), found.stderr
    broken, _ = files(answering("x"), b"{not json")
    assert "body: " in ran(broken, answer).stderr


def test_a_tool_that_did_not_have_to_be_called_and_was_not_fails_nothing(files: Files) -> None:
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": tools}
    found = ran(*files(answering("It is sunny."), request), "--json")
    assert found.exit_code == 0
    assert states(found)["tool_use"] == "observed"
    demanded = {**request, "tool_choice": "required"}
    missing = ran(*files(answering("It is sunny."), demanded), "--json")
    assert missing.exit_code == 1
    assert states(missing)["structured_output"] == "failed"
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    many = answering(None, "tool_calls", tool_calls=[call, {**call, "id": "2"}])
    found = ran(*files(many, {**request, "parallel_tool_calls": False}), "--json")
    assert found.exit_code == 1
    assert states(found)["tool_use"] == "failed"
