"""From a template to an answer: escaping, the policy that forbids all script but ours, the tag, downloads."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, Response

from service.approval.errors import Problem, echo
from service.charts.canvas import visible
from service.charts.chart import Chart
from service.dashboard import formats
from service.report import writing

PAGES = Path(__file__).parent / "pages"
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    # With `no-referrer` a browser would send our own forms with the origin `null`, which the door refuses.
    "Referrer-Policy": "same-origin",
}
_MAIN = re.compile(r"<main\b.*</main>", re.DOTALL)
_CODED = re.compile(r"`([^`<>]+)`")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""
_UNIT = r"(?: ?(?:%|pp|ms|s|h|min|d|tok/s|req/s|[A-Z]{3}))?"
_NUMBER = re.compile(
    rf"[+-][\d.,]+{_UNIT}(?: (?:to |\[)[-+\u2212\d., ]+{_UNIT}\]?{_UNIT})?(?: \([\d.]+ %\))?"
)
"""One with a sign, its unit, its limits and their level."""
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?")


@cache
def environment() -> Environment:
    """Templates of `pages/`: everything is escaped, a name that is not there is an error.

    What a form sends back stands in it as it is (`verbatim`): spelled out, it would be another word.
    """
    made = Environment(
        loader=FileSystemLoader(PAGES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    made.filters |= {
        "points": formats.points,
        "percent": formats.percent,
        "count": formats.count,
        "milliseconds": formats.milliseconds,
        "rate": formats.rate,
        "speed": formats.speed,
        "moment": formats.moment,
        "day": formats.day,
        "timed": formats.timed,
        "drawn": Markup,
        "coded": coded,
        "glued": glued,
        "verbatim": escape,
    }
    return made


def shown(told: object) -> object:
    """A text with what is not seen in it spelled out, such as controls and marks of direction."""
    return visible(told) if isinstance(told, str) and not isinstance(told, Markup) else told


def glued(told: object) -> object:
    """A text in which a number stays with its unit and its limits; markup of ours as it is."""
    return writing.glued(visible(told)) if isinstance(told, str) and not isinstance(told, Markup) else told


def coded(told: object) -> Markup:
    """A text in which what stands in backquotes is code: commands, keys."""
    return Markup(_CODED.sub(r"<code>\1</code>", str(escape(shown(told)))))


def answer(template: str, context: Mapping[str, object], *, status: int, known: str | None) -> Response:
    """The page; 304 without it where its main part is the one that `known` tags."""
    text = environment().get_template(template).render(context)
    main = _MAIN.search(text)
    tag = f'W/"{sha256((main[0] if main else text).encode(errors="replace")).hexdigest()[:32]}"'
    headers = {**HEADERS, "ETag": tag}
    if status == 200 and known is not None and tag in known:
        return Response(status_code=304, headers=headers)
    return HTMLResponse(text.encode(errors="replace"), status_code=status, headers=headers)


def download(charts: Sequence[Chart], name: str) -> Response:
    """The numbers of the chart of that name; 404 where the page has none of it."""
    for each in charts:
        if each.name == name:
            head, *rows = each.data or (each.head, *each.rows)
            return attached(csv_of(head, rows), "text/csv; charset=utf-8", f"{name}.csv")
    raise Problem(
        404, "not_found", f"the page has no chart called {echo(name)}", hint="follow a link of the page"
    )


def attached(text: str | bytes, media_type: str, file_name: str) -> Response:
    """A file to save; whatever is no plain letter in its name becomes a hyphen."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", file_name)
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{plain}"'}
    body = text.encode(errors="replace") if isinstance(text, str) else text
    return Response(body, media_type=media_type, headers=headers)


def csv_of(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as a file; a cell that a spreadsheet would compute gets an apostrophe before it."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    for row in (head, *rows):
        writer.writerow([_guarded(cell) for cell in row])
    return file.getvalue()


def _guarded(cell: str) -> str:
    """Numbers with a sign stay as they are."""
    numeric = _NUMBER.fullmatch(cell) or _PLAIN.fullmatch(cell)
    return f"'{cell}" if cell.startswith(_FORMULA) and not numeric else cell
