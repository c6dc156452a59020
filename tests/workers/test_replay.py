"""What one batch asks whom, and what becomes of the answers, over real stores and HTTP backends."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis

from service.store.redis.capture import Ending
from service.store.scored.evidence import Place, recent_pairs
from service.store.scored.repeats import energies_at
from tests.conftest import ValkeyServer
from tests.workers.scripted import Asked, Reply, Script, ScriptedBackend
from tests.workers.walk import (
    BROKEN,
    GOOD,
    MODEL,
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
from workers.backends import Limits
from workers.probes import Probing
from workers.replay import replay_batch

Backends = Callable[[Script], ScriptedBackend]


def test_a_candidate_that_breaks_json_is_counted_as_harm_and_the_control_stays_quiet(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    baseline, candidate = backend(always(GOOD)), backend(always(BROKEN))
    bench = bench_of(tier("bf16", None, shadow=baseline.url), tier("w4a16", candidate.url))
    ids = ship(valkey.url, orders(5))
    replay_batch(bench, ids, delivery="1")
    harmed = tally(bench, "w4a16", "structured_output")
    assert (harmed.n, harmed.harm, harmed.benefit, harmed.conversations) == (5, 5, 0, 5)
    control = tally(bench, "bf16", "structured_output", arm="control")
    assert (control.n, control.harm, control.benefit) == (5, 0, 0)
    assert len(baseline.asked) == len(candidate.asked) == 5


def test_a_repeat_of_the_candidate_gives_the_energy_distance_and_moves_no_tally(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    """Asked for the first time about every order the candidate breaks JSON, asked again it does not."""
    seen: set[str] = set()

    def first_broken(asked: Asked) -> Reply:
        told = str(asked.body["messages"])
        known = told in seen
        seen.add(told)
        return Reply(text=GOOD if known else BROKEN)

    baseline, candidate = backend(always(GOOD)), backend(first_broken)
    bench = bench_of(
        tier("bf16", None, shadow=baseline.url),
        tier("w4a16", candidate.url),
        repeats=1.0,
        tokens_per_day=10**6,
    )
    replay_batch(bench, ship(valkey.url, orders(4)), delivery="1")
    assert (len(baseline.asked), len(candidate.asked)) == (4, 8)
    harmed = tally(bench, "w4a16", "structured_output")
    assert (harmed.n, harmed.harm, harmed.benefit) == (4, 4, 0)
    repeated = tally(bench, "w4a16", "structured_output", arm="repeat")
    assert (repeated.n, repeated.harm, repeated.benefit) == (4, 0, 4)
    place = Place("w4a16", "candidate", "epoch of w4a16")
    control = Place("bf16", "control", "epoch of bf16")
    with bench.db.read() as connection:
        energy = energies_at(connection, MODEL, [place], control)[place]["structured_output"]
    assert (energy.requests, energy.conversations) == (4, 4)
    assert (energy.psi_control, energy.psi_between, energy.psi_candidate) == (0, 0.5, 1)
    assert energy.value == 0.0, "A passes always, Q fails once of two: (0 - 1)(0 - 0), on both ways round"


def test_a_repeat_is_spent_from_the_budget_of_shadow_traffic(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends, redis_client: redis.Redis
) -> None:
    server = backend(always(GOOD))  # says 15 tokens
    tiers = tier("bf16", None, shadow=server.url), tier("w4a16", server.url)
    bench = bench_of(*tiers, repeats=1.0, tokens_per_day=240_000)
    replay_batch(bench, ship(valkey.url, orders(1)), delivery="1")
    assert len(server.asked) == 3
    left = float(redis_client.hget("tiergate:shadow:tokens", "level") or 0)
    assert left == pytest.approx(10_000 - 45, abs=3)


def test_only_the_first_request_of_a_conversation_counts(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    server = backend(always(BROKEN))
    bench = bench_of(tier("bf16", None, shadow=server.url), tier("w4a16", server.url))
    first = question("order number 1", structured=True)
    turns = [*first["messages"], {"role": "assistant", "content": GOOD}, {"role": "user", "content": "again"}]
    later = {**first, "messages": turns}
    # The later turn comes first in the batch; what counts is which request came first.
    captures = [exchange(later, GOOD, started_at=200.0), exchange(first, GOOD, started_at=100.0)]
    replay_batch(bench, ship(valkey.url, captures), delivery="1")
    found = tally(bench, "w4a16", "structured_output")
    assert (found.n, found.not_counted, found.conversations) == (1, 1, 1)
    counted = [each for each in recent_pairs(bench.db, MODEL, "w4a16") if each.counted and each.pair.harm]
    assert {each.capture_id for each in counted} == {captures[1].id}


def test_fields_that_differ_are_told_with_the_pair_and_counted_beside_the_control(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    candidate, baseline = backend(always('{"order": 2}')), backend(always(GOOD))
    bench = bench_of(tier("bf16", None, shadow=baseline.url), tier("w4a16", candidate.url))
    captures = [exchange(question(f"order number {n}", structured=True), GOOD) for n in range(3)]
    replay_batch(bench, ship(valkey.url, captures), delivery="1")
    assert tally(bench, "w4a16", "structured_output").harm == 0
    assert tally(bench, "w4a16", "field_agreement").harm == 3
    assert tally(bench, "bf16", "field_agreement", arm="control").harm == 0
    [shown] = {
        (each.pair.candidate_label, each.pair.candidate_reason)
        for each in recent_pairs(bench.db, MODEL, "w4a16")
        if each.evaluator == "field_agreement"
    }
    assert shown == ("values_differ", "0 of 1 fields agree; of another value: /order")


def test_a_replay_carries_our_credentials_and_mark_and_the_tiers_own_model_name(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    server = backend(always("Fine."))
    bench = bench_of(
        tier("bf16", "http://127.0.0.1:9"), tier("w4a16", server.url, api_key="the backend's own")
    )
    body = question("hello", user="somebody", metadata={"a": "b"}, store=True)
    replay_batch(bench, ship(valkey.url, [exchange(body)]), delivery="1")
    [asked] = server.asked
    assert asked.headers["authorization"] == "Bearer the backend's own"
    assert asked.headers["x-tiergate-replay"] == "1"
    assert len(asked.headers["x-request-id"]) == 32
    assert asked.path == "/v1/chat/completions"
    assert asked.body == {"model": "m-w4a16", "messages": body["messages"], "store": False}


def test_no_credentials_are_made_up_where_the_backend_has_none(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    server = backend(always("Fine."))
    bench = bench_of(tier("bf16", "http://127.0.0.1:9"), tier("w4a16", server.url))
    replay_batch(bench, ship(valkey.url, [exchange(question("hello"))]), delivery="1")
    assert "authorization" not in server.asked[0].headers


@pytest.mark.parametrize("reply", [Reply(wait=30), Reply(status=503), Reply(status=429)])
def test_a_candidate_that_cannot_be_reached_in_time_is_unscored_and_never_harm(
    reply: Reply, valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    baseline, candidate = backend(always(GOOD)), backend(lambda asked: reply)
    limits = Limits(timeout_seconds=0.3, pause_seconds=0.01, retries=2)
    bench = bench_of(tier("bf16", None, shadow=baseline.url), tier("w4a16", candidate.url), limits=limits)
    replay_batch(bench, ship(valkey.url, orders(2)), delivery="1")
    found = tally(bench, "w4a16", "structured_output")
    assert (found.n, found.unscored) == (0, {"shadow": 2})
    assert len(candidate.asked) == 2 * 3  # once, and two retries
    assert tally(bench, "bf16", "structured_output", arm="control").n == 2


def test_a_candidate_that_nobody_listens_for_is_unscored(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    bench = bench_of(
        tier("bf16", None, shadow=backend(always(GOOD)).url), tier("w4a16", "http://127.0.0.1:9")
    )
    replay_batch(bench, ship(valkey.url, orders(1)), delivery="1")
    assert tally(bench, "w4a16", "structured_output").unscored == {"shadow": 1}


@pytest.mark.parametrize("reply", [Reply(status=500), Reply(hang_up=True), Reply(text=GOOD, cut_off=True)])
def test_a_candidate_that_fails_to_generate_has_failed(
    reply: Reply, valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    candidate = backend(lambda asked: reply)
    bench = bench_of(tier("bf16", None, shadow=backend(always(GOOD)).url), tier("w4a16", candidate.url))
    replay_batch(bench, ship(valkey.url, orders(2)), delivery="1")
    found = tally(bench, "w4a16", "structured_output")
    assert (found.n, found.harm) == (2, 2)
    assert {each.pair.candidate_label for each in recent_pairs(bench.db, MODEL, "w4a16", True)} == {"fault"}
    # Refusal has nothing to judge in a fault, in either arm.
    assert tally(bench, "w4a16", "refusal") is None
    assert pairs_due(bench)["w4a16", "candidate", "refusal"].not_applicable == 2


def test_faults_of_either_arm_get_one_second_chance_alike(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    def first_time_500() -> Script:
        seen: set[str] = set()

        def reply(asked: Asked) -> Reply:
            if asked.prompt in seen:
                return Reply(text=GOOD)
            seen.add(asked.prompt)
            return Reply(status=500)

        return reply

    baseline, candidate = backend(first_time_500()), backend(first_time_500())
    bench = bench_of(tier("bf16", None, shadow=baseline.url), tier("w4a16", candidate.url))
    faulted = exchange(question("order number 1", structured=True), status=500)
    replay_batch(bench, ship(valkey.url, [faulted]), delivery="1")
    # The live fault was the baseline's first try, its replay the second, which fails as well here; the
    # control and the candidate fault once and then answer.
    found = tally(bench, "w4a16", "structured_output")
    assert (found.n, found.harm, found.benefit) == (1, 0, 1)
    assert len(baseline.asked) == 2
    assert len(candidate.asked) == 2


def test_an_exchange_whose_client_hung_up_is_replayed_on_the_baseline(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    baseline, candidate = backend(always(GOOD)), backend(always(BROKEN))
    bench = bench_of(tier("bf16", None, shadow=baseline.url), tier("w4a16", candidate.url))
    censored = exchange(question("order 1", structured=True), ending=Ending.CENSORED)
    replay_batch(bench, ship(valkey.url, [censored]), delivery="1")
    assert tally(bench, "w4a16", "structured_output").harm == 1
    assert len(baseline.asked) == 2  # the pair's own outcome, and the control
    origins = {each.pair.origin for each in recent_pairs(bench.db, MODEL, "w4a16") if each.pair.harm}
    assert origins == {"replay"}


def test_after_a_promotion_the_pair_turns_round(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    baseline, other = backend(always(GOOD)), backend(always(GOOD))
    bench = bench_of(
        tier("bf16", None, shadow=baseline.url),
        tier("w8a8", "http://127.0.0.1:9"),
        tier("w4a16", other.url),
    )
    served = exchange(question("order 1", structured=True), BROKEN, tier="w8a8")
    replay_batch(bench, ship(valkey.url, [served]), delivery="1")
    assert (
        tally(bench, "w8a8", "structured_output").harm == 1
    )  # its live answer, against the baseline's replay
    assert tally(bench, "w4a16", "structured_output").harm == 0
    assert tally(bench, "bf16", "structured_output", arm="control").n == 1
    assert (len(baseline.asked), len(other.asked)) == (2, 1)


def test_without_capacity_for_the_baseline_there_is_no_control_and_no_probe(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    baseline, candidate = backend(always(GOOD)), backend(always(GOOD))
    bench = bench_of(
        tier("bf16", baseline.url),
        tier("w4a16", candidate.url),
        probing=Probing(per_capture=4, min_context_chars=10),
    )
    facts = "The access code of the blue room is 4821. The invoice number of May is INV-20391."
    replay_batch(bench, ship(valkey.url, [exchange(question(f"{facts}\n\nSum it up."))]), delivery="1")
    assert baseline.asked == []  # it serves clients
    assert len(candidate.asked) == 1
    due = {(arm, evaluator) for _, arm, evaluator in pairs_due(bench)}
    assert {arm for arm, _ in due} == {"candidate"}
    assert {evaluator for _, evaluator in due} == {"structured_output", "refusal", "answer_health"}


def test_shadow_traffic_goes_to_serving_backends_when_the_configuration_allows_it(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    baseline, candidate = backend(always(GOOD)), backend(always(GOOD))
    bench = bench_of(tier("bf16", baseline.url), tier("w4a16", candidate.url), on_serving=True)
    replay_batch(bench, ship(valkey.url, orders(1)), delivery="1")
    assert len(baseline.asked) == 1
    assert tally(bench, "bf16", "structured_output", arm="control").n == 1


def test_probes_go_to_every_arm_alike_and_form_one_unit(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    facts = {
        "access code of the blue room": "4821",
        "invoice number of the May delivery": "INV-20391",
        "phone extension of the night desk": "77120",
    }
    prose = " ".join(f"The {key} is {value}. Nothing else happened that day." for key, value in facts.items())

    def knows(asked: Asked) -> Reply:
        said = asked.prompt.rsplit("\n\n", 1)[-1].lower()
        return Reply(text=next((value for key, value in facts.items() if key.lower() in said), "Fine."))

    baseline, candidate = backend(knows), backend(always("I do not know."))
    bench = bench_of(
        tier("bf16", None, shadow=baseline.url),
        tier("w4a16", candidate.url),
        probing=Probing(per_capture=3, min_context_chars=50, max_tokens=16, extra_body={"think": False}),
    )
    replay_batch(
        bench, ship(valkey.url, [exchange(question(f"{prose}\n\nSum it up.", stop=["x"]))]), delivery="1"
    )
    found = tally(bench, "w4a16", "long_context_recall")
    assert (found.conversations, found.n, found.harm) == (1, 3, 3)
    control = tally(bench, "bf16", "long_context_recall", arm="control")
    assert (control.conversations, control.n, control.harm) == (1, 3, 0)
    probes = [asked.body for asked in candidate.asked if asked.body.get("max_tokens") == 16]
    assert len(probes) == 3
    assert all(probe["think"] is False and "stop" not in probe for probe in probes)
    assert all(probe["messages"][0]["content"].startswith(prose) for probe in probes)
    # Baseline and its control are asked the same question one after the other: the cache serves the second.
    asked_twice = [asked.prompt for asked in baseline.asked if asked.body.get("max_tokens") == 16]
    assert asked_twice[0::2] == asked_twice[1::2]
    assert sorted(asked_twice[0::2]) == sorted(probe["messages"][0]["content"] for probe in probes)


def test_beyond_the_budget_of_probes_no_question_is_asked_and_the_rest_goes_on(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    server = backend(always(GOOD))
    prose = "The door code of building A is 48231. " + "Nothing else is to be known. " * 9
    bench = bench_of(
        tier("bf16", None, shadow=server.url),
        tier("w4a16", server.url),
        probing=Probing(per_capture=1, min_context_chars=50, max_tokens=16),
        probes_per_day=24,
    )
    captures = [
        exchange(question(f"{prose}{n}\n\nNow order number {n}", structured=True), GOOD) for n in range(3)
    ]
    replay_batch(bench, ship(valkey.url, captures), delivery="1")
    due = pairs_due(bench)
    recall = due["w4a16", "candidate", "long_context_recall"]
    assert (recall.due, recall.scored, recall.over_budget) == (3, 1, 2)
    assert due["w4a16", "candidate", "structured_output"].scored == 3
    assert due["bf16", "control", "structured_output"].scored == 3
    assert due["bf16", "control", "long_context_recall"].over_budget == 2
    assert len([asked for asked in server.asked if asked.body.get("max_tokens") == 16]) == 3
    assert tally(bench, "w4a16", "long_context_recall").n == 1


def test_beyond_the_budget_nothing_is_sent_and_the_pairs_are_counted_so(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    server = backend(always(GOOD))
    # An hour's share is one token: the first capture overdraws it, and the rest of the day cannot refill
    # that.
    bench = bench_of(tier("bf16", "http://127.0.0.1:9"), tier("w4a16", server.url), tokens_per_day=24)
    replay_batch(bench, ship(valkey.url, orders(4)), delivery="1")
    due = pairs_due(bench)["w4a16", "candidate", "structured_output"]
    assert (due.due, due.scored, due.over_budget) == (4, 1, 3)
    assert len(server.asked) == 1
    assert tally(bench, "w4a16", "structured_output").unscored == {}


def test_what_an_estimate_took_too_much_is_given_back(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends, redis_client: redis.Redis
) -> None:
    server = backend(always(GOOD))  # says 15 tokens, as the live answer did
    bench = bench_of(tier("bf16", "http://127.0.0.1:9"), tier("w4a16", server.url), tokens_per_day=240_000)
    captures = [exchange(question("order", structured=True), ending=Ending.CENSORED)]
    # Its client hung up, so nothing is known of its length, and the baseline may not be replayed: 256 + 1
    # tokens.
    replay_batch(bench, ship(valkey.url, captures), delivery="1")
    left = float(redis_client.hget("tiergate:shadow:tokens", "level") or 0)
    assert left == pytest.approx(10_000 - 15, abs=3)


def test_a_request_that_the_baseline_refused_is_not_replayed_and_not_due(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    server = backend(always(GOOD))
    bench = bench_of(tier("bf16", None, shadow=server.url), tier("w4a16", server.url))
    refused = exchange(question("order", structured=True), status=400)
    replay_batch(bench, ship(valkey.url, [refused]), delivery="1")
    assert server.asked == []
    assert all(each.not_applicable == each.due for each in pairs_due(bench).values())
