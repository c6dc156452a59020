"""`tiergate adjudicate`: pairs for people to judge, blind, here or through a file."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from service.cli.asking import JsonOption, asks, tell
from service.cli.configuration import fail
from service.client.adjudicating import LABELS, adjudication_view, item_view, labelled_view
from service.client.tables import plain

if TYPE_CHECKING:
    from service.client.connection import TiergateClient

PER_REQUEST = 200
LONGEST_LINE = 4 * 1024 * 1024
"""Characters of one line of a file of labels."""
CONFLICTS = 1
"""Exit status of an import that left something out."""
LEFT_OUT = ("conflicts", "unknown", "seen_openly")
"""What an answer names of labels that were not taken."""

ModelOption = Annotated[str | None, typer.Option("--model", "-m", help="One model instead of all.")]
EvaluatorOption = Annotated[
    str | None, typer.Option("--evaluator", "-e", help="One evaluator instead of all.")
]

group = typer.Typer(
    name="adjudicate",
    no_args_is_help=True,
    help="Judge pairs blind, so that the error of an evaluator is known and corrected.",
    epilog="Docs: docs/adjudication.md",
)


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    app.add_typer(group)


@group.command()
@asks
def status(
    client: TiergateClient,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is queued and labelled, how far people agree, and what their labels say."""
    document = client.adjudication(model)
    tell(document, lambda: adjudication_view(document), as_json=as_json)


