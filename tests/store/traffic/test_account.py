"""The arithmetic of the mirror ledger."""

from __future__ import annotations

import dataclasses
import re

import pytest

from service.store.redis.counters import Count, Dropped, LedgerKey, Skipped
from service.store.traffic.account import (
    STALE_SECONDS,
    InstanceLedger,
    PairAccount,
    Settled,
    settle_account,
)


def ledger(*, seen=0, skipped=0, sampled=0, shipped=0, dropped=0, **fields):
    counters = {
        LedgerKey(Count.SEEN, "m"): seen,
        LedgerKey(Count.SKIPPED, "m", Skipped.NOT_SAMPLED): skipped,
        LedgerKey(Count.SAMPLED, "m"): sampled,
        LedgerKey(Count.SHIPPED, "m"): shipped,
        LedgerKey(Count.DROPPED, "m", Dropped.STORE_DOWN): dropped,
        LedgerKey(Count.TRAFFIC, "m", "short"): seen,
    }
    return InstanceLedger(
        **{"instance": "i", "closed": True, "written_at": 1000.0, "counters": counters, **fields}
    )


def settle(*instances, settled=None, pairs=(), now=None):
    return settle_account(
        model=None, instances=instances, settled=settled or Settled(waiting=0), pairs=pairs, now=now
    )


CLOSED = ledger(seen=100, skipped=60, sampled=40, shipped=30, dropped=10)


def test_an_orderly_stop_adds_up_exactly():
    account = settle(CLOSED, settled=Settled(processed=25, expired=5, waiting=0))
    assert account.balanced
    assert account.problems == ()
    assert (account.seen, account.sampled, account.shipped) == (100, 40, 30)
    assert account.skipped == {"not_sampled": 60}
    assert account.dropped == {"store_down": 10}
    assert account.traffic == {"short": 100}
    assert (account.lost, account.waiting, account.in_flight, account.unaccounted) == (0, 0, 0, 0)


def test_what_was_shipped_and_is_nowhere_is_lost():
    account = settle(CLOSED, settled=Settled(processed=20, expired=2, lost=1, waiting=3))
    assert (account.lost, account.waiting) == (1 + 30 - 20 - 2 - 1 - 3, 3)
    assert account.balanced


def test_without_redis_what_waits_is_not_called_lost():
    account = settle(CLOSED, settled=Settled(processed=20, lost=1, waiting=None))
    assert (account.lost, account.waiting) == (1, 9)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seen": 101}, r"seen \(101\) != skipped \(60\) \+ sampled \(40\)"),
        ({"seen": 99}, r"seen \(99\) != skipped \(60\) \+ sampled \(40\)"),
        ({"shipped": 29}, r"sampled \(40\) != shipped \(29\) \+ dropped \(10\)"),
        ({"dropped": 11}, r"sampled \(40\) != shipped \(30\) \+ dropped \(11\)"),
    ],
)
def test_a_closed_proxy_that_does_not_add_up_is_named_with_both_numbers(changes, words):
    counts = {"seen": 100, "skipped": 60, "sampled": 40, "shipped": 30, "dropped": 10}
    account = settle(ledger(**{**counts, **changes}), settled=Settled(processed=30, waiting=0))
    assert not account.balanced
    assert any(re.search(words, problem) for problem in account.problems)


def test_more_captures_than_were_shipped_is_a_contradiction_once_everybody_stopped():
    account = settle(CLOSED, settled=Settled(processed=31, waiting=1))
    assert not account.balanced
    assert "32 captures are settled or waiting, more than the 30 shipped" in account.problems[0]


def test_a_running_proxy_may_have_begun_more_than_it_finished():
    running = ledger(seen=100, skipped=50, sampled=40, shipped=25, dropped=10, closed=False)
    account = settle(running, settled=Settled(processed=28, waiting=0), now=1001.0)
    assert account.balanced
    assert account.problems == ()
    assert account.in_flight == 10 + 5
    assert account.lost == 0


def test_a_running_proxy_cannot_have_finished_more_than_it_began():
    running = ledger(seen=10, skipped=5, sampled=6, shipped=6, closed=False)
    assert not settle(running, now=1001.0).balanced


def test_a_silent_proxy_is_told_with_the_most_it_can_have_taken():
    killed = ledger(seen=100, skipped=55, sampled=40, shipped=27, dropped=10, closed=False, ahead=7, beyond=2)
    at = 1000.0 + STALE_SECONDS
    assert settle(killed, now=at).unaccounted == 0
    account = settle(killed, settled=Settled(processed=28, waiting=0), now=at + 1)
    assert account.unaccounted == 5 + 3 + 7
    assert account.in_flight == 0
    assert account.balanced
    assert "proxy i has been silent" in account.problems[0]
    assert "at most 15 of its requests" in account.problems[0]
    assert settle(dataclasses.replace(killed, beyond=9), now=at + 1).unaccounted == 5 + 3 + 9
    assert settle(killed).unaccounted == 0  # without a clock nobody is silent


def test_a_batch_in_doubt_that_arrived_moves_from_dropped_to_shipped():
    account = settle(CLOSED, settled=Settled(processed=34, waiting=0, arrived=4))
    assert (account.shipped, account.dropped, account.lost) == (34, {"store_down": 6}, 0)
    assert account.balanced
    beyond = settle(CLOSED, settled=Settled(processed=41, waiting=0, arrived=11))
    assert not beyond.balanced


def test_pairs_add_up_per_tier_and_evaluator():
    fine = PairAccount(
        model="m",
        tier="w8a8",
        arm="candidate",
        evaluator="refusal",
        due=10,
        scored=5,
        unscored={"shadow": 2, "bug": 1},
        not_applicable=1,
        over_budget=1,
    )
    wrong = dataclasses.replace(fine, due=11, evaluator="structured_output")
    account = settle(pairs=[fine, wrong])
    assert not account.balanced
    assert account.problems == (
        "11 pairs of structured_output on w8a8 (candidate) were due, other sums differ",
    )
    assert account.counters["pairs m w8a8 candidate refusal"] == {
        "due": 10,
        "scored": 5,
        "unscored bug": 1,
        "unscored shadow": 2,
        "not_applicable": 1,
        "over_budget": 1,
    }


def test_nothing_at_all_adds_up():
    account = settle()
    assert account.balanced
    assert {name: amount for name, amount in account.counters.items() if amount} == {}
