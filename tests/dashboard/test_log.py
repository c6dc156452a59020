"""The decision log as a page: what it lists, whether it holds, what can be taken away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from sqlalchemy import update

from service.attestation.envelope import unseal
from service.attestation.statement import read_statement
from service.dashboard.log import A_PAGE
from service.dashboard.sentences import sentences
from service.report.words import Language
from service.store.access import tokens
from service.store.decided.decisions import append, head_of
from service.store.decided.interventions import Kind
from service.store.decided.policy_changes import ACTION
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from service.store.sql.schema import decisions
from tests.approval.live import MODEL, LiveApi
from tests.dashboard.visiting import dashboard_over, logged_in, words_of
from workers.watching import ACTIONS

KEY = Ed25519PrivateKey.generate()


@pytest.fixture
def site(sqlite_database: Database, captures: Captures) -> Iterator[LiveApi]:
    with dashboard_over(sqlite_database, captures, attest_key=KEY) as running:
        yield running


def note(
    api: LiveApi, action: str = "approve", *, model: str = MODEL, at: float = 1.8e9, **detail: object
) -> int:
    return append(
        api.db, at=at, actor="ann", action=action, model=model, tier="w8a8", detail=detail or {"reason": "r"}
    ).seq


def test_decisions_are_listed_the_latest_first_with_who_and_why(site: LiveApi) -> None:
    note(site, reason="weekly review")
    text = words_of(site.client().get("/log").text)
    assert "All 5 rows follow one from the other" in text
    assert "5 2027-01-15 08:00:00 UTC approved org/model w8a8 ann weekly review" in text
    assert "token made" in text
    assert f"Head, to be kept elsewhere: {head_of(site.db)}" in text


@pytest.mark.parametrize(
    ("asked", "shown", "hidden"),
    [
        ({"action": "revoke"}, "beta", "alpha"),
        ({"model": "another"}, "gamma", "beta"),
        ({"actor": "ann", "since": "2027-01-16"}, "beta", "alpha"),
        ({"until": "2027-01-15"}, "alpha", "beta"),
        ({"since": "2027-01-15", "until": "2027-01-15"}, "alpha", "beta"),
    ],
)
def test_it_is_narrowed_by_what_one_looks_for(
    asked: dict[str, str], shown: str, hidden: str, site: LiveApi
) -> None:
    note(site, reason="alpha")
    note(site, "revoke", reason="beta", at=1.8e9 + 86400)
    note(site, "reject", model="another", reason="gamma", at=1.8e9 + 2 * 86400)
    text = words_of(site.client().get("/log", params=asked).text)
    assert f" {shown} " in text
    assert f" {hidden} " not in text


def test_nothing_that_fits_says_so_and_nonsense_is_refused(site: LiveApi) -> None:
    assert "No decision is like that." in words_of(site.client().get("/log?actor=nobody").text)
    for query in ("since=yesterday", "below=x", "until=2026-02-30"):
        assert site.client().get(f"/log?{query}").status_code == 422


def test_it_goes_on_page_by_page(site: LiveApi) -> None:
    for number in range(A_PAGE):
        note(site, reason=f"number {number}.")
    client = site.client()
    first = client.get("/log").text
    assert "number 49." in first
    assert 'href="/log?below=5"' in first
    rest = client.get("/log?below=5").text
    assert "token made" in rest
    assert "number" not in words_of(rest).split("Decisions, the latest first")[-1]


def test_a_row_that_was_altered_is_told_on_the_page_and_nothing_is_signed(site: LiveApi) -> None:
    seq = note(site)
    client = site.client()
    assert "holds" in words_of(client.get("/log").text)
    with site.db.write() as connection:
        connection.execute(update(decisions).where(decisions.c.seq == seq).values(actor="mallory"))
    text = words_of(client.get("/log").text)
    assert f"The log does not hold at row {seq}:" in text
    assert "It was altered" in words_of(client.get(f"/log/row?seq={seq}").text)
    refused = client.get(f"/log/statement?seq={seq}")
    assert (refused.status_code, "nothing is signed" in words_of(refused.text)) == (409, True)


def test_a_statement_is_downloaded_and_can_be_checked_with_the_public_key(site: LiveApi) -> None:
    seq = note(site, reason="weekly review")
    client = logged_in(site, "read")
    assert "Download the statement" in words_of(client.get(f"/log/row?seq={seq}").text)
    answer = client.get(f"/log/statement?seq={seq}")
    assert answer.headers["content-disposition"] == (
        f'attachment; filename="org-model-w8a8-{seq}.intoto.json"'
    )
    public = load_pem_public_key(client.get("/log/key").content)
    attested = read_statement(unseal(answer.text, public))  # type: ignore[arg-type]
    assert (attested.row.seq, attested.row.actor, attested.head) == (seq, "ann", head_of(site.db))


def test_without_a_key_the_page_says_how_to_make_one(sqlite_database: Database, captures: Captures) -> None:
    with dashboard_over(sqlite_database, captures) as site:
        seq = note(site)
        assert "tiergate attest key FILE" in words_of(site.client().get(f"/log/row?seq={seq}").text)
        for path in (f"/log/statement?seq={seq}", "/log/key"):
            assert site.client().get(path).status_code == 404


def test_of_a_row_about_no_tier_nothing_is_stated(site: LiveApi) -> None:
    assert "this row is about none" in words_of(site.client().get("/log/row?seq=1").text)
    assert site.client().get("/log/statement?seq=1").status_code == 404
    assert site.client().get("/log/row?seq=99").status_code == 404
    assert site.client().get("/log/row").status_code == 422


def test_a_token_for_one_model_sees_that_models_rows_alone(site: LiveApi) -> None:
    mine, other = note(site, reason="mine"), note(site, model="another", reason="theirs")
    site.secrets["narrow"] = tokens.create(
        site.db, name="narrow", scopes=["read"], now=site.clock(), models=[MODEL]
    )
    client = logged_in(site, "narrow")
    text = words_of(client.get("/log").text)
    assert "mine" in text
    assert "theirs" not in text
    assert "token made" not in text
    assert client.get(f"/log/row?seq={mine}").status_code == 200
    for seq in (other, 1):
        assert client.get(f"/log/row?seq={seq}").status_code == 403
        assert client.get(f"/log/statement?seq={seq}").status_code == 403


def test_what_somebody_wrote_is_text(site: LiveApi) -> None:
    seq = note(site, reason="<img src=x onerror=alert(1)>\u202egpj", other={"<b>": ["\x1b[31m", "]]>"]})
    for path in ("/log", f"/log/row?seq={seq}"):
        page = site.client().get(path).text
        assert "<img" not in page
        assert "<b>" not in page
        assert "\u202e" not in page
        assert "\x1b" not in page


def test_what_was_decided_is_told_in_words_and_named_by_its_code_in_its_row(site: LiveApi) -> None:
    seq = note(site, "slo_lost_ended")
    other = note(site, "of_a_plug_in")
    english, chinese = (site.client().get(f"/log?lang={each}").text for each in ("en", "zh"))
    assert "SLO met again" in words_of(english)
    assert "SLO 恢复" in words_of(chinese)
    assert "of a plug in" in words_of(chinese)
    for code in ("slo_lost_ended", "token_made"):
        assert code not in words_of(english)
        assert f'<option value="{code}">' in english
    for number, code in ((seq, "slo_lost_ended"), (other, "of_a_plug_in")):
        assert f"<code>{code}</code>" in site.client().get(f"/log/row?seq={number}").text


def test_what_one_asked_for_stays_chosen_also_where_it_is_none_of_the_choices(site: LiveApi) -> None:
    page = site.client().get("/log", params={"model": "gone/model", "actor": 'a"b', "action": "later"}).text
    assert '<option value="gone/model" selected>gone/model</option>' in page
    assert '<option value="a&#34;b" selected>' in page
    assert '<option value="later" selected>later</option>' in page


def test_every_decision_that_is_logged_has_a_word() -> None:
    known = sentences(Language.EN).sentences
    logged = {*ACTIONS, *(kind.value for kind in Kind), ACTION, "approve", "revoke", "reject", "route"}
    logged |= {"skip_undone", "frozen_ended", "token_made", "token_rotated", "token_revoked"}
    assert sorted(name for name in logged if f"action.{name}" not in known) == []
