"""Captured texts that mean harm are shown, and do nothing."""

from __future__ import annotations

from service.dashboard.visit import address
from service.store.labels.kept_text import AnswerText, Call, PairText, Turn
from service.store.scored.pair_listing import Wanted, list_pairs
from tests.browser.conftest import OpenPage
from tests.browser.places import PLACES, Built
from tests.browser.test_every_page import ALIVE, wide
from tests.dashboard.house import CHAT, EVALUATORS, NOW, epoch_of
from tests.dashboard.looking import HOSTILE, put_text

MOST_BYTES = 600_000
"""Of the page of any folded pair."""
NASTY = {
    "markup and terminals": HOSTILE,
    "json keys": '{"<img src=x onerror=alert(1)>": {"</script><script>alert(2)</script>": "${7*7}"}}',
    "ends of elements": "</div></main></body></html><!-- --> ]]> </textarea></title></style><plaintext>",
    "style": "<style>*{display:none}</style><link rel=stylesheet href=//evil.example/x><base href=//x>",
    "entities": "&lt;script&gt;alert(1)&lt;/script&gt; &#x202e; %3Cscript%3E",
    "marks of direction": "\u202e\u2066\u202d abc \u2069\u200f\u061c",
    "without width": "pass\u200bword\u200d\ufeff\u2060\u00ad" + "\u200b" * 5_000,
    "halves of pairs": "\ud800 \udfff \ud83d\ude00",
    "controls": "".join(map(chr, range(32))) + "\x7f\x80\x85\x9b31m",
    "stacked marks": "Z" + "\u0301" * 3_000,
    "broken utf-8": b"\xff\xfe ab\xc3 \xed\xa0\x80".decode("utf-8", "replace"),
    "deep json": "[" * 100_000,
    "deep json that ends": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "one long line": "x" * 1_000_000,
    "many lines": "\n" * 100_000,
    "a long word of an alphabet of its own": "\u0e01" * 50_000,
}

SPELLED = "<script>alert(1)</script><svg onload=alert(2)>"


def test_hostile_answers_are_shown_and_do_nothing(look: OpenPage, built: Built) -> None:
    seen = look(built.api, width=390, scope="admin")
    page = seen.page
    page.goto(PLACES["pairs"](built))
    opened = page.locator("main a[href^='/pair?']")
    # Some: who has looked at a pair is not given it to judge, and others judge in this house.
    links = opened.evaluate_all("links => links.slice(0, 9).map(link => `${link.href}&show=request`)")
    assert links, "no pair can be opened"
    met = 0
    for place in [PLACES["adjudicate"](built), *dict.fromkeys(links)]:
        page.goto(place)
        assert page.locator(ALIVE).count() == 0, place
        met += SPELLED in page.locator("main").inner_text()
        assert wide(page) == "", place
    assert met >= 3, "of three pairs one has the hostile text, and so the pages of pairs show it"
    assert seen.complaints == []


def test_whatever_an_answer_holds_its_page_stays_itself(look: OpenPage, own: Built) -> None:
    seen = look(own.api, width=390, scope="label")
    page = seen.page
    wanted = Wanted(
        model=CHAT, tier="w4a16", epoch=epoch_of(CHAT, "w4a16"), evaluators=EVALUATORS, way="harm"
    )
    pairs = list_pairs(own.api.db, wanted, page=1, size=len(NASTY), now=NOW).pairs
    assert len(pairs) == len(NASTY)
    for pair, (kind, nasty) in zip(pairs, NASTY.items(), strict=True):
        text = PairText(
            turns=(Turn(role=nasty[:40], text=nasty),),
            asked=nasty,
            baseline=AnswerText(text="harmless", calls=(Call(name="f", arguments="{}"),)),
            candidate=AnswerText(
                text=nasty,
                refusal=nasty,
                calls=(Call(name=nasty[:200], arguments=nasty),),
                finish_reason=nasty[:40],
            ),
        )
        put_text(own.api.db, pair, text)
        answer = page.goto(address("/pair", id=pair.id, show="request"))
        assert answer is not None
        assert answer.status == 200, kind
        assert len(answer.body()) < MOST_BYTES, kind
        assert page.title().startswith("One pair"), kind
        assert page.locator("main h1").count() == 1, kind
        assert page.locator("footer.foot").is_visible(), kind
        assert page.locator(ALIVE).count() == 0, kind
        assert page.locator("main :is(script, style, link, base, svg, img, iframe, form)").count() == 0, kind
        assert wide(page) == "", kind
        assert seen.complaints == [], kind


def test_ten_thousand_calls_are_a_page_like_any_other(look: OpenPage, own: Built) -> None:
    seen = look(own.api, scope="label")
    wanted = Wanted(
        model=CHAT, tier="w4a16", epoch=epoch_of(CHAT, "w4a16"), evaluators=EVALUATORS, way="harm"
    )
    (pair,) = list_pairs(own.api.db, wanted, page=1, size=1, now=NOW).pairs
    calls = tuple(Call(name="f", arguments=f'{{"n": {place}}}') for place in range(10_000))
    put_text(
        own.api.db,
        pair,
        PairText(
            turns=tuple(Turn(role="user", text="again") for _ in range(10_000)),
            baseline=AnswerText(calls=calls[::-1]),
            candidate=AnswerText(calls=calls),
        ),
    )
    for whole, most in ((None, MOST_BYTES), (1, 5 * MOST_BYTES)):
        answer = seen.page.goto(address("/pair", id=pair.id, show="request", whole=whole))
        assert answer is not None
        assert (answer.status, len(answer.body()) < most) == (200, True)
        assert "Further calls that are not shown" in seen.page.locator("main").inner_text()
    assert seen.complaints == []
