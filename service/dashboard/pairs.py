"""`/pairs`: the pairs of a tier in which one arm failed and the other did not, newest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.approval.errors import Problem
from service.approval.names import find_candidate, find_evaluator, find_ladder
from service.dashboard import formats, render
from service.dashboard.captured import shown
from service.dashboard.site import Site
from service.dashboard.visit import Visit
from service.fleet import Ladder
from service.store.scored.pair_listing import MOST_LISTED, ListedPair, Listing, Wanted, Way, list_pairs

SIZE = 50
"""Pairs of a page."""
MOST_CHOICES = 100
"""Of one filter; the most frequent."""
FILE = "pairs"
"""The download's name."""
HEAD = (
    *("pair", "at", "tier", "epoch", "criterion", "version", "stratum", "failed", "counted"),
    *("baseline_class", "candidate_class", "baseline_reason", "candidate_reason", "text_kept_until"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """One of the filters above the list."""

    name: str
    """Of the parameter."""
    chosen: str
    choices: Mapping[str, int]
    """Pairs by word, the other filters applied."""


def pairs_routes(site: Site) -> Sequence[BaseRoute]:
    """One page, and its list as a file."""

    def pairs(visit: Visit) -> Response:
        ladder = ladder_of(site, visit)
        if ladder is None or not ladder.candidates:
            return site.page(visit, "pairs.html", model=None, tier=None)
        tier = visit.asked("tier") or ladder.candidates[0].name
        find_candidate(ladder, tier)
        wanted = wanted_of(site, visit, ladder.model, tier)
        if visit.asked("download") == FILE:
            whole = list_pairs(site.desk.db, wanted, page=1, size=MOST_LISTED, now=visit.now)
            text = render.csv_of(HEAD, list(_rows(whole.pairs)))
            return render.attached(text, "text/csv; charset=utf-8", f"pairs-{ladder.model}-{tier}.csv")
        page = visit.number("page", 1, most=MOST_LISTED)
        listing = list_pairs(site.desk.db, wanted, page=page, size=SIZE, now=visit.now)
        return site.page(
            visit,
            "pairs.html",
            model=ladder.model,
            model_path="/pairs",
            tier=tier,
            tiers=[each.name for each in ladder.candidates],
            epoch=wanted.epoch,
            listing=listing,
            filters=_filters(wanted, listing),
            is_filtered=any((wanted.evaluator, wanted.label, wanted.stratum, wanted.way)),
            page=page,
            pages=-(-listing.amount // SIZE),
            most=MOST_LISTED,
            spelled=shown,
        )

    return [site.get("/pairs", pairs)]


def ladder_of(site: Site, visit: Visit) -> Ladder | None:
    """That of the model asked for, else of the visitor's first; None where there is none."""
    model = visit.asked("model") or (visit.models[0] if visit.models else "")
    return find_ladder(site.desk.config.ladders, model) if model else None


def wanted_of(site: Site, visit: Visit, model: str, tier: str) -> Wanted:
    """The filters of the query; 404 for an evaluator that is not there."""
    config = site.desk.config
    criterion = visit.asked("criterion")
    if criterion:
        find_evaluator(config.evaluators, criterion)
    decisive = tuple(each.evaluator for each in config.policy.decisive)
    return Wanted(
        model=model,
        tier=tier,
        epoch=config.epoch_of(model, tier),
        # What is only shown is listed when it is asked for: where texts are compared, most pairs differ.
        evaluators=decisive if not criterion or criterion in decisive else (criterion,),
        evaluator=criterion,
        label=visit.asked("class"),
        stratum=visit.asked("stratum"),
        way=visit.one_of("way", tuple(Way)),
    )


def pair_id(text: str) -> tuple[str, int]:
    """A pair's unit and item; 404 for what is no name of a pair."""
    unit, _, item = text.partition(".")
    if not (unit.isascii() and unit.isalnum() and item.isascii() and item.isdecimal() and len(item) < 9):
        raise unknown_pair()
    return unit, int(item)


def unknown_pair() -> Problem:
    """404."""
    return Problem(
        404,
        "unknown_pair",
        "there is no scored pair of a candidate with that name",
        hint="open it from the list of pairs",
    )


def _filters(wanted: Wanted, listing: Listing) -> list[Filter]:
    found = (
        ("criterion", wanted.evaluator, listing.evaluators),
        ("class", wanted.label, listing.labels),
        ("stratum", wanted.stratum, listing.strata),
        ("way", wanted.way, listing.ways),
    )
    return [Filter(name=name, chosen=chosen, choices=_cut(chosen, told)) for name, chosen, told in found]


def _cut(chosen: str, told: Mapping[str, int]) -> dict[str, int]:
    """The most frequent, and the chosen one however rare it is."""
    most = dict(list(told.items())[:MOST_CHOICES])
    return {**most, chosen: told.get(chosen, 0)} if chosen else most


def _rows(pairs: Sequence[ListedPair]) -> Iterator[tuple[str, ...]]:
    for each in pairs:
        yield (
            each.id,
            formats.stamp(each.at),
            each.tier,
            each.epoch,
            each.evaluator,
            each.version,
            each.stratum,
            "candidate" if each.way is Way.HARM else "baseline",
            "yes" if each.counted else "waits" if each.waits else "no",
            each.pair.baseline_label,
            each.pair.candidate_label,
            each.pair.baseline_reason,
            each.pair.candidate_reason,
            "" if each.kept_until is None else formats.stamp(each.kept_until),
        )
