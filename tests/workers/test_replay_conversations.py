"""Conversations that count when they are closed, from captures to tallies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from service.decision.policy import Units
from service.decision.tally import Triple
from service.store.redis.capture import Capture
from service.store.scored.breakdown import read_strata
from service.store.scored.recount import recount
from service.store.traffic.closing import close_idle
from tests.conftest import ValkeyServer
from tests.workers.scripted import Script, ScriptedBackend
from tests.workers.walk import (
    BROKEN,
    GOOD,
    MODEL,
    SCORING,
    BenchMaker,
    always,
    exchange,
    pairs_due,
    question,
    ship,
    tally,
    tier,
)
from workers.replay import replay_batch

Backends = Callable[[Script], ScriptedBackend]
BY_CONVERSATION = replace(SCORING, count=Units.CLOSED_CONVERSATIONS)
LATER = 4e9
"""Unix seconds at which every conversation is idle."""


def turns(count: int) -> list[Capture]:
    """One conversation, turn by turn, each asking for JSON that the serving tier gave."""
    first: dict[str, Any] = question("order number 1", structured=True)
    found, messages = [], list(first["messages"])
    for number in range(count):
        body = {**first, "messages": list(messages)}
        found.append(exchange(body, GOOD, started_at=100.0 + number))
        messages += [{"role": "assistant", "content": GOOD}, {"role": "user", "content": f"again {number}"}]
    return found


def test_all_requests_of_a_conversation_count_as_one_when_it_is_closed(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    baseline, candidate = backend(always(GOOD)), backend(always(BROKEN))
    bench = bench_of(
        tier("bf16", None, shadow=baseline.url),
        tier("w4a16", candidate.url),
        scoring=lambda db: BY_CONVERSATION,
    )
    replay_batch(bench, ship(valkey.url, turns(3)), delivery="1")
    open_still = tally(bench, "w4a16", "structured_output")
    assert open_still is not None
    assert (open_still.n, open_still.not_counted) == (0, 3)
    assert close_idle(bench.db, MODEL, idle_seconds=1800.0, now=LATER) == 1
    closed = tally(bench, "w4a16", "structured_output")
    assert closed is not None
    assert closed.units == {Triple(3, 3, 0): 1}
    control = tally(bench, "bf16", "structured_output", arm="control")
    assert control is not None
    assert control.units == {Triple(3, 0, 0): 1}
    found = {
        each.stratum: each.sums.pairs
        for each in read_strata(bench.db, MODEL, "w4a16", "epoch of w4a16")
        if each.evaluator == "structured_output" and each.stratum.startswith("turns=")
    }
    assert found == {"turns=1": 1, "turns=2-5": 2}
    assert recount(bench.db).equal


def test_a_request_that_comes_after_the_end_is_late_and_not_replayed(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    server = backend(always(GOOD))
    bench = bench_of(
        tier("bf16", None, shadow=server.url),
        tier("w4a16", server.url),
        scoring=lambda db: BY_CONVERSATION,
    )
    first, second = turns(2)
    replay_batch(bench, ship(valkey.url, [first]), delivery="1")
    close_idle(bench.db, MODEL, idle_seconds=1800.0, now=LATER)
    asked = len(server.asked)
    replay_batch(bench, ship(valkey.url, [second]), delivery="2")
    assert len(server.asked) == asked
    found = tally(bench, "w4a16", "structured_output")
    assert found is not None
    assert (found.units, found.unscored) == ({Triple(1, 0, 0): 1}, {"late": 1})
    ledger = pairs_due(bench)["w4a16", "candidate", "structured_output"]
    assert (ledger.scored, ledger.due) == (1, 2)
    assert recount(bench.db).equal
