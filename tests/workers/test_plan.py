from __future__ import annotations

import pytest

from evaluators.exchange import Answer, Endpoint, Fault, FaultKind, Message, Outcome, Request
from service.fleet import Backend, Ladder, Route, Tier
from service.store.scored.units import Arm
from workers.plan import Plan, Slot, deserves_second_chance, draw_up, spent_by, targets

ANSWER = Answer(text="Fine.", prompt_tokens=100, completion_tokens=20)
HERE = (Backend(url="http://here"),)
THERE = (Backend(url="http://shadow"),)


def request(text: str = "hello", max_tokens: int | None = None) -> Request:
    return Request(
        endpoint=Endpoint.CHAT_COMPLETIONS,
        model="m",
        messages=(Message(role="user", text=text),),
        max_tokens=max_tokens,
    )


def tier(name: str, *, shadow: bool = False) -> Tier:
    return Tier(
        name=name, model=name, backends=HERE, shadow=(Backend(url="http://shadow"),) if shadow else ()
    )


LADDER = Ladder(model="m", tiers=(tier("bf16"), tier("w8a8"), tier("w4a16")))


def plan(
    *can_ask: str,
    served_by: str = "bf16",
    live: Outcome = ANSWER,
    probes: int = 0,
    asked: Request | None = None,
    repeated: bool = False,
) -> Plan:
    return draw_up(
        served_by=served_by,
        live=live,
        request=asked or request(),
        questions=[request(f"probe {number}", max_tokens=16) for number in range(probes)],
        ladder=LADDER,
        backends={each.name: HERE if each.name in can_ask else () for each in LADDER.tiers},
        repeated=repeated,
    )


def asked_of(drawn: Plan) -> dict[str, list[tuple[int, bool]]]:
    return {name: [(ask.slot.item, ask.slot.again) for ask in asks] for name, asks in drawn.asks.items()}


def compared(drawn: Plan) -> set[tuple[str, Arm]]:
    return {(each.tier, each.arm) for each in drawn.comparisons}


def test_the_live_answer_of_the_baseline_is_used_and_the_control_asks_once() -> None:
    drawn = plan("bf16", "w8a8", "w4a16")
    assert drawn.known == {Slot("bf16", 0): ANSWER}
    assert asked_of(drawn) == {"bf16": [(0, True)], "w8a8": [(0, False)], "w4a16": [(0, False)]}
    assert compared(drawn) == {("w8a8", Arm.CANDIDATE), ("w4a16", Arm.CANDIDATE), ("bf16", Arm.CONTROL)}


def test_a_repeat_asks_every_candidate_once_more_and_no_probe() -> None:
    plain, drawn = (plan("bf16", "w8a8", "w4a16", probes=1, repeated=each) for each in (False, True))
    assert asked_of(drawn)["w8a8"] == [(0, False), (0, True), (1, False)]
    assert asked_of(drawn)["w4a16"] == [(0, False), (0, True), (1, False)]
    assert asked_of(drawn)["bf16"] == asked_of(plain)["bf16"]
    assert compared(drawn) - compared(plain) == {("w8a8", Arm.REPEAT), ("w4a16", Arm.REPEAT)}
    more = [
        ask.tokens
        for asks in drawn.asks.values()
        for ask in asks
        if ask.slot.again and ask.slot.tier != "bf16"
    ]
    assert drawn.tokens - plain.tokens == sum(more) > 0
    assert drawn.probe_tokens == plain.probe_tokens


def test_a_repeat_sets_the_live_answer_of_a_promoted_tier_beside_one_replay() -> None:
    drawn = plan("bf16", "w8a8", served_by="w8a8", repeated=True)
    assert asked_of(drawn)["w8a8"] == [(0, True)]
    assert drawn.comparisons[-1].slots("bf16", 0) == (Slot("w8a8", 0), Slot("w8a8", 0, again=True))


@pytest.mark.parametrize("can_ask", [("bf16",), ("w8a8",)])
def test_without_baseline_or_candidate_to_ask_nothing_is_repeated(can_ask: tuple[str, ...]) -> None:
    assert Arm.REPEAT not in {
        each.arm for each in plan(*can_ask, served_by="w8a8", repeated=True).comparisons
    }


@pytest.mark.parametrize("kind", [kind for kind in FaultKind if kind is not FaultKind.REJECTED])
def test_a_live_fault_of_the_baseline_is_replayed_and_the_replay_takes_its_place(kind: FaultKind) -> None:
    drawn = plan("bf16", "w8a8", live=Fault(kind=kind))
    assert drawn.known == {}
    assert asked_of(drawn)["bf16"] == [(0, False), (0, True)]


def test_the_replay_of_a_live_generation_fault_is_itself_the_second_chance() -> None:
    first, again = plan("bf16", live=Fault(kind=FaultKind.SERVER_ERROR)).asks["bf16"]
    assert (first.second_chance, again.second_chance) == (False, True)


def test_the_replay_of_a_censored_exchange_has_a_second_chance_of_its_own() -> None:
    first, again = plan("bf16", live=Fault(kind=FaultKind.CENSORED)).asks["bf16"]
    assert first.second_chance
    assert again.second_chance


def test_a_request_that_the_baseline_refused_asks_nobody() -> None:
    drawn = plan("bf16", "w8a8", live=Fault(kind=FaultKind.REJECTED, status=400), probes=2)
    assert drawn.rejected
    assert drawn.asks == {}


