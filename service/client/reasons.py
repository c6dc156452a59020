"""`tiergate verdict --why` for a terminal: the chain, the worst pairs, and how to check it all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from service.client.readings import Document
from service.client.tables import DECISION_STYLE, plain
from service.decision.verdict import Decision

MOST_LABELS = 3
"""Ways to differ, and strata, that are named for each criterion."""


def why_view(document: Document) -> RenderableType:
    """Titles and sentences to read, numbers to check, below each other."""
    head = plain(f"{document['model']} / {document['tier']}: ", "bold")
    head.append(str(document["decision"]), style=DECISION_STYLE[Decision(document["decision"])])
    head.append_text(plain(", and why. Each step follows from those above it.", "dim"))
    return Group(
        head,
        *(part for number, step in enumerate(document["steps"], 1) for part in _step(number, step)),
        *_worst(document["worst_pairs"]),
        *_recompute(document["recompute"]),
        plain(
            f"epoch {document['epoch'][:12]}, attempt {document['attempt']}, policy "
            f"{document['policy_digest'][:12]}, evaluated {document['evaluated_at']}",
            "dim",
        ),
    )


def _step(number: int, step: Document) -> Iterator[RenderableType]:
    yield plain(f"\n{number}. {step['title']}", "bold")
    yield Padding(plain(step["sentence"]), (0, 0, 0, 3))
    for name, value in step["numbers"].items():
        yield Padding(plain(f"{name} = {_number(value)}", "dim"), (0, 0, 0, 5))


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _worst(worst: Sequence[Document]) -> Iterator[RenderableType]:
    for each in worst:
        if not each["pairs"]:
            continue
        yield plain(f"\nworst pairs of {each['criterion']}", "bold")
        labels = [f"{one['baseline']} -> {one['candidate']}: {one['pairs']}" for one in each["labels"]]
        strata = [f"{one['stratum']}: {one['pairs']}" for one in each["strata"]]
        yield Padding(
            plain(f"{each['pairs']} pairs speak against the tier. {_first(labels)}\nwhere: {_first(strata)}"),
            (0, 0, 0, 3),
        )
        yield Padding(_examples(each["examples"]), (0, 0, 0, 3))


def _first(told: Sequence[str]) -> str:
    rest = len(told) - MOST_LABELS
    return ", ".join(told[:MOST_LABELS]) + (f", and {rest} more" if rest > 0 else "")


def _examples(examples: Sequence[Document]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    for column in ("stratum", "baseline", "candidate", "why", "capture"):
        table.add_column(column, overflow="fold")
    for pair in examples:
        blamed = "baseline_reason" if pair["candidate_passed"] else "candidate_reason"
        told = ("stratum", "baseline_label", "candidate_label", blamed, "capture_id")
        table.add_row(*(plain(pair[name]) for name in told))
    return table


def _recompute(commands: Sequence[Document]) -> Iterator[RenderableType]:
    yield plain("\nto check it", "bold")
    for each in commands:
        yield Padding(plain(each["what"]), (0, 0, 0, 3))
        # Not wrapped by us: a command that is copied must stay on one line.
        yield Text(f"     {each['command']}", no_wrap=True, overflow="ignore")
