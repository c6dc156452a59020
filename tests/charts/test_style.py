"""The style of charts: dark, print, phone, and nothing outside of charts."""

from __future__ import annotations

import re

from service.charts import STYLE


def rules(text: str) -> list[str]:
    """Selectors of every rule, those within media included."""
    bare = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return [found.strip() for found in re.findall(r"([^{}@;]+)\{", re.sub(r"@media[^{]*\{", "", bare))]


def test_it_touches_nothing_but_charts() -> None:
    for rule in rules(STYLE):
        for selector in rule.split(","):
            assert selector.strip().startswith(".chart"), selector


def test_it_loads_nothing() -> None:
    assert not re.search(r"url\(|@import|https?:", STYLE)


def test_dark_and_print_set_every_colour_again() -> None:
    first, *others = (
        set(re.findall(r"(--c-[\w]+):", block)) for block in re.findall(r"\{[^{}]*--c-ink:[^{}]*\}", STYLE)
    )
    assert len(others) == 2
    assert all(each == first for each in others)


def test_phones_get_the_narrow_layout_and_print_the_wide_one() -> None:
    phone = STYLE.split("max-width: 640px")[1].split("@media print")[0]
    paper = STYLE.split("@media print")[1]
    assert ".chart-narrow { display: block; }" in phone
    assert ".chart-wide { display: none; }" in phone
    assert ".chart-wide { display: block; }" in paper
    assert ".chart-narrow { display: none; }" in paper


def contrast(first: str, second: str) -> float:
    """WCAG 2 contrast of two colours."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_words_and_marks_can_be_told_from_the_paper() -> None:
    for block in re.findall(r"\{[^{}]*--c-ink:[^{}]*\}", STYLE):
        colours = dict(re.findall(r"--c-(\w+): (#\w{6})", block))
        for name in ("ink", "soft", "bad"):
            assert contrast(colours[name], colours["paper"]) >= 4.5, name
        for name in ("good", "wait", "0", "1", "2", "3", "4", "5", "axis"):
            assert contrast(colours[name], colours["paper"]) >= 3, name
