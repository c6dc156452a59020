"""`score`: every evaluator on one answer, without a server.

What a verdict counts by the thousand, for one pair of files: class, pass or fail, reason, and the span of the
answer that the reason speaks of.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from evaluators.exchange import Needle, Outcome, Request
    from evaluators.score import Evaluator

FAILED = 1
UNUSABLE = 2
"""Exit status of input that cannot be judged, as for a wrong command line."""
SHOWN_NEEDLES = 5
MOST_NEEDLES = 400

STATE_STYLE = {"passed": "green", "failed": "bold red", "unscored": "yellow", "not_applicable": "dim"}

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Docs: docs/evaluators.md")(score)


def score(
    request: Annotated[
        str, typer.Argument(metavar="REQUEST.json", help="Body of the request; - reads stdin.")
    ],
    answer: Annotated[
        str,
        typer.Argument(
            metavar="ANSWER.json", help="Body of the answer, JSON or an SSE transcript; - reads stdin."
        ),
    ],
    path: Annotated[str, typer.Option(help="Where the request was sent.")] = "/v1/chat/completions",
    expects_json: Annotated[
        bool,
        typer.Option(
            "--expects-json", help="Judge the text as JSON, though the request does not ask for it."
        ),
    ] = False,
    json_lines: Annotated[
        bool, typer.Option("--json-lines", help="The same, for one JSON value a line.")
    ] = False,
    accept_recoverable: Annotated[
        bool, typer.Option("--accept-recoverable", help="Let JSON in a fence or with prose around it pass.")
    ] = False,
    needle_key: Annotated[
        str | None,
        typer.Option(
            help="The answer is one to a recall probe for this key; its value is mined from the request."
        ),
    ] = None,
    needle_value: Annotated[
        str | None, typer.Option(help="The answer is one to a recall probe that expects this value.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Judge one answer with every evaluator.

    Exit status: 0 every evaluator that applies passes, 1 one fails, 2 the input cannot be judged.

    \b
    Does this answer satisfy the schema of its request, and does it refuse?
      tiergate score request.json answer.json
    Straight from a server, streamed:
      curl -sN $URL/v1/chat/completions -d @request.json | tiergate score request.json -
    What could be asked about a long context, and did an answer recall it?
      tiergate score request.json answer.json --needle-key "invoice number"
    """
    from evaluators.exchange import AnswerRule
    from service.wire import NotARequest, parse_answer, parse_request

    if request == answer == "-":
        raise _unusable("only one of REQUEST and ANSWER can be read from stdin")
    try:
        rule = AnswerRule(
            expects_json=expects_json, json_lines=json_lines, accept_recoverable=accept_recoverable
        )
        asked = rule.applied_to(parse_request(path, _read(request)))
    except NotARequest as error:
        raise _unusable(f"{request}: not a request to {path}: {error}") from None
    outcome = parse_answer(
        path, status=200, content_type="", content_encoding="", body=_read(answer), complete=True
    )
    _refuse_unreadable(answer, path, outcome)
    needles = _needles(asked, MOST_NEEDLES)
    document = _judge(
        replace(asked, needle=_asked_needle(needles, needle_key, needle_value)),
        outcome,
        shown=_needles(asked, SHOWN_NEEDLES),
        found=len(needles),
    )
    if as_json:
        sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")
    else:
        _show(document)
    states = {row["state"] for row in document["scores"]}
    raise typer.Exit(FAILED if "failed" in states else UNUSABLE if "unscored" in states else 0)


def _unusable(message: str) -> typer.Exit:
    typer.echo(f"tiergate score: {message}", err=True)
    return typer.Exit(UNUSABLE)


