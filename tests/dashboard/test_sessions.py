"""Signed cookies: whose they are, how long, and what else they are not good for."""

from __future__ import annotations

from dataclasses import replace

import jwt
import pytest

from service.approval.access import Caller, Head, Scope
from service.approval.errors import Problem
from service.dashboard.sessions import (
    IDLE_SECONDS,
    LONGEST_SECONDS,
    MOST_KEPT,
    NAME,
    RENEWED_SECONDS,
    SECURE_NAME,
    Claimed,
    Sessions,
)
from service.store.access import tokens
from service.store.sql.database import Database
from tests.approval.live import Clock

CLAIMED = Claimed(
    name="https://sso.example anna", scope=Scope.LABEL, models=frozenset({"m"}), until=1_700_003_600.0
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(sqlite_database: Database, clock: Clock) -> Sessions:
    return Sessions(sqlite_database, clock, secret=b"of the capture keys")


def of(cookie: str, name: str = NAME) -> Head:
    return Head(method="GET", peer="192.0.2.1", headers=[("cookie", f"theme=dark; {name}={cookie}")])


def token_id(db: Database, name: str = "anna", **told: object) -> str:
    return tokens.id_of(tokens.create(db, name=name, scopes=["approve"], now=1_700_000_000.0, **told))  # type: ignore[arg-type]


def test_a_cookie_is_worth_what_its_token_is_worth_at_each_visit(
    sessions: Sessions, sqlite_database: Database, clock: Clock
) -> None:
    cookie = sessions.cookie(sessions.begin(token_id=token_id(sqlite_database, models=["m"])))
    assert sessions.caller(of(cookie)) == Caller(
        name="anna", scope=Scope.APPROVE, models=frozenset({"m"}), by_session=True
    )
    tokens.revoke(sqlite_database, "anna", now=clock())
    assert sessions.caller(of(cookie)) is None


def test_it_names_the_token_and_holds_no_secret(sessions: Sessions, sqlite_database: Database) -> None:
    secret = tokens.create(sqlite_database, name="anna", scopes=["read"], now=1.0)
    cookie = sessions.cookie(sessions.begin(token_id=tokens.id_of(secret)))
    claims = jwt.decode(cookie, options={"verify_signature": False})
    assert claims["tid"] == tokens.id_of(secret)
    assert secret.split("_", 2)[2] not in str(claims)


def test_one_that_an_issuer_vouches_for_ends_with_what_it_vouched(sessions: Sessions, clock: Clock) -> None:
    cookie = sessions.cookie(sessions.begin(claimed=CLAIMED))
    assert sessions.caller(of(cookie)) == Caller(
        name=CLAIMED.name, scope=Scope.LABEL, models=frozenset({"m"}), by_session=True
    )
    clock.at = CLAIMED.until
    assert sessions.caller(of(cookie)) is None


def test_it_ends_when_nobody_comes_and_in_any_case_after_twelve_hours(
    sessions: Sessions, sqlite_database: Database, clock: Clock
) -> None:
    session = sessions.begin(token_id=token_id(sqlite_database))
    cookie = sessions.cookie(session)
    clock.at += IDLE_SECONDS - 1
    assert sessions.caller(of(cookie)) is not None
    clock.at += 1
    assert sessions.caller(of(cookie)) is None
    clock.at = session.began + LONGEST_SECONDS - 1
    busy = replace(session, seen=clock())
    assert sessions.caller(of(sessions.cookie(busy))) is not None
    clock.at += 1
    assert sessions.caller(of(sessions.cookie(busy))) is None


def test_a_visit_renews_it_now_and_then(sessions: Sessions, clock: Clock) -> None:
    session = sessions.begin(claimed=CLAIMED)
    clock.at += RENEWED_SECONDS
    assert sessions.renewed(session) is None
    clock.at += 1
    renewed = sessions.renewed(session)
    assert renewed is not None
    assert (renewed.id, renewed.began, renewed.seen) == (session.id, session.began, clock())


def test_one_that_was_ended_is_worth_nothing_to_whoever_has_a_copy(sessions: Sessions) -> None:
    session = sessions.begin(claimed=CLAIMED)
    sessions.end(session)
    assert sessions.caller(of(sessions.cookie(session))) is None


def test_every_process_over_the_database_knows_it_and_none_without_the_other_secret(
    sessions: Sessions, sqlite_database: Database, clock: Clock
) -> None:
    cookie = sessions.cookie(sessions.begin(claimed=CLAIMED))
    assert Sessions(sqlite_database, clock, secret=b"of the capture keys").caller(of(cookie)) is not None
    assert Sessions(sqlite_database, clock).caller(of(cookie)) is None


def test_what_was_signed_for_another_purpose_or_altered_is_no_session(sessions: Sessions) -> None:
    session = sessions.begin(claimed=CLAIMED)
    claims = jwt.decode(sessions.cookie(session), options={"verify_signature": False})
    unsigned = jwt.encode(claims, None, algorithm="none")
    forged = jwt.encode(claims, b"x" * 32, algorithm="HS256")
    body, _, signature = sessions.cookie(session).rpartition(".")
    for cookie in (sessions.signed(claims, "state"), unsigned, forged, f"{body}x.{signature}", "", "a.b.c"):
        assert sessions.caller(of(cookie)) is None, cookie


def test_what_is_signed_for_a_purpose_is_opened_for_that_alone(sessions: Sessions) -> None:
    told = sessions.signed({"nonce": "n"}, "state")
    assert sessions.opened(told, "state") == {"nonce": "n"}
    assert sessions.opened(told, "cookie") is None


@pytest.mark.parametrize(
    ("secure", "own", "foreign"), [(True, SECURE_NAME, NAME), (False, NAME, SECURE_NAME)]
)
def test_by_https_a_cookie_that_anybody_on_the_way_may_set_is_none_of_ours(
    sessions: Sessions, sqlite_database: Database, clock: Clock, secure: bool, own: str, foreign: str
) -> None:
    here = Sessions(sqlite_database, clock, secret=b"of the capture keys", secure=secure)
    mine = sessions.begin(claimed=CLAIMED)
    of_mallory = sessions.cookie(sessions.begin(claimed=replace(CLAIMED, name="mallory")))
    assert here.shown(f"{foreign}={of_mallory}") is None
    found = here.shown(f"{foreign}={of_mallory}; {own}={sessions.cookie(mine)}")
    assert found is not None
    assert found.id == mine.id


def test_forms_of_two_sessions_differ(sessions: Sessions) -> None:
    one, other = sessions.begin(claimed=CLAIMED), sessions.begin(claimed=CLAIMED)
    assert sessions.csrf(one) == sessions.csrf(one) != sessions.csrf(other)


def test_one_that_no_browser_would_keep_is_refused_and_not_lost(sessions: Sessions) -> None:
    """A cookie that is too long is dropped without a word: whoever logged in would be asked to again."""
    many = frozenset(f"organisation/model-{number}-instruct" for number in range(100))
    with pytest.raises(Problem, match="more models") as refused:
        sessions.begin(claimed=replace(CLAIMED, models=many))
    assert refused.value.code == "login_refused"
    fits = sessions.begin(claimed=replace(CLAIMED, models=frozenset(sorted(many)[:50])))
    assert len(sessions.cookie(fits)) <= MOST_KEPT


def test_a_session_is_of_one_kind(sessions: Sessions) -> None:
    with pytest.raises(ValueError, match="of a token or of somebody"):
        sessions.begin()
    with pytest.raises(ValueError, match="of a token or of somebody"):
        sessions.begin(token_id="a", claimed=CLAIMED)
