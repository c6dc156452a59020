"""`score`: every evaluator on one answer, without a server.

What a verdict counts by the thousand, for one pair of files: class, pass or fail, reason, and the span of the
answer that the reason speaks of.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from service.cli.configuration import JsonOption
from service.cli.scoring import pair, rows, told

if TYPE_CHECKING:
    from evaluators.exchange import Needle, Outcome, Request
    from evaluators.score import Evaluator

FAILED = 1
UNUSABLE = 2
"""Exit status of input that cannot be judged, as for a wrong command line."""
SHOWN_NEEDLES = 5
MOST_NEEDLES = 400

STATE_STYLE = {
    "passed": "green",
    "failed": "bold red",
    "observed": "cyan",
    "unscored": "yellow",
    "not_applicable": "dim",
}
"""`observed`: neither right nor wrong by itself, such as that no tool was called where none had to be."""


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
    other: Annotated[
        str | None,
        typer.Argument(metavar="OTHER.json", help="Another answer, to be judged as a candidate's beside it."),
    ] = None,
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

    Exit status: 0 no evaluator that applies fails, 1 one fails, 2 the input cannot be judged. What is only
    observed, such as whether a tool was called where none had to be, changes nothing. Of two answers, the
    first decides.

    \b
    Does this answer satisfy the schema of its request, and does it refuse?
      tiergate score request.json answer.json
    Straight from a server, streamed:
      curl -sN $URL/v1/chat/completions -d @request.json | tiergate score request.json -
    What could be asked about a long context, and did an answer recall it?
      tiergate score request.json answer.json --needle-key "invoice number"
    What would a worker make of two answers, the baseline's and a candidate's?
      tiergate score request.json baseline.json candidate.json
    """
    from evaluators.exchange import AnswerRule
    from service.wire import NotARequest, parse_request

    if [request, answer, other].count("-") > 1:
        raise _unusable("only one of REQUEST and ANSWER can be read from stdin")
    try:
        rule = AnswerRule(
            expects_json=expects_json, json_lines=json_lines, accept_recoverable=accept_recoverable
        )
        asked = rule.applied_to(parse_request(path, _read(request)))
    except NotARequest as error:
        raise _unusable(f"{request}: not a request to {path}: {error}") from None
    outcome = _outcome(answer, path)
    needles = _needles(asked, MOST_NEEDLES)
    judged = replace(asked, needle=_asked_needle(needles, needle_key, needle_value))
    evaluators = _installed()
    document: dict[str, Any] = {
        "endpoint": judged.endpoint,
        "model": judged.model,
        "format": judged.format,
        "constrained": judged.constrained,
        "outcome": told(outcome),
        "scores": rows(evaluators, judged, outcome),
        "needles": [
            {"key": each.key, "value": each.value, "question": each.question, "depth": each.depth}
            for each in _needles(asked, SHOWN_NEEDLES)
        ],
        "needles_found": len(needles),
    }
    if other is not None:
        document["pair"] = pair(evaluators, judged, outcome, _outcome(other, path))
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


def _outcome(name: str, path: str) -> Outcome:
    from evaluators.exchange import Fault, FaultKind
    from service.wire import parse_answer

    outcome = parse_answer(
        path, status=200, content_type="", content_encoding="", body=_read(name), complete=True
    )
    if isinstance(outcome, Fault) and outcome.kind is FaultKind.UNREADABLE:
        raise _unusable(f"{name}: not an answer of {path}: {outcome.detail}")
    return outcome


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


def _installed() -> Sequence[Evaluator]:
    from service.settings.evaluating import installed

    found = installed()
    if found.problems:
        raise _unusable("; ".join(found.problems))
    return found.evaluators


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
    if "pair" in document:
        _show_pair(console, document["pair"])
    if document["needles"]:
        console.print(Text(f"{document['needles_found']} facts could be asked for:"))
    for needle in document["needles"]:
        console.print(Text(f"  {needle['question']} -> {needle['value']}  (depth {needle['depth']:.2f})"))


def _show_pair(console: Console, shown: dict[str, Any]) -> None:
    console.print(Text("as a pair, the other answer as the candidate's:"))
    for row in shown["scores"]:
        line = f"{row['evaluator']:<20} {row['counts_as'].replace('_', ' '):<14}"
        if "first" in row:
            line += f" {row['first']['label']} -> {row['second']['label']}"
        console.print(Text(line.rstrip()))
        reason = row.get("why") or row.get("second", {}).get("reason")
        if reason:
            console.print(Text(f"{'':<21}reason: {reason}"))
    for name, value in (shown["differences"] or {}).items():
        if isinstance(value, bool):
            written = "yes" if value else "no"
        else:
            written = "unknown" if value is None else f"{value:.3g}"
        console.print(Text(f"  {name.replace('_', ' ')}: {written}"))
