"""Pairs of engines that change while they are compared: unscored, of no epoch, at the cost of none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from service.store.scored.evidence import recent_pairs
from service.store.scored.recount import recount
from service.store.sql.database import Database
from service.store.verdicts.current_epochs import NO_EPOCH
from tests.conftest import ValkeyServer
from tests.workers.scripted import Asked, Reply, Script, ScriptedBackend
from tests.workers.walk import (
    BROKEN,
    GOOD,
    MODEL,
    SCORING,
    BenchMaker,
    always,
    exchange,
    orders,
    pairs_due,
    question,
    ship,
    tally,
    tier,
)
from workers.replay import replay_batch
from workers.units import Scoring

Backends = Callable[[Script], ScriptedBackend]

UNSETTLED = "w4a16: its backends disagree: engine: http://a vllm 0.32.0, http://b vllm 0.33.0"


def unsettled(*tiers: str, why: str = UNSETTLED) -> Scoring:
    return replace(SCORING, unsettled_of=lambda model, tier: why if tier in tiers else "")


def test_pairs_of_an_unsettled_tier_are_unscored_and_say_who_disagrees(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends, db: Database
) -> None:
    server = backend(always(BROKEN))
    bench = bench_of(
        tier("bf16", None, shadow=server.url),
        tier("w4a16", server.url),
        scoring=lambda db: unsettled("w4a16"),
    )
    replay_batch(bench, ship(valkey.url, orders(3)), delivery="1")
    assert tally(bench, "w4a16", "structured_output") is None, "its epoch keeps clean"
    due = pairs_due(bench)["w4a16", "candidate", "structured_output"]
    assert (due.due, due.scored, dict(due.unscored)) == (3, 0, {"mixed_artifact": 3})
    shown = [pair for pair in recent_pairs(db, MODEL, "w4a16") if pair.evaluator == "structured_output"]
    assert {(each.epoch, each.pair.candidate_reason) for each in shown} == {(NO_EPOCH, UNSETTLED)}
    control = tally(bench, "bf16", "structured_output", arm="control")
    assert control is not None
    assert control.n == 3, "the control has an epoch of its own"
    assert recount(db).differences == ()


def test_a_conversation_counts_from_the_next_request_once_the_tier_is_settled(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    server = backend(always(GOOD))
    scoring = [unsettled("w4a16")]
    bench = bench_of(
        tier("bf16", None, shadow=server.url), tier("w4a16", server.url), scoring=lambda db: scoring[0]
    )
    first = question("order number 1", structured=True)
    turns = [*first["messages"], {"role": "assistant", "content": GOOD}, {"role": "user", "content": "again"}]
    replay_batch(bench, ship(valkey.url, [exchange(first, GOOD)]), delivery="1")
    scoring[0] = SCORING
    replay_batch(bench, ship(valkey.url, [exchange({**first, "messages": turns}, GOOD)]), delivery="2")
    found = tally(bench, "w4a16", "structured_output")
    assert found is not None
    assert (found.n, found.conversations) == (1, 1)


def test_an_engine_that_changes_while_a_batch_is_replayed_spoils_its_pairs(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    scoring = [SCORING]

    def changing(asked: Asked) -> Reply:
        scoring[0] = unsettled("w4a16")
        return Reply(text=BROKEN)

    server = backend(changing)
    bench = bench_of(
        tier("bf16", None, shadow=server.url), tier("w4a16", server.url), scoring=lambda db: scoring[0]
    )
    replay_batch(bench, ship(valkey.url, orders(2)), delivery="1")
    assert tally(bench, "w4a16", "structured_output") is None
    due = pairs_due(bench)["w4a16", "candidate", "structured_output"]
    assert dict(due.unscored) == {"mixed_artifact": 2}


@pytest.mark.parametrize("served_by", ["bf16", "w4a16"])
def test_a_live_answer_from_before_the_change_is_of_another_artifact(
    served_by: str, valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    server = backend(always(GOOD))
    since = replace(SCORING, since_of=lambda model, tier: 500.0 if tier == served_by else 0.0)
    bench = bench_of(
        tier("bf16", None, shadow=server.url), tier("w4a16", server.url), scoring=lambda db: since
    )
    body = question("order number 1", structured=True)
    captures = [
        exchange({**body, "seed": number}, GOOD, tier=served_by, started_at=at)
        for number, at in enumerate([499.0, 501.0])
    ]
    replay_batch(bench, ship(valkey.url, captures), delivery="1")
    due = pairs_due(bench)["w4a16", "candidate", "structured_output"]
    assert (due.due, due.scored, dict(due.unscored)) == (2, 1, {"mixed_artifact": 1})
    found = tally(bench, "w4a16", "structured_output")
    assert found is not None
    assert found.n == 1, "the later one counts for the conversation"