def _read(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise _unusable(f"cannot read {name}: {error.strerror or error}") from None


def _refuse_unreadable(name: str, path: str, outcome: Outcome) -> None:
    from evaluators.exchange import Fault, FaultKind

    if isinstance(outcome, Fault) and outcome.kind is FaultKind.UNREADABLE:
        raise _unusable(f"{name}: not an answer of {path}: {outcome.detail}")


def _needles(request: Request, limit: int) -> tuple[Needle, ...]:
    from evaluators.needles import mine

    return mine(request, seed=0, limit=limit, min_chars=0)


def _asked_needle(needles: tuple[Needle, ...], key: str | None, value: str | None) -> Needle | None:
    """The needle that the answer is judged by: the given value, or the one mined for the key."""
    from evaluators.exchange import Needle

    if key is None and value is None:
        return None
    if value is not None:
        name = key or "value"
        return Needle(key=name, value=value, question=f"What is the {name}?", depth=0.0)
    for needle in needles:
        if needle.key.casefold() == str(key).casefold():
            return needle
    known = ", ".join(repr(needle.key) for needle in needles[:20]) or "nothing"
    raise _unusable(f"the request holds no unambiguous {key!r}; it could be asked for: {known}")


def _judge(request: Request, outcome: Outcome, *, shown: tuple[Needle, ...], found: int) -> dict[str, Any]:
    from evaluators import ALL
    from evaluators.exchange import Fault

    if isinstance(outcome, Fault):
        told: dict[str, Any] = {"fault": outcome.kind, "detail": outcome.detail}
    else:
        told = {
            "finish_reason": outcome.finish_reason,
            "chars": len(outcome.text),
            "reasoning_chars": len(outcome.reasoning),
            "tool_calls": [call.name for call in outcome.tool_calls],
        }
    return {
        "endpoint": request.endpoint,
        "model": request.model,
        "format": request.format,
        "constrained": request.constrained,
        "outcome": told,
        "scores": [_row(evaluator, request, outcome) for evaluator in ALL],
        "needles": [
            {"key": n.key, "value": n.value, "question": n.question, "depth": n.depth} for n in shown
        ],
        "needles_found": found,
    }


def _row(evaluator: Evaluator, request: Request, outcome: Outcome) -> dict[str, Any]:
    """One evaluator's judgement: its state, and what a person needs to follow it."""
    from evaluators.exchange import Fault
    from evaluators.score import NotApplicable, Unscored

    row: dict[str, Any] = {"evaluator": evaluator.name, "version": evaluator.version}
    if not evaluator.applies(request):
        return {
            **row,
            "state": "not_applicable",
            "label": "",
            "reason": _why_not(evaluator, request),
            "evidence": "",
        }
    judged = (
        evaluator.score_fault(request, outcome)
        if isinstance(outcome, Fault)
        else evaluator.score(request, outcome)
    )
    if isinstance(judged, NotApplicable):
        return {**row, "state": "not_applicable", "label": "", "reason": judged.why, "evidence": ""}
    if isinstance(judged, Unscored):
        return {**row, "state": "unscored", "label": judged.reason, "reason": judged.detail, "evidence": ""}
    state = "passed" if judged.passed else "failed"
    return {
        **row,
        "state": state,
        "label": judged.label,
        "reason": judged.reason,
        "evidence": judged.evidence,
    }


def _why_not(evaluator: Evaluator, request: Request) -> str:
    if request.needle is not None:
        return "a recall probe is judged for recall alone"
    return {
        "structured_output": "the request asks for no JSON, guides no decoding and offers no tool",
        "tool_use": "the request does not leave it to the model to call a tool",
        "field_agreement": "the request asks for no JSON and offers no tool",
        "long_context_recall": "the answer is not one to a recall probe (--needle-key, --needle-value)",
    }.get(evaluator.name, "the request is not judged")


def _show(document: dict[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    outcome = document["outcome"]
    if "fault" in outcome:
        console.print(Text(f"fault {outcome['fault']}: {outcome['detail']}"))
    else:
        calls = f", calls {', '.join(outcome['tool_calls'])}" if outcome["tool_calls"] else ""
        console.print(
            Text(f"answer: {outcome['chars']} characters, finish_reason {outcome['finish_reason']}{calls}")
        )
    for row in document["scores"]:
        line = Text(f"{row['evaluator']:<20} ")
        line.append(f"{row['state'].replace('_', ' '):<14}", style=STATE_STYLE[row["state"]])
        line.append(f" {row['label']}" if row["label"] else "")
        console.print(line)
        for name in ("reason", "evidence"):
            if row[name]:
                console.print(Text(f"{'':<21}{name}: {row[name]}"))
    if document["needles"]:
        console.print(Text(f"{document['needles_found']} facts could be asked for:"))
    for needle in document["needles"]:
        console.print(Text(f"  {needle['question']} -> {needle['value']}  (depth {needle['depth']:.2f})"))
