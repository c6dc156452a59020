"""`tiergate differences` for a terminal: what agrees and what does not, candidate beside control."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table

from service.client.readings import Document
from service.client.tables import plain

KINDS = ("agrees", "value", "type", "missing")
"""Of fields, in the order of their columns."""
ARMS = ("baseline", "candidate")
"""Of classes: whose answer failed so."""
RANGES = ("under 1/4", "1/4 to 1/2", "1/2 to 4/5", "4/5 to 5/4", "5/4 to 2", "2 to 4", "over 4")
"""Of ratios, candidate to baseline, in their order; other kinds come behind them."""


def details_view(document: Document) -> RenderableType:
    """Fields as a table of shares; anything else as counts by kind."""
    return Group(*_lines(document))


def _lines(document: Document) -> Iterator[RenderableType]:
    yield plain(
        f"{document['model']} / {document['tier']}: {document['evaluator']} {document['version']}, "
        f"epoch {document['epoch'][:12]}",
        "bold",
    )
    if not document["names"]:
        yield plain(
            "nothing was compared yet in this epoch. Fields are, where requests ask for JSON or offer tools; "
            "`tiergate evidence MODEL TIER` says how many pairs were due."
        )
        return
    sorted_out: dict[str, list[Document]] = {"fields": [], "classes": [], "others": []}
    for each in document["names"]:
        kinds = {*each["candidate"], *each["control"]}
        place = "fields" if kinds <= {*KINDS} else "classes" if kinds <= {*ARMS} else "others"
        sorted_out[place].append(each)
    for place, draw in (("fields", _fields), ("classes", _classes), ("others", _ranges)):
        if sorted_out[place]:
            yield draw(sorted_out[place])
    yield plain(
        "shown, and decides nothing: sampling alone makes answers differ, so read it beside the control"
    )


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _fields(names: Sequence[Document]) -> Table:
    table = _table("field", "compared", "other value", "other type", "missing", "control: differ")
    for each in names:
        counts: Mapping[str, int] = each["candidate"]
        compared = sum(counts.values())
        table.add_row(
            plain(each["name"]),
            str(compared),
            *(_share(counts.get(kind, 0), compared) for kind in KINDS[1:]),
            _differ(each["control"]),
        )
    return table


def _differ(counts: Mapping[str, int]) -> str:
    compared = sum(counts.values())
    return f"{_share(compared - counts.get('agrees', 0), compared)} of {compared}" if compared else "none yet"


def _share(amount: int, of: int) -> str:
    return f"{100 * amount / of:.1f} %" if of else "-"


def _classes(names: Sequence[Document]) -> Table:
    """Failed answers by their class; in the control, the second is the baseline again."""
    table = _table("failed as", "baseline", "candidate", "control: baseline", "control: again")
    for each in names:
        counts = [str(each[pairs].get(arm, 0)) for pairs in ("candidate", "control") for arm in ARMS]
        table.add_row(plain(each["name"]), *counts)
    return table


def _ranges(names: Sequence[Document]) -> Table:
    table = _table("what", "kind", "candidate", "control")
    for each in names:
        kinds = {*each["candidate"], *each["control"]}
        ordered = [kind for kind in RANGES if kind in kinds]
        totals = [sum(each[arm].values()) for arm in ("candidate", "control")]
        for kind in (*ordered, *sorted(kinds - {*ordered})):
            counts = [each[arm].get(kind, 0) for arm in ("candidate", "control")]
            table.add_row(
                plain(each["name"]),
                plain(kind),
                *(f"{count} ({_share(count, total)})" for count, total in zip(counts, totals, strict=True)),
            )
    return table
