"""Wrong tokens from one address are looked up a few times a minute, right ones always."""

from __future__ import annotations

import pytest

from service.approval.errors import Problem
from service.approval.failures import MOST_FAILURES, MOST_REMEMBERED, WINDOW_SECONDS, Failures
from tests.approval.live import MODEL, Clock, LiveApi

LADDER = f"/api/v1/models/{MODEL}/ladder"


def test_after_some_wrong_tokens_the_next_is_told_when_to_come_back(sqlite_api: LiveApi) -> None:
    right = sqlite_api.client("read")
    assert right.get(LADDER).status_code == 200
    wrong = sqlite_api.client(Authorization="Bearer tg_no_such")
    assert [wrong.get(LADDER).status_code for _ in range(MOST_FAILURES)] == [401] * MOST_FAILURES
    answer = wrong.get(LADDER)
    assert (answer.status_code, answer.json()["code"]) == (429, "too_many_failures")
    assert answer.headers["retry-after"] == "61"
    # One that was right before shares the address, as behind a reverse proxy, and is not held up.
    assert right.get(LADDER).status_code == 200
    assert sqlite_api.client("approve").get(LADDER).status_code == 429
    sqlite_api.clock.at += WINDOW_SECONDS
    assert sqlite_api.client("approve").get(LADDER).status_code == 200
    assert wrong.get(LADDER).status_code == 401


def test_a_hook_that_shows_its_token_in_the_body_is_counted_as_well(sqlite_api: LiveApi) -> None:
    stranger, path = sqlite_api.client(), f"/gates/flagger/models/{MODEL}/tiers/w8a8/event"
    token = {"hook": "event", "token": "tg_no_such"}
    body = {"name": "canary", "namespace": "serving", "metadata": token}
    assert [stranger.post(path, json=body).status_code for _ in range(MOST_FAILURES)] == [401] * MOST_FAILURES
    assert stranger.post(path, json=body).status_code == 429
    assert sqlite_api.client(Authorization="Bearer tg_no_such").get(LADDER).status_code == 429


def fail(failures: Failures, peer: str, times: int = MOST_FAILURES) -> None:
    for number in range(times):
        failures.note(peer, f"wrong {number}", right=False)


def test_what_a_log_in_elsewhere_brought_in_vain_counts_and_a_right_token_of_no_worth_does_not() -> None:
    def looked_up(failures: Failures, code: str) -> None:
        def find(secret: str) -> None:
            raise Problem(403, code, "no")

        for number in range(MOST_FAILURES):
            with pytest.raises(Problem, match="no"):
                failures.looked_up("a", f"secret {number}", find)

    failures = Failures(Clock())
    looked_up(failures, "insufficient_scope")
    failures.check("a", "s")
    looked_up(failures, "login_refused")
    with pytest.raises(Problem) as held:
        failures.check("a", "s")
    assert held.value.status == 429


def test_addresses_are_counted_apart() -> None:
    failures = Failures(Clock())
    fail(failures, "a")
    failures.check("b", "s")
    with pytest.raises(Problem):
        failures.check("a", "s")


def test_a_secret_that_is_no_longer_right_loses_its_way_in() -> None:
    failures = Failures(Clock())
    failures.note("a", "s", right=True)
    fail(failures, "a")
    failures.check("a", "s")
    failures.note("a", "s", right=False)
    with pytest.raises(Problem):
        failures.check("a", "s")


def test_a_clock_that_is_set_back_locks_nobody_out() -> None:
    clock = Clock()
    failures = Failures(clock)
    fail(failures, "a")
    clock.at -= 3600
    failures.check("a", "s")


def test_what_is_remembered_is_bounded() -> None:
    failures = Failures(Clock())
    fail(failures, "first")
    for number in range(MOST_REMEMBERED):
        failures.note(f"peer {number}", "s", right=False)
    failures.check("first", "s")
