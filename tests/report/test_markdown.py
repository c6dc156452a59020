"""Markdown: every number of the page, tables that are tables, and names that stay text."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from service.charts.canvas import visible
from service.report.markdown import escaped, markdown
from service.report.page import page
from service.report.words import Language
from tests.report.pages import numbers, texts
from tests.report.sample import sample

REPORT = sample()
READER = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough")


def cells(text: str) -> int:
    """Cells of a row, escaped bars apart."""
    return len(re.findall(r"(?<!\\)\|", text)) - 1


@pytest.mark.parametrize("language", Language)
def test_it_has_every_number_of_the_page(language: Language) -> None:
    made = page(REPORT, language)
    told = re.sub(r"\\([^\w\s])", r"\1", markdown(made)).replace("\u200b", "")
    missing = numbers(texts(made)) - numbers([told])
    assert not missing


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    lines = markdown(page(REPORT)).splitlines()
    heads = [place for place, line in enumerate(lines) if re.fullmatch(r"\|( --- \|)+", line)]
    assert len(heads) > 12
    for place in heads:
        wanted = cells(lines[place])
        assert cells(lines[place - 1]) == wanted
        following = place + 1
        while following < len(lines) and lines[following].startswith("|"):
            assert cells(lines[following]) == wanted
            following += 1
        assert following > place + 1


def test_a_reader_sees_headings_tables_and_no_html() -> None:
    tokens = READER.parse(markdown(page(REPORT)))
    kinds = [token.type for token in tokens]
    assert kinds.count("table_open") > 12
    assert kinds.count("heading_open") > 15
    assert "html_block" not in kinds


HOSTILE = "<img src=x onerror=alert(1)> [a](javascript:x) `c` *b* | # ~~s~~ ``` https://evil.example @me $x$"


def test_hostile_names_are_text() -> None:
    tiers = tuple(replace(each, name=f"{HOSTILE}{place}") for place, each in enumerate(REPORT.tiers))
    text = markdown(page(replace(REPORT, tiers=tiers, run=replace(REPORT.run, model=HOSTILE, id=HOSTILE))))
    rendered = READER.render(text)
    assert "<img" not in rendered
    assert "<a " not in rendered
    assert "https://" not in re.sub(r"<pre>.*?</pre>", "", rendered, flags=re.DOTALL)
    assert rendered.count("<pre>") == REPORT_CODE


REPORT_CODE = READER.render(markdown(page(REPORT))).count("<pre>")


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_any_text_stays_text_in_a_cell(text: str) -> None:
    rendered = READER.render(f"| a |\n| --- |\n| x{escaped(text)} |\n")
    assert rendered.count("<td>") == 1
    assert not re.search(r"<(?!/?(table|thead|tbody|tr|th|td)>)", rendered)


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=30))
def test_any_text_stays_text_in_a_paragraph(text: str) -> None:
    rendered = READER.render(escaped(text))
    assert not re.search(r"<(?!/?p>)", rendered), rendered
    assert visible(text).strip() == "" or rendered.startswith("<p>")
