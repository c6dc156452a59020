"""Pairs to judge, and the state of judging, for a terminal: hostile text is inert and bounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from service.client.readings import Document
from service.client.tables import plain

MOST_SHOWN = 8_000
"""Characters of one text on a terminal; `export` has all that was kept."""
MOST_TURNS = 12
LABELS = ("a", "b", "both", "neither", "skip")


def item_view(document: Document) -> RenderableType:
    """The rubric, the request, and both sides under their letters."""
    return Group(*_item(document))


def _item(document: Document) -> Iterator[RenderableType]:
    rubric = document["rubric"]
    yield plain(f"item {document['item']}  {document['model']}, {document['evaluator']}", "dim")
    yield plain(rubric["question"], "bold")
    for name in ("passes", "fails"):
        if rubric[name]:
            yield plain(f"{name}: {rubric[name]}")
    yield plain("")
    turns = document["request"]
    if len(turns) > MOST_TURNS:
        yield plain(f"[{len(turns) - MOST_TURNS} earlier turns are in the export]", "dim")
    for turn in turns[-MOST_TURNS:]:
        yield _under(turn["role"] or "(before)", turn["text"])
    if document["asked"]:
        yield _under("asked for", document["asked"])
    for side in ("a", "b"):
        yield plain("")
        yield _under(f"=== {side} ===", _side(document[side]), "bold cyan")


def _side(side: Mapping[str, Any]) -> str:
    if side["fault"]:
        return f"(no answer: {side['fault']})"
    parts = [side["text"]] if side["text"] else []
    if side["refusal"]:
        parts.append(f"(refusal field) {side['refusal']}")
    parts += [f"(calls) {call['name']} {call['arguments']}" for call in side["calls"]]
    if side["finish_reason"] not in ("", "stop"):
        parts.append(f"(finish_reason {side['finish_reason']})")
    return "\n".join(parts) or "(nothing)"


def _under(heading: str, text: str, style: str = "bold") -> Text:
    """A heading and a text below it, each line of it marked, so that no text can pass for a heading."""
    shown, left_out = text[:MOST_SHOWN], len(text) - MOST_SHOWN
    line = plain(heading, style)
    for each in shown.split("\n"):
        line.append("\n| ", style="dim")
        line.append_text(plain(each))
    if left_out > 0:
        line.append(f"\n[{left_out:,} more characters are in the export]", style="dim")
    return line


def adjudication_view(document: Document) -> RenderableType:
    """Every queue, who labelled, how far they agree, what the labels say."""
    if not document["evaluators"]:
        return plain("no pairs are queued: name evaluators in adjudication.evaluators of tiergate.yaml")
    if not document["queues"]:
        names = ", ".join(document["evaluators"])
        return plain(
            f"nothing is queued yet: pairs of {names} are queued as workers score them. "
            "Send traffic through the proxy, then `tiergate adjudicate next`"
        )
    return Group(*(part for queue in document["queues"] for part in _queue(queue)))


def _queue(queue: Document) -> Iterator[RenderableType]:
    yield plain(f"{queue['model']} / {queue['tier']}, {queue['evaluator']}", "bold")
    left = max(0, queue["queued"] - queue["labelled"] - queue["open"])
    yield plain(
        f"{queue['queued']} queued ({queue['discordant']} in which the arms differ), {queue['labelled']} "
        f"labelled, {queue['open']} left open, {left} to do; {queue['kept']} with their text"
    )
    if queue["labellers"]:
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for name in ("labeller", "labelled", "skipped"):
            table.add_column(name, justify="left" if name == "labeller" else "right")
        for each in queue["labellers"]:
            table.add_row(plain(each["labeller"]), str(each["labelled"]), str(each["skipped"]))
        yield table
    for each in queue["agreement"]:
        yield plain(_agreement(each))
    if queue["disputed"]:
        yield plain(f"they disagree on: {', '.join(queue['disputed'])}", "yellow")
    if queue["evaluator_errors"]["pairs"]:
        yield plain(f"evaluator against people: {_errors(queue['evaluator_errors'])}")
    yield from _correction(queue["correction"])
    yield from _judge(queue["judge"])


def _agreement(found: Document) -> str:
    kappa = "no kappa" if found["kappa"] is None else f"kappa {found['kappa']:.2f}"
    names = f"{found['first']} and {found['second']}"
    return f"{names}: {found['agreed']} of {found['items']} the same, {kappa}"


def _errors(errors: Document) -> str:
    told = []
    for arm in ("baseline", "candidate"):
        rates = [errors[f"{arm}_{name}"] for name in ("sensitivity", "specificity")]
        found = ", ".join(
            f"{name} {'unknown' if rate is None else f'{rate:.1%}'}"
            for name, rate in zip(("finds", "clears"), rates, strict=True)
        )
        told.append(f"{arm}: {found}")
    return f"{'; '.join(told)} ({errors['pairs']} pairs)"


def _correction(found: Document | None) -> Iterator[RenderableType]:
    if found is None:
        return
    limits = found["interval"]
    told = (
        f"raw {100 * found['raw_estimate']:+.2f} pp, by {found['labels']} labels "
        f"{100 * found['estimate']:+.2f} pp [{100 * limits['lower']:+.2f}, {100 * limits['upper']:+.2f}]"
    )
    if found["suffices"]:
        yield plain(f"{told}: stands in the finding", "green")
    else:
        yield plain(f"{told}: not in the finding yet, {found['missing']}")


def _judge(found: Document | None) -> Iterator[RenderableType]:
    if found is None:
        return
    yield plain(f"{found['labelled']} labelled and {found['skipped']} skipped by a judge; in no finding")
    if found["agreement"]["items"]:
        yield plain(_agreement(found["agreement"]))
        yield plain(f"judge against people: {_errors(found['errors'])}")
    if found["difference"] is not None:
        yield plain(
            f"by the judge, corrected for its errors: {100 * found['difference']:+.2f} pp "
            f"[{100 * found['lower']:+.2f}, {100 * found['upper']:+.2f}]"
        )


def labelled_view(document: Document) -> RenderableType:
    """What became of labels; every conflict by name."""
    return Group(*_labelled(document))


def _labelled(document: Document) -> Iterator[RenderableType]:
    yield plain(
        f"{document['recorded']} recorded, {document['replaced']} replaced, {document['unchanged']} known"
    )
    for each in document["conflicts"]:
        yield plain(
            f"conflict: {each['labeller']} said {each['had']} of {each['item']} before, now {each['given']}; "
            "kept as it was (--replace takes the new one)",
            "yellow",
        )
    for each in document["unknown"]:
        yield plain(f"unknown: {each} is not in this queue", "yellow")
    for each in document.get("seen_openly", ()):
        yield plain(f"left out: {each} was shown to this token with the names of its sides", "yellow")
