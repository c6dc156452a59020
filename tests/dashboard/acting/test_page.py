"""Deciding about a tier: told exactly, confirmed, done as the API does it, and by whom it may be done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import httpx
import pytest

from service.decision.ramp import Promotion
from service.fleet import Backend, Ladder, Route, Tier
from service.store.access import tokens
from service.store.decided.decisions import read, verify
from service.store.decided.routes import current_route, set_route
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import ENOUGH, MODEL, LiveApi, Upstream, ladder_over
from tests.dashboard.visiting import csrf_of, dashboard_over, logged_in, words_of

ACT = "/tier/act"


@pytest.fixture
def site(sqlite_database: Database, captures: Captures) -> Iterator[LiveApi]:
    with dashboard_over(sqlite_database, captures) as running:
        yield running


def told(client: httpx.Client, do: str, tier: str = "w8a8", **asked: str) -> httpx.Response:
    return client.get(ACT, params={"model": MODEL, "tier": tier, "do": do, **asked})


def fields_of(page: str) -> dict[str, str]:
    """The hidden fields of the form that confirms."""
    form = page[page.index('class="confirm"') :]
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))


def confirmed(client: httpx.Client, do: str, tier: str = "w8a8", **fields: str) -> httpx.Response:
    """The form of the page, filled in and sent."""
    return client.post(ACT, data={**fields_of(told(client, do, tier).text), **fields})


def weights(api: LiveApi) -> dict[str, int]:
    route = current_route(api.db, MODEL)
    return {"bf16": 100} if route is None else dict(route.weights)


def rows(api: LiveApi) -> list[tuple[str, str, str | None]]:
    return [(entry.action, entry.actor, entry.tier) for entry in read(api.db, MODEL)]


def test_the_page_says_what_an_approval_does_and_doing_it_does_that(site: LiveApi) -> None:
    site.accept("w8a8")
    client = logged_in(site, "approve")
    page = told(client, "approve")
    text = words_of(page.text)
    assert page.status_code == 200
    assert "Approve w8a8 of org/model?" in text
    assert "bf16 100 % 0 % w8a8 0 % 100 %" in text
    assert f"{site.upstream.url} up" in text
    assert "approve w8a8 · by test-approve promote w8a8 · by test-approve" in text
    assert rows(site) == [], "looking does nothing"
    answer = confirmed(client, "approve", reason="weekly review", expires_in="30d")
    assert answer.status_code == 303, words_of(answer.text)
    location = httpx.URL(answer.headers["location"])
    assert (location.path, dict(location.params)) == (
        "/tier",
        {"model": MODEL, "tier": "w8a8", "note": "act_approve"},
    )
    assert weights(site) == {"w8a8": 100}
    assert rows(site) == [("approve", "test-approve", "w8a8"), ("promote", "test-approve", "w8a8")]
    approval = read(site.db, MODEL)[0].detail
    assert approval["reason"] == "weekly review"
    assert approval["expires_at"] == approval["at"] + 30 * 86400
    assert approval["whence"]["peer"] == "127.0.0.1"
    assert verify(site.db) is None
    assert "Approved." in words_of(client.get(answer.headers["location"]).text)


def test_a_ramp_is_told_step_by_step(sqlite_database: Database, captures: Captures) -> None:
    with dashboard_over(sqlite_database, captures, promotion=Promotion(ramp=(5, 25, 100))) as site:
        site.accept("w8a8")
        text = words_of(told(logged_in(site, "approve"), "approve").text)
    assert "bf16 100 % 95 % w8a8 0 % 5 %" in text
    assert "step by step to 25 %, 100 %, each step after 1 h 0 min" in text


def test_a_verdict_that_is_not_accept_is_refused_with_its_reasons_and_what_to_do_instead(
    site: LiveApi,
) -> None:
    page = told(logged_in(site, "admin"), "approve")
    text = words_of(page.text)
    assert page.status_code == 409
    assert "the verdict on 'w8a8' is undecided, not accept" in text
    assert "structured_output" in text
    assert 'do=override"' in page.text.replace("&amp;", "&")


def test_an_override_needs_an_admin_and_a_reason(site: LiveApi) -> None:
    client = logged_in(site, "approve")
    page = told(client, "override").text
    assert "needs scope admin" in words_of(page)
    assert 'class="confirm"' not in page
    fields = {"csrf": csrf_of(page), "model": MODEL, "tier": "w8a8", "do": "override", "mark": "x"}
    assert client.post(ACT, data={**fields, "reason": "I may not"}).status_code == 403
    admin = logged_in(site, "admin")
    refused = confirmed(admin, "override", reason="  ")
    assert refused.status_code == 422
    assert "Nothing was done." in words_of(refused.text)
    assert rows(site) == []
    assert confirmed(admin, "override", reason="a known flaw").status_code == 303
    entry = read(site.db, MODEL)[0]
    assert (entry.detail["override"], entry.detail["reason"]) == (True, "a known flaw")


def test_who_reads_sees_the_page_and_may_not(site: LiveApi) -> None:
    site.accept("w8a8")
    for client in (logged_in(site, "read"), site.client()):
        page = told(client, "approve")
        assert page.status_code == 200
        assert "needs scope approve" in words_of(page.text)
        assert re.search(r"<button disabled>Approve</button>", page.text)
    sent = site.client().post(ACT, data={"do": "approve"})
    assert sent.headers["location"].startswith("/login?next=")
    assert rows(site) == []


def test_what_has_changed_since_it_was_shown_is_not_done_but_shown_again(site: LiveApi) -> None:
    site.accept("w8a8", "w4a16")
    client = logged_in(site, "approve")
    fields = fields_of(told(client, "approve").text)
    assert confirmed(client, "approve", "w4a16").status_code == 303, "somebody was faster"
    answer = client.post(ACT, data={**fields, "reason": "as shown"})
    text = words_of(answer.text)
    assert answer.status_code == 409
    assert "it would do something else by now than was shown" in text
    assert "as shown" in text, "what was written is not lost"
    assert weights(site) == {"w4a16": 100}
    fresh = fields_of(answer.text)
    assert fresh["mark"] != fields["mark"]
    assert client.post(ACT, data=fresh).status_code == 303
    assert weights(site) == {"w8a8": 100}


def test_a_reason_that_is_asked_for_again_is_still_what_was_written(site: LiveApi) -> None:
    """Line ends, joined signs and marks of direction stand in its field as they are, and not spelled out."""
    written = (
        "first line\nsecond, \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645, \u2067abc\u2069 </textarea><b>"
    )
    site.accept("w8a8")
    client = logged_in(site, "approve")
    refused = confirmed(client, "approve", reason=written, expires_in="soon\u200b")
    assert refused.status_code == 422
    again = re.search(r'<textarea id="reason"[^>]*>(.*?)</textarea>', refused.text, re.DOTALL)
    assert again is not None
    assert unescape(again[1]) == written
    assert 'value="soon\u200b"' in refused.text
    assert "<b>" not in refused.text
    assert client.post(ACT, data={**fields_of(refused.text), "reason": unescape(again[1])}).status_code == 303
    assert read(site.db, MODEL)[0].detail["reason"] == written


@pytest.mark.parametrize(
    "name", ["w8\u200ba8", "\u202ew8a8", "caf\u00e9", "cafe\u0301", "\u06a9\u200c\u0645", "a&b\"<'>"]
)
def test_a_tier_is_decided_about_by_its_own_name_however_it_is_spelled(
    sqlite_database: Database, captures: Captures, name: str
) -> None:
    backend = (Backend(url="http://127.0.0.1:9"),)
    names = ("bf16", "cafe", name)
    ladder = Ladder(
        model=MODEL,
        tiers=tuple(Tier(name=each, model="m", backends=backend, shadow=backend) for each in names),
    )
    with dashboard_over(sqlite_database, captures, ladder=ladder) as site:
        admin = logged_in(site, "admin")
        page = told(admin, "reject", name)
        fields = {key: unescape(text) for key, text in fields_of(page.text).items()}
        answer = admin.post(ACT, data={**fields, "reason": "no"})
        assert answer.status_code == 303, words_of(answer.text)
        assert dict(httpx.URL(answer.headers["location"]).params)["tier"] == name
        assert rows(site) == [("reject", "test-admin", name)]
        assert admin.get(answer.headers["location"]).status_code == 200


def test_a_form_that_comes_twice_says_that_it_is_so_already(site: LiveApi) -> None:
    site.accept("w8a8")
    client = logged_in(site, "approve")
    fields = fields_of(told(client, "approve").text)
    assert client.post(ACT, data=fields).status_code == 303
    again = client.post(ACT, data=fields)
    text = words_of(again.text)
    assert again.status_code == 409
    assert text.count("Everything is so already") == 1
    assert "Nothing was done" not in text
    assert [action for action, _, _ in rows(site)] == ["approve", "promote"]


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"])
def test_a_method_is_what_it_is(site: LiveApi, header: str) -> None:
    site.accept("w8a8")
    client = logged_in(site, "approve")
    fields = fields_of(told(client, "approve").text)
    asked = client.get(ACT, params={**fields, "_method": "POST"}, headers={header: "POST"})
    assert asked.status_code == 200
    assert rows(site) == []


def test_evidence_that_came_between_looking_and_confirming_is_decided_on(site: LiveApi) -> None:
    site.accept("w8a8")
    client = logged_in(site, "approve")
    fields = fields_of(told(client, "approve").text)
    site.record("w8a8", harm=60)
    site.clock.at += 2  # a standing is kept for a second
    answer = client.post(ACT, data=fields)
    assert answer.status_code == 409
    assert "the verdict on 'w8a8' is reject, not accept" in words_of(answer.text)
    assert 'class="confirm"' not in answer.text
    assert weights(site) == {"bf16": 100}


def test_a_token_that_is_revoked_or_worth_less_while_its_page_is_open_does_nothing(site: LiveApi) -> None:
    site.accept("w8a8")
    client = logged_in(site, "approve")
    fields = fields_of(told(client, "approve").text)
    tokens.revoke(site.db, "test-approve", now=site.clock())
    sent = client.post(ACT, data=fields)
    assert (sent.status_code, sent.headers["location"].partition("?")[0]) == (303, "/login")
    client.post("/login", data={"token": site.secrets["read"]})
    assert client.post(ACT, data=fields).status_code == 403, "the form of another session"
    fresh = {**fields, "csrf": csrf_of(client.get("/").text)}
    assert client.post(ACT, data=fresh).status_code == 403, "it takes more than reading"
    assert rows(site) == []


def test_a_form_sent_twice_rolls_back_once(site: LiveApi) -> None:
    site.accept("w8a8", "w4a16")
    client = logged_in(site, "approve")
    for tier in ("w8a8", "w4a16"):
        assert confirmed(client, "approve", tier).status_code == 303
    page = told(client, "roll_back", "w4a16")
    text = words_of(page.text)
    assert "Roll org/model back from w4a16?" in text
    assert "w8a8 0 % 100 % w4a16 100 % 0 %" in text
    assert "to bf16 instead" in text
    fields = fields_of(page.text)
    assert client.post(ACT, data=fields).status_code == 303
    assert weights(site) == {"w8a8": 100}
    assert client.post(ACT, data=fields).status_code == 409
    assert weights(site) == {"w8a8": 100}


def test_a_rollback_goes_where_it_was_sent(site: LiveApi) -> None:
    site.accept("w8a8", "w4a16")
    client = logged_in(site, "approve")
    for tier in ("w8a8", "w4a16"):
        assert confirmed(client, "approve", tier).status_code == 303
    page = told(client, "roll_back", "w4a16", to="bf16")
    assert client.post(ACT, data=fields_of(page.text)).status_code == 303
    assert weights(site) == {"bf16": 100}


def test_a_revocation_and_a_rejection_hand_the_clients_down(site: LiveApi) -> None:
    site.accept("w8a8", "w4a16")
    client = logged_in(site, "approve")
    for tier in ("w8a8", "w4a16"):
        assert confirmed(client, "approve", tier).status_code == 303
    assert confirmed(client, "revoke", "w4a16").status_code == 303
    assert weights(site) == {"w8a8": 100}
    assert confirmed(client, "reject", reason="rude").status_code == 303
    assert weights(site) == {"bf16": 100}
    assert [action for action, _, _ in rows(site)][-4:] == ["revoke", "roll_back", "reject", "roll_back"]


def test_without_room_somebody_has_to_insist(sqlite_database: Database, captures: Captures) -> None:
    low, high = Upstream(), Upstream()
    try:
        with dashboard_over(sqlite_database, captures, ladder=ladder_over(low, high)) as site:
            site.accept("w8a8")
            client = logged_in(site, "approve")
            assert confirmed(client, "approve").status_code == 303
            low.statuses = {"/health": 503}
            page = told(client, "roll_back")
            assert "No room: no backend of 'bf16' is up" in words_of(page.text)
            assert client.post(ACT, data=fields_of(page.text)).status_code == 409
            assert weights(site) == {"w8a8": 100}
            assert client.post(ACT, data={**fields_of(page.text), "force": "yes"}).status_code == 303
            assert weights(site) == {"bf16": 100}
    finally:
        low.stop()
        high.stop()


def test_a_skip_tells_which_verdicts_change_and_is_undone(site: LiveApi) -> None:
    site.record("w8a8", harm=60)
    site.record("w4a16", clean=3 * ENOUGH)
    approving = logged_in(site, "approve")
    assert "needs scope admin" in words_of(told(approving, "skip").text)
    admin = logged_in(site, "admin")
    text = words_of(told(admin, "skip").text)
    assert "w4a16 undecided accept 0.0304 0.0152" in text, text[400:1400]
    assert confirmed(admin, "skip", reason="its kernel").status_code == 303
    assert "w4a16 accept undecided 0.0152 0.0304" in words_of(told(admin, "unskip").text)
    assert confirmed(admin, "unskip").status_code == 303
    assert [action for action, _, _ in rows(site)] == ["skip", "skip_undone"]
    refused = told(admin, "skip", "w4a16")
    assert (refused.status_code, "no tier is above" in words_of(refused.text)) == (409, True)


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"do": "explode"}, 422),
        ({"do": ""}, 422),
        ({"tier": ""}, 422),
        ({"tier": "w8a9"}, 404),
        ({"model": "nobody's"}, 404),
        ({"tier": "bf16"}, 409),
    ],
)
def test_what_cannot_be_asked_is_a_page_that_says_so(
    asked: dict[str, str], status: int, site: LiveApi
) -> None:
    given: dict[str, Any] = {"model": MODEL, "tier": "w8a8", "do": "approve", **asked}
    answer = site.client().get(ACT, params=given)
    assert answer.status_code == status
    assert "<h1>" in answer.text


def test_a_token_for_another_model_may_not(sqlite_database: Database, captures: Captures) -> None:
    with dashboard_over(sqlite_database, captures) as site:
        site.secrets["narrow"] = tokens.create(
            sqlite_database, name="narrow", scopes=["admin"], now=site.clock(), models=["another"]
        )
        client = logged_in(site, "narrow")
        assert told(client, "reject").status_code == 403
        fields = {"model": MODEL, "tier": "w8a8", "do": "reject", "mark": "x", "reason": "no"}
        csrf = csrf_of(client.get("/").text)
        assert client.post(ACT, data={**fields, "csrf": csrf}).status_code == 403
        assert rows(site) == []


def test_names_and_reasons_are_text_and_never_markup(sqlite_database: Database, captures: Captures) -> None:
    hostile = "<script>alert(1)</script>"
    backend = (Backend(url="http://127.0.0.1:9"),)
    names = ("bf16", hostile)
    ladder = Ladder(
        model=MODEL,
        tiers=tuple(Tier(name=name, model="m", backends=backend, shadow=backend) for name in names),
    )
    with dashboard_over(sqlite_database, captures, ladder=ladder) as site:
        page = told(logged_in(site, "admin"), "reject", hostile)
    assert page.status_code == 200
    assert hostile not in page.text
    assert "unsafe" not in page.headers["content-security-policy"]


def test_a_route_to_a_tier_that_is_not_configured_any_more_is_cleared(site: LiveApi) -> None:
    set_route(site.db, Route(model=MODEL, weights={"w2": 60, "bf16": 40}), at=site.clock(), actor="somebody")
    client = logged_in(site, "approve")
    overview = client.get("/")
    assert "w2" in words_of(overview.text)
    assert "do=roll_back" in overview.text
    page = told(client, "roll_back", "w2")
    text = words_of(page.text)
    assert page.status_code == 200, text
    assert "names w2, which is not configured any more: bf16 serves alone" in text
    assert "roll_back bf16 · by test-approve" in text
    assert 'href="/tier?model=org%2Fmodel&amp;tier=bf16"' in page.text
    answer = confirmed(client, "roll_back", "w2", reason="removed")
    assert answer.status_code == 303, words_of(answer.text)
    assert dict(httpx.URL(answer.headers["location"]).params)["tier"] == "bf16"
    assert client.get(answer.headers["location"]).status_code == 200
    assert weights(site) == {"bf16": 100}
    assert read(site.db, MODEL)[-1].detail["because"] == "no longer configured: w2"
    assert told(client, "roll_back", "w2").status_code == 404
    assert "do=roll_back" not in client.get("/").text


def test_other_decisions_about_such_a_tier_are_refused(site: LiveApi) -> None:
    set_route(site.db, Route(model=MODEL, weights={"w2": 100}), at=site.clock(), actor="somebody")
    client = logged_in(site, "admin")
    for do in ("approve", "override", "reject", "revoke", "skip"):
        assert told(client, do, "w2").status_code == 404, do
    elsewhere = told(client, "roll_back", "w2", to="w8a8")
    assert elsewhere.status_code == 409
    assert "is above 'bf16', which serves" in words_of(elsewhere.text)
