"""One file that needs nothing else: strict markup, no script, hostile names inert, print, dark."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pytest

from service.report.document import Report
from service.report.forms import Form, written
from service.report.html import html, policy
from service.report.page import page
from service.report.words import Language
from tests.report.pages import numbers, parsed, text_of, texts
from tests.report.sample import sample

REPORT = sample()
PAGES = {language: html(page(REPORT, language)) for language in Language}
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }}\u202e\x1b[31m]]>&amp;"


def hostile() -> Report:
    """Every text that others write, hostile."""
    tiers = tuple(
        replace(
            each,
            name=f"{each.name}{HOSTILE}",
            verdict=None
            if each.verdict is None
            else replace(
                each.verdict,
                reasons=(HOSTILE,),
                findings=tuple(
                    replace(found, criterion=HOSTILE, reason=HOSTILE) for found in each.verdict.findings
                ),
            ),
            load=None
            if each.load is None
            else replace(each.load, invalid=(HOSTILE,), shown=HOSTILE, failed={HOSTILE: 1}, arrivals=HOSTILE),
            sweep=None if each.sweep is None else replace(each.sweep, note=HOSTILE),
            engine=tuple(replace(series, metric=HOSTILE) for series in each.engine[:1]),
        )
        for each in REPORT.tiers
    )
    assert REPORT.ledger is not None
    return replace(
        REPORT,
        run=replace(
            REPORT.run,
            id=HOSTILE,
            model=HOSTILE,
            begun_by=HOSTILE,
            why=HOSTILE,
            remarks=(HOSTILE,),
            state=HOSTILE,
        ),
        tiers=tiers,
        ledger=replace(REPORT.ledger, problems=(HOSTILE,), skipped={HOSTILE: 3}),
        manifest={HOSTILE: HOSTILE},
        currency=HOSTILE,
    )


@pytest.mark.parametrize("language", Language)
def test_it_is_well_formed_and_says_what_the_page_says(language: Language) -> None:
    root = parsed(PAGES[language])
    assert root.get("lang") == language.tag
    named = [each.get("aria-label", "") for each in root.iter()]
    told = " ".join(" ".join([text_of(root), *named]).split())
    for text in texts(page(REPORT, language)):
        for line in text.split("\n"):
            assert " ".join(line.split()) in told


@pytest.mark.parametrize("language", Language)
def test_every_name_is_unique_and_every_link_leads_somewhere(language: Language) -> None:
    root = parsed(PAGES[language])
    names = Counter(each.get("id") for each in root.iter() if each.get("id"))
    assert [name for name, count in names.items() if count > 1] == []
    for each in root.iter():
        assert each.get("href", "#glance").removeprefix("#") in names
        for name in each.get("aria-labelledby", "").split():
            assert name in names


def test_both_languages_show_the_same_numbers() -> None:
    """Beside the drawings, in which a long word may be cut in one language alone."""
    seen = []
    for language in Language:
        root = parsed(PAGES[language])
        for each in list(root.iter("div")):
            for drawing in each.findall("svg"):
                each.remove(drawing)
        seen.append(numbers([" ".join(root.itertext())]))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("text", [*PAGES.values(), html(page(hostile()))], ids=["en", "zh", "hostile"])
def test_it_runs_nothing_and_loads_nothing(text: str) -> None:
    found: list[tuple[str, dict[str, str | None]]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, dict(attrs)))

    Reader(convert_charrefs=True).feed(text)
    tags = {tag for tag, _ in found}
    assert not tags & {
        "script",
        "img",
        "iframe",
        "object",
        "embed",
        "form",
        "link",
        "base",
        "foreignobject",
        "image",
        "use",
    }
    for tag, attributes in found:
        assert not [
            name
            for name in attributes
            if name.startswith("on") or name in ("style", "src", "srcdoc", "xlink:href")
        ], tag
        assert (attributes.get("href") or "#").startswith("#")
    style = text.split("<style>")[1].split("</style>")[0]
    assert not re.search(r"url\(|@import|expression|https?:|<", style)


def test_its_own_policy_admits_its_one_style_and_nothing_else() -> None:
    import base64
    import hashlib

    text = PAGES[Language.EN]
    style = text.split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (told,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert unescape(told) == policy()
    assert policy().startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
    assert "unsafe" not in policy()


def test_hostile_names_are_text_with_what_is_not_seen_spelled_out() -> None:
    text = html(page(hostile()))
    root = parsed(text)
    assert "\u202e" not in text
    assert "\x1b" not in text
    shown = HOSTILE.replace("\u202e", "\\u202e").replace("\x1b", "\\u001b")
    assert shown in "".join(root.itertext())
    assert "49" not in "".join(root.find("head").itertext())  # type: ignore[union-attr]


def test_it_is_small_enough_to_be_mailed() -> None:
    assert len(PAGES[Language.EN].encode()) < 300_000


def test_every_table_and_chart_is_reached_by_keyboard_and_named() -> None:
    root = parsed(PAGES[Language.EN])
    for each in root.iter("div"):
        if each.get("class") == "scroll":
            assert each.get("tabindex") == "0"
            assert each.get("aria-label")
    assert all(table.find("caption") is not None for table in root.iter("table"))
    for table in root.iter("table"):
        assert all(cell.get("scope") for cell in table.iter("th"))
    figures = list(root.iter("figure"))
    assert len(figures) == 12
    for figure in figures:
        assert figure.find("h3") is not None
        assert next(figure.iter("table"), None) is not None


def test_it_turns_dark_and_prints() -> None:
    style = PAGES[Language.EN].split("<style>")[1].split("</style>")[0]
    assert style.count("@media (prefers-color-scheme: dark)") == 2
    paper = style.split("@media print", 1)[1]
    assert "@page" in paper
    assert "content-visibility: visible" in paper, "what is folded is printed"
    assert "nav { display: none; }" in paper
    assert "break-inside: avoid" in paper
    assert "max-width: 640px" in style


def test_reasons_are_told_in_the_reports_language_and_others_say_which_they_are_in() -> None:
    root = parsed(PAGES[Language.ZH])
    foreign = ["".join(each.itertext()) for each in root.iter() if each.get("lang") == "en"]
    assert "e 值 8.1e+06 ≥ 120" in PAGES[Language.ZH]
    assert not any("e-value" in text for text in foreign)
    assert any("budget spent" in text for text in foreign), "a remark that no room of ours makes"


@pytest.mark.parametrize("form", Form)
def test_a_written_report_has_its_media_type_policy_and_a_harmless_file_name(form: Form) -> None:
    made = written(hostile(), form, Language.ZH)
    assert re.fullmatch(r"tiergate-[\w.-]+\.(zh\.html|zh\.md|json)", made.file_name)
    assert bool(made.policy) is (form is Form.HTML)
    assert made.media_type.partition(";")[0] in ("text/html", "text/markdown", "application/json")
    assert written(REPORT, form, Language.EN).text == written(REPORT, form, Language.EN).text
