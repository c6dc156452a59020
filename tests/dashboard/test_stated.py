"""Reasons on pages: in Chinese on Chinese pages, all of them; a person's words as they were given."""

from __future__ import annotations

import re

import pytest

from service.dashboard.stated import because, held_because, in_words
from service.dashboard.visit import address
from service.report.words import Language
from service.store.decided.decisions import Entry
from service.store.decided.holds import Hold, HoldKind
from tests.approval.live import LiveApi
from tests.dashboard.house import CHAT, CODE, NAMES, House, browser
from tests.dashboard.visiting import words_of

FOREIGN = re.compile(r'<(?P<name>\w+)[^>]*\slang="en"[^>]*>(?P<text>.*?)</(?P=name)>', re.DOTALL)
OF_THE_HOUSE = "a remark"
"""That jobs of tests have, and none of ours."""
HELD = Hold(kind=HoldKind.SLO_LOST, reason="slo: no block was run", at=1.0)
REJECTED = Hold(kind=HoldKind.REJECTED, reason="no block was run", at=1.0)


def entry(**detail: object) -> Entry:
    return Entry(
        seq=1, at=1.0, actor="a", action="frozen", model="m", tier="t", detail=detail, prev="", digest=""
    )


def foreign(page: str) -> list[str]:
    """What of the page's main part is said to be English, but for the language's own name."""
    main = page.partition("<main")[2]
    return [words_of(found["text"]) for found in FOREIGN.finditer(main)]


def test_no_reason_of_the_house_is_english_on_a_chinese_page(seen_site: LiveApi, house: House) -> None:
    client = browser(seen_site, "admin")
    places = ["/", "/jobs", "/log", address("/jobs/begin", model=CHAT)]
    places += [address("/ledger", model=model) for model in NAMES]
    places += [address("/tier", model=model, tier=tier) for model in NAMES for tier in NAMES[model]]
    places += [address("/job", id=job) for job in (house.done_job, house.failed_job, house.running_job)]
    places += [
        address("/tier/act", model=CHAT, tier=tier, do=act)
        for tier, act in (
            ("w8a8", "approve"),
            ("w4a16", "approve"),
            ("fp8-kv", "roll_back"),
            ("w8a8", "reject"),
        )
    ]
    met = {}
    for place in places:
        answer = client.get(place, headers={"Accept-Language": "zh"})
        assert '<html lang="zh-Hans">' in answer.text, place
        if told := [text for text in foreign(answer.text) if text != OF_THE_HOUSE]:
            met[place] = told
    assert met == {}


def test_of_a_tier_that_does_harm_the_page_says_why_in_chinese(seen_site: LiveApi) -> None:
    client = browser(seen_site)
    page = client.get(address("/tier", model=CODE, tier="w8a8"), headers={"Accept-Language": "zh"}).text
    text = words_of(page)
    assert "已证明损害超出容许幅度" in text
    assert "harm beyond the margin" not in text
    english = words_of(client.get(address("/tier", model=CODE, tier="w8a8")).text)
    assert "harm beyond the margin" in english


@pytest.mark.parametrize("language", Language)
def test_what_nobody_can_tell_is_marked_and_escaped(language: Language) -> None:
    text = str(in_words(language, "<b>& nobody\u202e knows"))
    if language is Language.EN:
        assert text == "<b>& nobody\u202e knows", "the page escapes it"
    else:
        assert text.startswith('<span lang="en">&lt;b&gt;&amp; nobody')
        assert "\u202e" not in text


def test_the_guards_reason_is_told_and_a_persons_left_alone() -> None:
    assert held_because(Language.ZH, HELD) == "SLO：没有运行任何区块"
    assert held_because(Language.ZH, REJECTED) == "no block was run"
    assert (
        because(Language.ZH, entry(reasons=["missing_slo", "missing_money"])) == "没有 SLO 证据；没有成本证据"
    )
    assert because(Language.ZH, entry(reason="missing_slo")) == "missing_slo"
    assert because(Language.EN, entry(reasons=["missing_slo"])) == "missing_slo"
    assert because(Language.ZH, entry()) == "-", "none is none in every language"


def test_a_long_reason_is_cut_in_a_list_and_whole_on_its_row() -> None:
    row = entry(reasons=["missing_slo"] * 60)
    cut, whole = because(Language.ZH, row), because(Language.ZH, row, whole=True)
    assert cut.endswith("…")
    assert whole.count("没有 SLO 证据") == 60
    unknown = because(Language.ZH, entry(reasons=["nobody knows " * 60]))
    assert len(str(unknown)) < 200
    assert "…" in str(unknown)
