"""Evidence, decision log and ledger for a terminal, straight from the API's JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table

from service.client.readings import Document
from service.client.tables import plain
from service.decision.wording import e_value

MOST_STRATA = 20
MOST_TENANTS = 5
"""Of each evaluator."""


def evidence_view(document: Document) -> RenderableType:
    """Tallies, the control, coverage, strata, tenants, and single pairs."""
    return Group(*_evidence(document))


def decisions_view(document: Document) -> RenderableType:
    """Who decided what and when; the state of the chain."""
    table = _table("seq", "at", "actor", "action", "tier", "reason", "digest", whole=("at", "digest"))
    for entry in document["entries"]:
        told = (entry["at"], entry["actor"], entry["action"], entry["tier"] or "")
        reason = entry["detail"].get("reason") or ""
        if entry["detail"].get("override"):
            reason = f"override: {reason}"
        table.add_row(str(entry["seq"]), *map(plain, told), plain(reason), plain(entry["digest"][:12]))
    parts: list[RenderableType] = [table, plain(f"chain: {document['chain']}")]
    if document["broken_at"] is not None:
        parts[1] = plain(f"chain: {document['chain']} at entry {document['broken_at']}", "bold red")
    if document["next_after"] is not None:
        parts.append(plain(f"more: --after {document['next_after']}"))
    return Group(*parts)


def ledger_view(document: Document) -> RenderableType:
    """Every counter, and whether they add up."""
    table = _table("", "requests")
    for name, count in document["counters"].items():
        for part, number in count.items() if isinstance(count, dict) else [("", count)]:
            table.add_row(plain(f"{name} {part}".strip()), plain(number))
    pairs = _table("pairs", "due", "scored", "unscored", "not applicable", "over budget")
    group = ""
    for pair in document["pairs"]:
        # The place is a row of its own: three names side by side leave a terminal no room for the numbers.
        place = f"{pair['model']} / {pair['tier']}, {pair['arm']}"
        if place != group:
            pairs.add_row(plain(place))
            group = place
        counts = (pair["due"], pair["scored"], sum(pair["unscored"].values()))
        rest = (pair["not_applicable"], pair["over_budget"])
        pairs.add_row(plain(f"  {pair['evaluator']}"), *map(str, counts), *map(str, rest))
    told = "it adds up" if document["balanced"] else "it does not add up"
    return Group(table, pairs, plain(told, "bold"), *(plain(each, "yellow") for each in document["problems"]))


def _evidence(document: Document) -> Iterator[RenderableType]:
    yield plain(f"{document['model']} / {document['tier']}: candidate against baseline", "bold")
    yield _tallies(document["tallies"])
    if document["control"] is None:
        yield plain("no control can run: no capacity to replay the baseline")
    else:
        yield plain("control: baseline against itself", "bold")
        yield _tallies(document["control"])
    yield _coverage(document["coverage"])
    yield from _attribution(document["attribution"])
    yield from _strata(document["strata"])
    yield from _tenants(document["tenants"])
    if document["pairs"]:
        yield plain("latest pairs", "bold")
        yield _pairs(document["pairs"])


def _table(*columns: str, whole: Collection[str] = ()) -> Table:
    """Columns that fold where the terminal is narrow, but for those named in `whole`."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    for column in columns:
        # Two lines rather than an ellipsis: what is cut off may be what was looked for.
        table.add_column(column, overflow="fold", no_wrap=column in whole)
    return table


def _tallies(tallies: Sequence[Document]) -> Table:
    table = _table(
        "evaluator",
        "pairs",
        "harms",
        "benefits",
        "both failed",
        "not counted",
        "unscored",
        whole=("evaluator",),
    )
    for tally in tallies:
        unscored = ", ".join(f"{reason} {count}" for reason, count in tally["unscored"].items())
        counts = (tally[name] for name in ("n", "harm", "benefit", "both_failed", "not_counted"))
        table.add_row(plain(tally["evaluator"]), *map(str, counts), plain(unscored or "0"))
    return table


def _coverage(coverage: Document) -> Table:
    table = _table("stratum", "requests", "counted")
    traffic, evidence = coverage["traffic"], coverage["evidence"]
    for stratum in sorted({*traffic, *evidence}):
        # Depths are of recall questions: no request is in one.
        asked = str(traffic.get(stratum, "-" if stratum.startswith("depth=") else 0))
        table.add_row(plain(stratum), asked, str(evidence.get(stratum, 0)))
    return table


def _attribution(attribution: Document | None) -> Iterator[RenderableType]:
    if attribution is None:
        yield plain("attribution: the engines tell nothing of themselves")
        return
    told = [*attribution["differences"], *filter(None, [attribution["unsettled"]])]
    yield plain(f"attribution: {'; '.join(told) or 'nothing but the precision differs'}")
    if attribution["not_told"]:
        yield plain(f"not told, so not compared: {', '.join(attribution['not_told'])}", "dim")


def _strata(strata: Sequence[Document]) -> Iterator[RenderableType]:
    """The worst ones; an e-value of harm where the difference is above the margin."""
    if not strata:
        return
    yield plain("strata, the worst first", "bold")
    table = _table("stratum", "evaluator", "pairs", "harms", "benefits", "diff. pp", "e-value of harm")
    for each in strata[:MOST_STRATA]:
        log_e = each["log_e_harm"]
        table.add_row(
            plain(each["stratum"]),
            plain(each["evaluator"]),
            *(str(each[name]) for name in ("n", "harm", "benefit")),
            f"{100 * each['estimate']:+.2f}",
            "at most 15" if log_e is None else e_value(log_e),
        )
    yield table
    if len(strata) > MOST_STRATA:
        yield plain(f"{len(strata) - MOST_STRATA} more with --json", "dim")


def _tenants(tenants: Sequence[Document]) -> Iterator[RenderableType]:
    """Nothing to leave out where one tenant is all there is."""
    by_evaluator: dict[str, list[Document]] = {}
    for each in tenants:
        by_evaluator.setdefault(each["evaluator"], []).append(each)
    several = {name: found for name, found in by_evaluator.items() if len(found) > 1}
    if not several:
        return
    yield plain("without each tenant in turn, the one it rests on most first", "bold")
    table = _table("evaluator", "tenant", "share", "harms", "e-value without it", "", whole=("evaluator",))
    for name, found in several.items():
        for each in found[:MOST_TENANTS]:
            told = "passes" if each["passes_without"] else "does not pass"
            warned = ", harmed itself" if each["warn"] else ""
            table.add_row(
                plain(name),
                plain(each["tenant"][:12] or "(none)"),
                f"{each['share']:.0%}",
                str(each["harm"]),
                e_value(each["log_e_without"]),
                f"{told}{warned}",
            )
    yield table


def _pairs(pairs: Sequence[Document]) -> Table:
    table = _table("at", "evaluator", "baseline", "candidate", "why", whole=("at", "evaluator"))
    for pair in pairs:
        told = (pair["at"], pair["evaluator"], pair["baseline_label"] or "", pair["candidate_label"] or "")
        table.add_row(*map(plain, told), plain(_why(pair)))
    return table


def _why(pair: Document) -> str:
    """The reason of the arm that failed, the candidate's first."""
    blamed = "baseline_reason" if pair["candidate_passed"] else "candidate_reason"
    return str(pair["unscored_reason"] or pair[blamed] or "")
