"""`/`: one page, read anew for every visit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from service.store.account import LedgerAccount
from service.store.standing import Standing

PAGES = Path(__file__).parent / "pages"
POLICY = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
STYLE_PATH = "/overview.css"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the page shows of one moment."""

    at: float
    """Unix seconds."""
    standings: Sequence[Standing]
    ledger: LedgerAccount


def overview(look: Callable[[], Look]) -> list[Route]:
    """The page and its style; `look` reads the stores and may block."""
    environment = Environment(
        loader=FileSystemLoader(PAGES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {"points": points, "moment": moment}
    template = environment.get_template("overview.html")
    style = (PAGES / "overview.css").read_bytes()
    headers = {"Content-Security-Policy": POLICY}

    def overview_page(request: Request) -> Response:
        seen = look()
        text = template.render(at=seen.at, standings=seen.standings, ledger=seen.ledger)
        return HTMLResponse(text, headers=headers)

    def overview_style(request: Request) -> Response:
        return Response(style, media_type="text/css", headers={**headers, "Cache-Control": "no-cache"})

    return [Route("/", overview_page), Route(STYLE_PATH, overview_style)]


def points(share: float | None) -> str:
    """A share in percentage points with its sign; a dash where there is none."""
    return "–" if share is None else f"{100 * share:+.2f} pp"


def moment(seconds: float) -> str:
    """UTC, to the second."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