@group.command(name="next")
@asks
def following(
    client: TiergateClient,
    model: ModelOption = None,
    evaluator: EvaluatorOption = None,
    label: Annotated[
        str | None, typer.Option("--label", help="With --item: say this and ask nothing.")
    ] = None,
    item: Annotated[str | None, typer.Option("--item", help="With --label: the item it is about.")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="With --label: instead of what was said before.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Judge one pair after the other, here; needs scope label.

    Both answers stand under a and b, in random order. Say which of them pass by the rubric above them:
    a, b, both, neither, or skip when it cannot be told; q ends. With --json the next item is printed and
    nothing is asked; --item and --label answer it. Who got which text is written down. The labeller is the
    token: give each person one of their own (tiergate token new anna --scope label).

    \b
      tiergate adjudicate next
      tiergate adjudicate next --json | jq -r .item.item
      tiergate adjudicate next --item 0f3a... --label both
    """
    if (label is None) != (item is None):
        raise typer.BadParameter("--item and --label go together")
    if label is not None and label not in LABELS:
        raise typer.BadParameter(f"a label is one of {', '.join(LABELS)}", param_hint="--label")
    if label is not None and item is not None:
        document = client.label([{"item": item, "label": label}], replace=replace)
        tell(document, lambda: labelled_view(document), as_json=as_json)
        raise typer.Exit(CONFLICTS if any(document.get(name) for name in LEFT_OUT) else 0)
    if as_json:
        found = client.next_item(model=model, evaluator=evaluator)
        tell(found, lambda: plain(""), as_json=True)
        return
    _converse(client, model, evaluator)


def _converse(client: TiergateClient, model: str | None, evaluator: str | None) -> None:
    console, done = Console(), 0
    while True:
        found = client.next_item(model=model, evaluator=evaluator)
        if found["item"] is None:
            console.print(plain(found["why"]), soft_wrap=True)
            break
        console.print(item_view(found["item"]), soft_wrap=True)
        answer = _ask(console)
        if answer is None:
            break
        told = client.label([{"item": found["item"]["item"], "label": answer}])
        done += told["recorded"]
        if any(told.get(name) for name in LEFT_OUT):
            console.print(labelled_view(told), soft_wrap=True)
            break
    console.print(plain(f"{done} labelled"))


def _ask(console: Console) -> str | None:
    """One of the labels; None to end."""
    while True:
        console.print(plain(f"which pass? {', '.join(LABELS)}; q ends: "), end="")
        line = sys.stdin.readline()
        if not line or line.strip().lower() in ("q", "quit"):
            return None
        if (said := line.strip().lower()) in LABELS:
            return said


@group.command()
@asks
def export(
    client: TiergateClient,
    output: Annotated[
        Path, typer.Argument(metavar="FILE", help="JSON Lines; continued when it is there already.")
    ],
    model: ModelOption = None,
    evaluator: EvaluatorOption = None,
    todo: Annotated[bool, typer.Option("--todo", help="Only what this token still has to label.")] = False,
    most: Annotated[int | None, typer.Option("--most", min=1, help="So many items at most.")] = None,
) -> None:
    """Write pairs to a file, one a line with an empty label to fill in; needs scope label.

    The file holds captured text in the clear, is made with mode 0600, and is yours to delete. Broken off, it
    goes on where it ended. Items are in the random order in which they are to be labelled: whoever labels a
    part of a file takes it from the top.

    \b
      tiergate adjudicate export pairs.jsonl
      # fill in "label" (a, b, both, neither, skip), then
      tiergate adjudicate import pairs.jsonl
    """
    after, had = _resume(output)
    written = 0
    with _continued(output) as file:
        while most is None or written < most:
            limit = 20 if most is None else min(20, most - written)
            page = client.items(after=after, limit=limit, model=model, evaluator=evaluator, todo=todo)
            for each in page["items"]:
                file.write(json.dumps({**each, "label": ""}) + "\n")
            file.flush()
            written += len(page["items"])
            if sys.stderr.isatty():
                typer.echo(f"\r{had + written} items", err=True, nl=False)
            after = page["next_after"] or ""
            if not after:
                break
    typer.echo(f"{output}: {written} items added, {had + written} in all")
    if not had + written:
        typer.echo("nothing is queued; `tiergate adjudicate status` says why", err=True)


@contextmanager
def _continued(path: Path) -> Iterator[IO[str]]:
    """The file, to write on at its end; what is wrong with it, or with its disk, ends the command."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with open(descriptor, "a", encoding="utf-8", errors="surrogatepass") as file:
            yield file
    except OSError as error:
        raise fail(f"{path} cannot be written: {error.strerror}") from None


def _resume(path: Path) -> tuple[str, int]:
    """The last item of a file that is there already, and how many it has; a half line at its end goes."""
    if not path.exists():
        return "", 0
    last, count, whole = "", 0, 0
    try:
        with open(path, "rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                last = str(json.loads(line)["item"])
                whole += len(line)
                count += 1
        os.truncate(path, whole)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise fail(f"{path}: line {count + 1} is no exported item ({error}); name another file") from None
    return last, count


@group.command(name="import")
@asks
def import_(
    client: TiergateClient,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="JSON Lines with item and label.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Take what the file says where a labeller said otherwise.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Read labels from a file; needs scope label. Exit status 1 when some were left out, which it names.

    Each line has `item` and `label`, perhaps `at` (RFC 3339); what else it has is left alone, and lines with
    an empty label are still to be done. Reading a file again changes nothing: broken off, just start it anew.
    A labeller who said something else before is a conflict, named and kept as it was. The labels are those of
    the token's holder; a `labeller` in a line that is another name is refused, for files of two people would
    count as two although one brought both in.
    """
    labels, empty = _read(source)
    sums: Counter[str] = Counter()
    left_out: dict[str, list[Any]] = {name: [] for name in LEFT_OUT}
    for start in range(0, len(labels), PER_REQUEST):
        told = client.label(labels[start : start + PER_REQUEST], replace=replace)
        for name in ("recorded", "replaced", "unchanged"):
            sums[name] += told[name]
        for name, found in left_out.items():
            found.extend(told.get(name, ()))
        if sys.stderr.isatty():
            done = min(len(labels), start + PER_REQUEST)
            typer.echo(f"\r{done} of {len(labels)} labels", err=True, nl=False)
    document = {**{name: sums[name] for name in ("recorded", "replaced", "unchanged")}, **left_out}
    tell({**document, "empty": empty}, lambda: labelled_view(document), as_json=as_json)
    if empty and not as_json:
        typer.echo(f"{empty} lines have no label yet")
    raise typer.Exit(CONFLICTS if any(left_out.values()) else 0)


def _read(path: Path) -> tuple[list[Mapping[str, str]], int]:
    """The labels of a file, and how many lines have none; a wrong line ends the command, by its number."""
    labels: list[Mapping[str, str]] = []
    empty = 0
    for number, line in _lines(path):
        try:
            written = json.loads(line)
            item, label = written["item"], written["label"]
            who, at = written.get("labeller"), written.get("at")
            if not all(each is None or isinstance(each, str) for each in (item, label, who, at)):
                raise TypeError("item, label, labeller and at are texts")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise fail(f"{path}: line {number} is no label ({type(error).__name__}: {error})") from None
        if not label:
            empty += 1
        elif label not in LABELS:
            raise fail(f"{path}: line {number}: a label is one of {', '.join(LABELS)}, not {label[:40]!r}")
        else:
            told = {"item": item, "label": label, "labeller": who, "at": at}
            labels.append({name: text for name, text in told.items() if text})
    return labels, empty


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with open(path, encoding="utf-8", errors="surrogatepass") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), ""), start=1):
                if len(line) == LONGEST_LINE:
                    raise fail(f"{path}: line {number} is longer than {LONGEST_LINE:,} characters")
                if line.strip():
                    yield number, line
    except UnicodeDecodeError:
        raise fail(f"{path} is not text in UTF-8") from None
    except OSError as error:
        raise fail(f"{path} cannot be read: {error.strerror}") from None
