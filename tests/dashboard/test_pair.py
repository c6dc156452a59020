"""One pair with both its answers: for whoever may, written down each time, and inert."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest

from evaluators.exchange import Answer, FaultKind
from service.dashboard.visit import address
from service.store.kept.kept_answers import KeptAnswers, keep_within, kept_id
from service.store.labels.access_log import LOOK, read_access
from service.store.labels.adjudication import item_id
from service.store.labels.kept_text import AnswerText, Call, PairText, Turn
from service.store.redis.capture import Capture, Ending, seal_all
from service.store.scored.pair_listing import ListedPair, Wanted, list_pairs
from service.store.sql.database import Database
from tests.adjudicating import KEYRING
from tests.approval.live import LiveApi
from tests.dashboard.house import CHAT, CODE, NOW, REFUSAL, STRUCTURED, browser, epoch_of
from tests.dashboard.looking import HOSTILE, links, listing, pair_of, put_text, shown, texts_of
from tests.dashboard.visiting import words_of


def test_a_pair_tells_what_the_evaluator_says_and_no_text_until_asked(
    house_site: LiveApi, house_database: Database
) -> None:
    pair = pair_of(house_database, evaluator=STRUCTURED, way="harm")
    page = shown(browser(house_site, "label"), pair)
    assert "w4a16 failed where bf16 did not" in words_of(page)
    assert "expected JSON, found prose" in words_of(page)
    assert texts_of(page) == []
    assert "If you look, the access log says so" in words_of(page)
    assert read_access(house_database) == []


def test_answers_are_shown_to_scope_label_alone_and_each_look_is_written_down(
    house_site: LiveApi, house_database: Database
) -> None:
    pair = pair_of(house_database, evaluator=STRUCTURED, way="harm")
    for nobody in (browser(house_site), browser(house_site, "read")):
        assert "needs scope label" in words_of(shown(nobody, pair))
        refused = nobody.get(address("/pair", id=pair.id, show="answers"))
        assert refused.status_code in (401, 403)
        assert texts_of(refused.text) == []
    assert read_access(house_database) == []
    page = shown(browser(house_site, "label"), pair, show="answers")
    assert len(texts_of(page)) == 2
    looks = [each for each in read_access(house_database) if each.item_id == pair.item_id]
    assert [(each.actor, each.action, each.detail) for each in looks] == [("test-label", LOOK, "answers")]
    assert pair.item_id not in page, "the id under which others judge it blind"


def test_a_token_in_a_header_reads_and_is_shown_no_text(
    house_site: LiveApi, house_database: Database
) -> None:
    pair = pair_of(house_database, way="harm")
    answer = house_site.client("admin").get(address("/pair", id=pair.id, show="answers"))
    assert answer.status_code == 401
    assert read_access(house_database) == []


def test_the_request_is_shown_on_demand_and_that_is_written_down_too(
    house_site: LiveApi, house_database: Database
) -> None:
    pair = pair_of(house_database, evaluator=STRUCTURED, way="harm")
    put_text(
        house_database,
        pair,
        PairText(
            turns=(Turn(role="user", text="the question"),),
            asked="JSON",
            baseline=AnswerText(text="one"),
            candidate=AnswerText(text="two"),
        ),
    )
    client = browser(house_site, "label")
    assert "the question" not in shown(client, pair, show="answers")
    assert texts_of(shown(client, pair, show="request")) == ["the question", "JSON", "one", "two"]
    looks = [each.detail for each in read_access(house_database) if each.item_id == pair.item_id]
    assert looks == ["answers", "answers and request"]


def test_a_page_that_asks_for_itself_again_sees_no_text(
    house_site: LiveApi, house_database: Database
) -> None:
    pair = pair_of(house_database, way="harm")
    client = browser(house_site, "label")
    answer = client.get(address("/pair", id=pair.id, show="answers"), headers={"X-Tiergate-Live": "1"})
    assert texts_of(answer.text) == []
    assert read_access(house_database) == []


def test_texts_json_and_calls_are_laid_side_by_side(house_site: LiveApi, house_database: Database) -> None:
    pair = pair_of(house_database, way="harm")
    put_text(
        house_database,
        pair,
        PairText(
            turns=(),
            baseline=AnswerText(
                text='{"seats": 2, "to": "Oulu"}', calls=(Call(name="book", arguments='{"at": 9}'),)
            ),
            candidate=AnswerText(
                text='{"seats": "2"}',
                calls=(Call(name="book", arguments='{"at": 10}'),),
                finish_reason="length",
            ),
        ),
    )
    page = shown(browser(house_site, "label"), pair, show="answers")
    said = words_of(page)
    assert '/seats type 2 "2"' in said
    assert '/to only the first has it "Oulu" nothing' in said
    assert "/at value 9 10" in said
    assert "It ended with length" in said
    assert "<del>" in page
    assert "<ins>" in page


def test_hostile_answers_are_inert_and_all_of_them_is_seen(
    house_site: LiveApi, house_database: Database
) -> None:
    pair = pair_of(house_database, way="harm")
    put_text(
        house_database,
        pair,
        PairText(
            turns=(Turn(role="user\u202e", text=HOSTILE),),
            baseline=AnswerText(text="harmless"),
            candidate=AnswerText(text=HOSTILE, calls=(Call(name=HOSTILE, arguments=HOSTILE),)),
        ),
    )
    page = shown(browser(house_site, "label"), pair, show="request")
    tags = " ".join(re.findall(r"<[^>]*>", page))
    assert not re.search(
        r"<(script(?! src)|svg|iframe|img|object|style)|\son\w+=|href=.javascript|\sstyle=", tags
    )
    for unseen in "\x00\x07\x1b\u202e\u2066\u200b\ud83d":
        assert unseen not in page
        assert f"U+{ord(unseen):04X}" in page
    assert "{{ 7 * 7 }}" in page
    assert page.count("</main>") == 1
    assert "<script>alert(1)</script>" in texts_of(page)[0]


def test_a_line_of_a_million_characters_is_folded_and_shown_whole_on_demand(
    house_site: LiveApi, house_database: Database
) -> None:
    pair = pair_of(house_database, way="harm")
    long = "x" * 1_000_000
    put_text(
        house_database,
        pair,
        PairText(turns=(), baseline=AnswerText(text=f"{long}1"), candidate=AnswerText(text=f"{long}2")),
    )
    client = browser(house_site, "label")
    page = shown(client, pair, show="answers")
    assert len(page) < 60_000
    assert "characters folded" in page
    (link,) = re.findall(r'href="([^"]*whole=1[^"]*)"', page)
    whole = client.get(unescape(link)).text
    assert [len(each) for each in texts_of(whole)] == [1_000_001, 1_000_001]


def test_answers_kept_of_a_share_of_captures_are_shown_where_none_are_queued(
    house_site: LiveApi, house_database: Database
) -> None:
    pair = pair_of(house_database, evaluator=STRUCTURED, way="benefit")
    assert pair.kept_until is None
    client = browser(house_site, "label")
    assert "The text of this pair is not there" in words_of(shown(client, pair, show="answers"))
    assert read_access(house_database) == []
    keep(house_database, pair, candidate=Answer(text="from the corpus"), needles={})
    page = shown(client, pair, show="request")
    assert texts_of(page) == ["hello\n[calls f {}]", "from the corpus"]
    assert "No answer: timeout" in words_of(page)
    assert [each.item_id for each in read_access(house_database)].count(pair.item_id) == 1


def keep(db: Database, pair: ListedPair, *, candidate: Answer, needles: dict[str, object]) -> None:
    """Answers of a capture as a worker keeps them."""
    written: dict[str, object] = {
        "text": candidate.text,
        "refusal": None,
        "tool_calls": [],
        "finish_reason": "stop",
    }
    fault = {"kind": FaultKind.TIMEOUT.value, "detail": "at http://backend"}
    told = {
        "baseline": "bf16",
        "outcomes": [["bf16", 0, False, fault], [pair.tier, 0, False, written]],
        "needles": needles,
    }
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = {"model": CHAT, "messages": [{"role": "assistant", "content": "hello", "tool_calls": [call]}]}
    capture = Capture(
        id=kept_id(pair.capture_id),
        model=CHAT,
        tier="bf16",
        path="/v1/chat/completions",
        request_body=json.dumps(body).encode(),
        response_body=json.dumps(told).encode(),
        ending=Ending.COMPLETE,
        started_at=NOW,
        tenant="",
        stratum="",
    )
    [blob] = seal_all([capture], KEYRING)
    kept = KeptAnswers(
        capture_id=pair.capture_id, model=CHAT, tenant="", scored="", expires_at=NOW + 100, blob=blob
    )
    with db.write() as connection:
        assert keep_within(db, connection, kept, max_bytes=10**9)


def test_neighbours_lead_through_the_list_under_its_filters(house_site: LiveApi) -> None:
    client = browser(house_site)
    listed = links(listing(client, criterion=REFUSAL))
    second = client.get(listed[1]).text
    assert [unescape(each) for each in re.findall(r'<a rel="\w+" href="([^"]+)"', second)] == [
        listed[0],
        listed[2],
    ]
    assert "criterion=refusal" in unescape(re.findall(r'href="(/pairs[^"]+)"', second)[0])


@pytest.mark.parametrize("name", ["", "x", "../../etc.0", "0" * 32 + ".0", "0" * 32 + ".x", "0" * 32, "é.1"])
def test_a_name_of_no_pair_is_not_found(house_site: LiveApi, name: str) -> None:
    answer = browser(house_site).get(address("/pair", id=name))
    assert answer.status_code == (404 if name else 422)


def test_a_token_for_one_model_sees_no_pair_of_another(house_site: LiveApi, house_database: Database) -> None:
    client = browser(house_site, "chat")
    assert client.get(address("/pairs", model=CODE, tier="w8a8")).status_code == 403
    wanted = Wanted(model=CODE, tier="w8a8", epoch=epoch_of(CODE, "w8a8"), evaluators=())
    foreign = list_pairs(house_database, wanted, page=1, size=1, now=NOW).pairs[0]
    refused = client.get(address("/pair", id=foreign.id, show="answers"))
    assert refused.status_code == 403
    assert read_access(house_database) == []


def test_it_is_all_there_in_chinese(house_site: LiveApi, house_database: Database) -> None:
    client = browser(house_site, "label")
    assert "两臂不一致的配对" in words_of(listing(client, lang="zh"))
    assert "访问日志" in words_of(shown(client, pair_of(house_database, way="harm"), lang="zh"))


def test_the_id_of_a_page_is_not_the_id_under_which_it_is_judged(house_database: Database) -> None:
    pair = pair_of(house_database, way="harm")
    assert item_id(pair.unit_id, pair.pair.item) not in pair.id
