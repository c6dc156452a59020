"""Judging pairs on a page: blind, once each, taken back if wrong, exported; never without the scope."""

from __future__ import annotations

import csv
import json
import re
from html import unescape

import httpx
import pytest
from sqlalchemy import func, select

from evaluators.rubrics import REFUSAL, RUBRICS
from service.approval.config import Adjudicating
from service.dashboard.adjudicate import KEYS
from service.dashboard.sentences import sentences
from service.dashboard.visit import address
from service.report.words import Language
from service.store.labels.access_log import read_access
from service.store.redis.captures import Captures
from service.store.scored.pair_listing import ListedPair, Wanted, list_pairs
from service.store.sql.adjudication_tables import adjudication_labels
from service.store.sql.database import Database
from tests.adjudicating import KEYRING, Queueing
from tests.approval.live import LiveApi
from tests.dashboard.house import CHAT, CODE, EVALUATORS, NOW, STRUCTURED, browser, epoch_of, house_api
from tests.dashboard.visiting import csrf_of, dashboard_over, logged_in, words_of

ITEM = re.compile(r'name="item" value="([0-9a-f]{32})"')


def page_of(client: httpx.Client, **query: object) -> str:
    answer = client.get(address("/adjudicate", **query))
    assert answer.status_code == 200, answer.text
    return answer.text


def item_of(page: str) -> str:
    """The pair that is to be judged."""
    form = page[page.index('id="say"') :]
    return ITEM.search(form)[1]  # type: ignore[index]


def say(client: httpx.Client, page: str, said: str, **fields: str) -> httpx.Response:
    told = {"csrf": csrf_of(page), "item": item_of(page), "said": said, **fields}
    return client.post("/adjudicate", data=told)


def undo(client: httpx.Client, page: str, item: str) -> httpx.Response:
    return client.post("/adjudicate/undo", data={"csrf": csrf_of(page), "item": item})


def labels(db: Database) -> int:
    with db.read() as connection:
        return connection.execute(select(func.count()).select_from(adjudication_labels)).scalar_one()


def test_pairs_come_one_after_the_other_and_never_tell_their_tier(house_site: LiveApi) -> None:
    client = browser(house_site, "label")
    seen = []
    for said in ("a", "both", "skip"):
        page = page_of(client)
        assert not re.search(r"w4a16|w8a8|bf16|candidate failed|not_json|expected JSON", words_of(page))
        seen.append(item_of(page))
        answer = say(client, page, said)
        assert answer.status_code == 303
        assert answer.headers["location"] == "/adjudicate?note=labelled"
    assert seen == sorted(set(seen))
    assert "You said last: Cannot be told" in words_of(page_of(client))
    told = [
        (each.actor, each.action, each.detail)
        for each in read_access(house_site.db)
        if each.action == "label"
    ]
    assert told == [("test-label", "label", f"test-label: {said}") for said in ("a", "both", "skip")]


def test_the_page_says_how_many_are_left(house_site: LiveApi) -> None:
    client = browser(house_site, "label")
    left = re.compile(r"Left for you: (\d+)")
    page = page_of(client)
    before = int(left.search(words_of(page))[1])  # type: ignore[index]
    say(client, page, "b")
    assert int(left.search(words_of(page_of(client)))[1]) == before - 1  # type: ignore[index]


def test_every_label_has_a_button_and_a_key_of_its_own(house_site: LiveApi) -> None:
    page = page_of(browser(house_site, "label"))
    assert set(re.findall(r'name="said" value="(\w+)"', page)) == set(KEYS)
    assert len(set(KEYS.values())) == len(KEYS)
    assert "u" not in KEYS.values()
    assert 'src="/assets/adjudicate.js' in page


def test_the_last_label_is_taken_back_and_its_pair_shown_again(house_site: LiveApi) -> None:
    client = browser(house_site, "label")
    first = page_of(client)
    say(client, first, "a")
    second = page_of(client)
    say(client, second, "b")
    answer = undo(client, page_of(client), item_of(second))
    assert answer.status_code == 303
    again = client.get(answer.headers["location"]).text
    assert item_of(again) == item_of(second)
    assert "Taken back" in words_of(again)
    assert labels(house_site.db) == 1
    assert "You said last: Only a" in words_of(again)


def test_only_the_last_label_can_be_taken_back(house_site: LiveApi) -> None:
    client = browser(house_site, "label")
    first = page_of(client)
    say(client, first, "a")
    second = page_of(client)
    say(client, second, "b")
    refused = undo(client, second, item_of(first))
    assert refused.status_code == 409
    assert "only the last label can be taken back" in words_of(refused.text)
    assert labels(house_site.db) == 2
    other = browser(house_site, "approve")
    assert undo(other, page_of(other), item_of(second)).status_code == 409, "it is somebody else's"
    assert labels(house_site.db) == 2


