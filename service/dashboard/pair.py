"""`/pair`: one pair, what the evaluator says of it, and on demand both answers side by side and the request.

Answers are captured text: they take scope `label` and a session, and every look is written down before
anything is shown. Who has looked cannot judge the pair blind any more, and is told so before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import BaseRoute

from service.approval.access import Scope
from service.approval.names import find_candidate, find_ladder
from service.approval.pair_texts import look_at
from service.dashboard.captured import Piece, shown
from service.dashboard.pairs import pair_id, unknown_pair, wanted_of
from service.dashboard.sides import sides
from service.dashboard.site import Site
from service.dashboard.visit import Visit
from service.store.labels.kept_text import PairText
from service.store.scored.pair_listing import ListedPair, beside, find_pair

FILTERS = ("criterion", "class", "stratum", "way")
"""Parameters of the list, which a pair's page keeps for its neighbours and the way back."""
ANSWERS, REQUEST = "answers", "request"
"""What may be shown; the request with the answers."""
MOST_TURNS, MOST_TURNS_WHOLE = 12, 500
"""Of a request, before the earlier ones are folded; and at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTurn:
    """One turn of a request."""

    role: str
    text: Sequence[Piece]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRequest:
    """What was asked."""

    turns: Sequence[ShownTurn]
    earlier: int
    """Turns before these that are folded."""
    asked: Sequence[Piece]

    @property
    def is_folded(self) -> bool:
        """Whether there is more to see."""
        texts = (*(each.text for each in self.turns), self.asked)
        return self.earlier > 0 or any(piece.folded for text in texts for piece in text)


def pair_routes(site: Site) -> Sequence[BaseRoute]:
    """One page."""

    def pair(visit: Visit) -> Response:
        unit, item = pair_id(visit.needed("id"))
        found = find_pair(site.desk.db, unit, item, now=visit.now)
        if found is None:
            raise unknown_pair()
        ladder = find_ladder(site.desk.config.ladders, found.model)
        find_candidate(ladder, found.tier)
        wanted = wanted_of(site, visit, found.model, found.tier)
        before, after = beside(site.desk.db, wanted, found)
        show = visit.one_of("show", (ANSWERS, REQUEST))
        whole = visit.asked("whole") == "1"
        text = None if visit.live or not show else _text(site, visit, found, request=show == REQUEST)
        return site.page(
            visit,
            "pair.html",
            model=found.model,
            pair=found,
            baseline=ladder.baseline.name,
            is_present=found.epoch == wanted.epoch,
            before=before,
            after=after,
            kept={name: visit.asked(name) or None for name in FILTERS},
            show=show if text is not None else "",
            is_gone=bool(show) and text is None and not visit.live,
            whole=whole,
            sides=None if text is None else sides(text.baseline, text.candidate, whole=whole),
            request=None if text is None or show != REQUEST else shown_request(text, whole=whole),
            spelled=shown,
        )

    return [site.get("/pair", pair)]


def _text(site: Site, visit: Visit, pair: ListedPair, *, request: bool) -> PairText | None:
    site.require(visit, Scope.LABEL, "reading captured text")
    return look_at(site.desk, visit.caller, pair, request=request)


def shown_request(text: PairText, *, whole: bool) -> ShownRequest:
    """The latest turns, and of each what there is room for."""
    turns = text.turns[-(MOST_TURNS_WHOLE if whole else MOST_TURNS) :]
    return ShownRequest(
        turns=[ShownTurn(role=each.role, text=shown(each.text, whole=whole)) for each in turns],
        earlier=len(text.turns) - len(turns),
        asked=shown(text.asked, whole=whole),
    )
