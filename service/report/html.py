"""A page as one HTML file that needs nothing else: no script, no font, no picture from elsewhere.

Styles stand in one element, admitted by its hash, so that the file's own policy forbids every other style and
all script even when it is opened from a disk. Whatever is not seen in a text, such as controls and marks of
direction, is spelled out. The markup is well-formed XML as well.
"""

from __future__ import annotations

import base64
import re
from functools import cache
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from service.charts import STYLE
from service.charts.canvas import visible
from service.report import writing
from service.report.blocks import Page

PAGES = Path(__file__).parent / "pages"


def html(page: Page) -> str:
    """The whole file."""
    return _template().render(page=page, style=Markup(_style()), policy=policy())


def policy() -> str:
    """The Content-Security-Policy under which the page is shown, for its own head and for an answer's."""
    digest = base64.b64encode(sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@cache
def _style() -> str:
    """Both style sheets, without comments and line breaks."""
    text = (PAGES / "report.css").read_text(encoding="utf-8") + STYLE
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)).strip()


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(PAGES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["kind"] = lambda block: type(block).__name__
    environment.filters["lines"] = _lines
    environment.filters["drawn"] = Markup
    return environment.get_template("report.html")


def _shown(told: object) -> object:
    if not isinstance(told, str) or isinstance(told, Markup):
        return told
    return writing.glued(visible(told))


def _lines(text: str) -> list[str]:
    """Line breaks of our own texts, so that none in a name can look like one."""
    return text.split("\n")