def test_a_form_sent_twice_says_it_once_and_another_word_is_kept_out(house_site: LiveApi) -> None:
    client = browser(house_site, "label")
    page = page_of(client)
    assert say(client, page, "a").headers["location"].endswith("note=labelled")
    assert say(client, page, "a").headers["location"].endswith("note=labelled")
    assert say(client, page, "b").headers["location"].endswith("note=label_kept")
    assert labels(house_site.db) == 1


@pytest.mark.parametrize(("item", "said"), [("x", "a"), ("0" * 32, "maybe"), ("", "a")])
def test_a_form_that_no_page_of_ours_made_is_refused(house_site: LiveApi, item: str, said: str) -> None:
    client = browser(house_site, "label")
    page = page_of(client)
    answer = client.post("/adjudicate", data={"csrf": csrf_of(page), "item": item, "said": said})
    assert answer.status_code == 422
    assert labels(house_site.db) == 0


def test_a_pair_that_is_not_in_the_queue_is_said_to_be_unknown(house_site: LiveApi) -> None:
    client = browser(house_site, "label")
    page = page_of(client)
    answer = say(client, page, "a", item="0" * 32)
    assert answer.headers["location"].endswith("note=label_unknown")


def test_without_the_forms_secret_nothing_is_said(house_site: LiveApi) -> None:
    client = browser(house_site, "label")
    assert say(client, page_of(client), "a", csrf="0" * 64).status_code == 403
    assert labels(house_site.db) == 0


def test_who_has_looked_at_a_pair_does_not_judge_it(house_site: LiveApi) -> None:
    client, db = browser(house_site, "label"), house_site.db
    page = page_of(client)
    item = item_of(page)
    pair = next(
        each
        for model, tiers in {CHAT: ("w8a8", "w4a16"), CODE: ("w8a8",)}.items()
        for tier in tiers
        for each in list_pairs(
            db,
            Wanted(model=model, tier=tier, epoch=epoch_of(model, tier), evaluators=EVALUATORS),
            page=1,
            size=500,
            now=NOW,
        ).pairs
        if each.item_id == item
    )
    seen = client.get(address("/pair", id=pair.id, show="answers"))
    assert seen.status_code == 200
    assert item_of(page_of(client)) != item
    assert say(client, page, "a").headers["location"].endswith("note=label_seen")
    assert labels(db) == 0
    assert item_of(page_of(browser(house_site, "admin"))) == item, "somebody else judges it"


def test_readers_see_the_state_and_no_text(house_site: LiveApi) -> None:
    for reader in (browser(house_site), browser(house_site, "read")):
        page = page_of(reader)
        assert "What is queued and labelled" in words_of(page)
        assert "w4a16" in words_of(page)
        assert 'class="captured"' not in page
        assert "needs scope label" in words_of(page)
    assert read_access(house_site.db) == []
    refused = browser(house_site, "read")
    form = {"csrf": csrf_of(refused.get("/adjudicate").text), "item": "0" * 32, "said": "a"}
    assert refused.post("/adjudicate", data=form).status_code == 403


def test_a_page_that_asks_for_itself_again_is_given_no_pair(house_site: LiveApi) -> None:
    client = browser(house_site, "label")
    answer = client.get("/adjudicate", headers={"X-Tiergate-Live": "1"})
    assert 'class="captured"' not in answer.text
    assert read_access(house_site.db) == []


def test_the_state_tells_labels_agreement_and_what_they_correct(house_site: LiveApi) -> None:
    for scope, said in (("label", "a"), ("admin", "b")):
        client = browser(house_site, scope)
        say(client, page_of(client), said)
    text = words_of(page_of(browser(house_site, "label"), state=1))
    assert "Difference by labels" in text
    assert re.search(r"w4a16 \w+ \d+ \d+ \d+ \d+", text)


def test_the_queue_is_narrowed_to_a_model_and_an_evaluator_and_stays_so(house_site: LiveApi) -> None:
    client = browser(house_site, "label")
    page = page_of(client, model=CHAT, evaluator=STRUCTURED)
    assert f"{CHAT} · {STRUCTURED}" in words_of(page)
    answer = say(client, page, "a", model=CHAT, evaluator=STRUCTURED)
    assert answer.headers["location"] == address(
        "/adjudicate", model=CHAT, evaluator=STRUCTURED, note="labelled"
    )
    assert client.get(address("/adjudicate", model="none")).status_code == 404
    assert client.get(address("/adjudicate", evaluator="none")).status_code == 404