def test_a_request_that_a_promoted_tier_refused_is_put_to_it_again() -> None:
    # It may have been the client's own key: ours is another.
    drawn = plan("bf16", "w8a8", served_by="w8a8", live=Fault(kind=FaultKind.REJECTED, status=401))
    assert not drawn.rejected
    assert asked_of(drawn) == {"bf16": [(0, False), (0, True)], "w8a8": [(0, False)]}


def test_when_another_tier_serves_the_baseline_is_asked_twice() -> None:
    drawn = plan("bf16", "w8a8", "w4a16", served_by="w8a8")
    assert drawn.known == {Slot("w8a8", 0): ANSWER}
    assert asked_of(drawn) == {"bf16": [(0, False), (0, True)], "w4a16": [(0, False)]}


def test_without_the_baseline_there_is_neither_control_nor_probe() -> None:
    drawn = plan("w8a8", probes=2)
    assert compared(drawn) == {("w8a8", Arm.CANDIDATE)}
    assert asked_of(drawn) == {"w8a8": [(0, False)]}


def test_without_the_baseline_a_promoted_tiers_answers_are_no_evidence() -> None:
    drawn = plan("w4a16", served_by="w8a8")
    assert drawn.comparisons == ()
    assert drawn.asks == {}


def test_a_live_fault_that_nobody_can_replay_is_a_fault_of_the_infrastructure() -> None:
    drawn = plan("w8a8", live=Fault(kind=FaultKind.SERVER_ERROR))
    outcome = drawn.known[Slot("bf16", 0)]
    assert isinstance(outcome, Fault)
    assert outcome.of_infrastructure


def test_probes_follow_the_request_in_order_and_the_control_follows_each_at_once() -> None:
    drawn = plan("bf16", "w8a8", probes=2)
    assert asked_of(drawn)["bf16"] == [(0, True), (1, False), (1, True), (2, False), (2, True)]
    assert asked_of(drawn)["w8a8"] == [(0, False), (1, False), (2, False)]


def test_a_capture_of_a_tier_that_is_configured_no_longer_is_replayed_everywhere() -> None:
    drawn = plan("bf16", "w8a8", served_by="gone")
    assert asked_of(drawn) == {"bf16": [(0, False), (0, True)], "w8a8": [(0, False)]}


def test_tokens_are_estimated_from_the_live_usage() -> None:
    assert plan("w8a8").tokens == 120
    assert plan("bf16", "w8a8", probes=1).tokens == 2 * 120 + 3 * (100 + 16)


def test_tokens_are_estimated_by_length_where_there_is_no_usage() -> None:
    long = request("x" * 4000, max_tokens=50)
    unanswered = Fault(kind=FaultKind.CENSORED)
    assert plan("w8a8", live=Answer(text="Fine." * 80), asked=long).tokens == 1000 + 100
    assert plan("w8a8", "bf16", live=unanswered, asked=long).tokens == 3 * (1000 + 50)
    assert plan("w8a8", "bf16", live=unanswered, asked=request("x" * 4000)).tokens == 3 * (1000 + 256)


@pytest.mark.parametrize("claimed", [10**400, -1, -(10**9)])
def test_tokens_that_no_context_window_holds_are_not_believed(claimed: int) -> None:
    unanswered = Fault(kind=FaultKind.CENSORED)
    assert plan("w8a8", "bf16", live=unanswered, asked=request("x" * 4000, max_tokens=claimed)).tokens == (
        3 * (1000 + 256)
    )
    live = Answer(text="Fine." * 80, prompt_tokens=claimed, completion_tokens=claimed)
    assert plan("w8a8", live=live, asked=request("x" * 4000)).tokens == 1000 + 100
    assert spent_by(live, estimate=7) == 7


@pytest.mark.parametrize(
    ("weights", "on_serving", "shadow", "found"),
    [
        ({"bf16": 100}, False, False, True),  # serves nobody
        ({"bf16": 95, "w8a8": 5}, False, False, False),
        ({"bf16": 95, "w8a8": 5}, True, False, True),
        ({"bf16": 95, "w8a8": 5}, False, True, True),
        ({"bf16": 100, "w8a8": 0}, False, False, True),
    ],
)
def test_shadow_traffic_reaches_serving_backends_only_when_allowed(
    weights: dict[str, int], on_serving: bool, shadow: bool, found: bool
) -> None:
    route = Route(model="m", weights=weights)
    assert bool(targets(tier("w8a8", shadow=shadow), route, on_serving=on_serving)) is found


def test_shadow_backends_come_before_others() -> None:
    [backend] = targets(tier("w8a8", shadow=True), Route.only("m", "bf16"), on_serving=True)
    assert backend.url == "http://shadow"


@pytest.mark.parametrize(
    ("kind", "again"),
    [
        (FaultKind.SERVER_ERROR, True),
        (FaultKind.CUT_OFF, True),
        (FaultKind.STREAM_ERROR, True),
        (FaultKind.UNREADABLE, True),
        (FaultKind.REJECTED, False),
        (FaultKind.TIMEOUT, False),
        (FaultKind.UNREACHABLE, False),
    ],
)
def test_generation_faults_get_a_second_chance_and_nothing_else_does(kind: FaultKind, again: bool) -> None:
    assert deserves_second_chance(Fault(kind=kind)) is again


def test_answers_need_no_second_chance() -> None:
    assert not deserves_second_chance(ANSWER)