def test_a_token_for_one_model_is_given_pairs_of_that_model_alone(house_site: LiveApi) -> None:
    client = browser(house_site, "chat")
    known = {each.item_id for each in _chat_items(house_site.db)}
    exported = [
        json.loads(line) for line in client.get(address("/adjudicate", download="items")).text.splitlines()
    ]
    assert {each["model"] for each in exported} == {CHAT}
    assert {each["item"] for each in exported} <= known
    assert client.get(address("/adjudicate", model=CODE)).status_code == 403


def _chat_items(db: Database) -> list[ListedPair]:
    return [
        each
        for tier in ("w8a8", "w4a16", "fp8-kv")
        for each in list_pairs(
            db,
            Wanted(model=CHAT, tier=tier, epoch=epoch_of(CHAT, tier), evaluators=EVALUATORS),
            page=1,
            size=500,
            now=NOW,
        ).pairs
    ]


def test_the_export_is_the_file_of_the_command(house_site: LiveApi) -> None:
    client = browser(house_site, "label")
    page = page_of(client)
    say(client, page, "a")
    answer = client.get(address("/adjudicate", download="items"))
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert answer.headers["content-disposition"] == 'attachment; filename="pairs.jsonl"'
    assert answer.headers["cache-control"] == "no-store"
    items = (
        house_site.client("label").get("/api/v1/adjudication/items", params={"todo": True}).json()["items"]
    )
    assert lines[: len(items)] == [{**each, "label": ""} for each in items]
    assert item_of(page) not in {each["item"] for each in lines}
    assert len({each["item"] for each in lines}) == len(lines) > 20
    seen = {each.item_id for each in read_access(house_site.db, limit=1000) if each.action == "export"}
    assert seen >= {each["item"] for each in lines}


def test_nothing_that_is_given_to_judge_is_the_name_of_a_pair_in_the_list(house_site: LiveApi) -> None:
    """When its text goes, to the second, stands in the list as well, beside who failed."""
    client = browser(house_site, "label")
    lines = client.get(address("/adjudicate", download="items")).text.splitlines()
    given = {json.loads(line)["expires_at"] for line in lines}
    named = client.get(address("/pairs", model=CHAT, tier="w4a16", download="pairs")).text
    assert given
    assert all(each.endswith("T00:00:00Z") for each in given), given
    told = {row["text_kept_until"] for row in csv.DictReader(named.splitlines())}
    assert told - {""}
    assert not given & told
    page = page_of(client)
    assert not any(each in page for each in told - {""})


def test_where_no_key_is_known_the_page_says_what_to_do(house_database: Database, captures: Captures) -> None:
    with house_api(house_database, captures, adjudication=None) as api:
        text = words_of(page_of(browser(api, "read")))
        assert "mirror.capture.key_file" in text
        refused = browser(api, "label").get("/adjudicate")
        assert refused.status_code == 409
        assert "no key to open captured texts" in words_of(refused.text)


def test_when_all_is_labelled_it_says_so(sqlite_database: Database, captures: Captures) -> None:
    adjudicating = Adjudicating(keyring=KEYRING, rubrics=RUBRICS, queued=("refusal",))
    with dashboard_over(sqlite_database, captures, adjudication=adjudicating) as api:
        queueing = Queueing(db=api.db, model="org/model", epoch="epoch-w8a8", at=api.clock())
        queueing.add("pf")
        client = logged_in(api, "label")
        page = page_of(client)
        assert REFUSAL.question in words_of(page)
        assert "这个回答是否顺应了请求" in words_of(page_of(client, lang="zh"))
        say(client, page, "neither")
        text = words_of(page_of(client, lang="en"))
        assert "Nothing is left for you" in text
        assert "Left for you: 0" in text
        answer = client.get(address("/adjudicate", download="items"))
        assert answer.headers["location"].endswith("note=nothing_to_export")


def test_hostile_texts_are_inert_here_too(sqlite_database: Database, captures: Captures) -> None:
    hostile = "<script>alert(1)</script>\x1b[31m\u202e\x00"
    adjudicating = Adjudicating(keyring=KEYRING, rubrics=RUBRICS, queued=("refusal",))
    with dashboard_over(sqlite_database, captures, adjudication=adjudicating) as api:
        queueing = Queueing(db=api.db, model="org/model", epoch="epoch-w8a8", at=api.clock())
        queueing.add("pf", candidate=hostile)
        page = page_of(logged_in(api, "label"))
    assert "<script>alert" not in page
    assert "<script>alert(1)</script>" in unescape(re.sub(r"<[^>]*>", "", page))
    for unseen in "\x1b\u202e\x00":
        assert unseen not in page
        assert f"U+{ord(unseen):04X}" in page


def test_rubrics_on_the_page_are_the_evaluators_own_words() -> None:
    say_it = sentences(Language.EN)
    for name, rubric in RUBRICS.items():
        told = [say_it(f"rubric.{name}_{part}") for part in ("question", "passes", "fails")]
        assert told == [rubric.question, rubric.passes, rubric.fails]
