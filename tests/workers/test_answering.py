"""The event loop of a child: who is asked when, and what becomes of questions that fail or take too long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from evaluators.exchange import Answer, Endpoint, Message, Needle, Request
from service.fleet import Backend, Tier
from tests.workers.scripted import Reply, Script, ScriptedBackend
from workers.answering import Answering, Inquiry
from workers.backends import Limits, Shadow
from workers.plan import Ask, Plan, Slot

Backends = Callable[[Script], ScriptedBackend]


def asked(text: str, item: int = 0, *, second_chance: bool = True) -> Ask:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return Ask(
        slot=Slot("t", item),
        request=Request(
            endpoint=Endpoint.CHAT_COMPLETIONS,
            model="m",
            messages=(Message(role="user", text=text),),
            body=body,
        ),
        second_chance=second_chance,
        tokens=7,
    )


def inquiry(capture_id: str, url: str, *asks: Ask) -> Inquiry:
    backend = Backend(url=url)
    return Inquiry(
        capture_id=capture_id,
        model="m",
        plan=Plan(baseline="b", comparisons=(), known={}, asks={"t": asks}),
        tiers={"t": (Tier(name="t", model="m", backends=(backend,)), (backend,))},
    )


@pytest.fixture
def answering() -> Iterator[Callable[..., Answering]]:
    with ExitStack() as stack:

        def make(**more: object) -> Answering:
            limits = Limits(timeout_seconds=20, pause_seconds=0.001, retries=0)
            made = Answering(lambda: Shadow(limits), **more)  # type: ignore[arg-type]
            stack.callback(made.close)
            return made

        yield make


def test_the_questions_of_a_capture_follow_each_other_and_captures_run_side_by_side(
    backend: Backends, answering: Callable[..., Answering]
) -> None:
    server = backend(lambda asked: Reply(text="ok", wait=0.1))
    inquiries = [
        inquiry(f"c{n}", server.url, *(asked(f"{n} {item}", item) for item in range(3))) for n in range(4)
    ]
    answers = answering().run(inquiries, every=60, beat=lambda: None)
    assert set(answers.outcomes) == {"c0", "c1", "c2", "c3"}
    assert all(len(found) == 3 for found in answers.outcomes.values())
    assert server.most_at_once == 4
    for n in range(4):
        mine = [each.prompt for each in server.asked if each.prompt.startswith(f"{n} ")]
        assert mine == [f"{n} 0", f"{n} 1", f"{n} 2"]


@pytest.mark.parametrize(("second_chance", "tries"), [(True, 2), (False, 1)])
def test_a_generation_fault_is_tried_once_more_where_the_plan_says_so(
    second_chance: bool, tries: int, backend: Backends, answering: Callable[..., Answering]
) -> None:
    server = backend(lambda asked: Reply(status=500))
    answers = answering().run(
        [inquiry("c", server.url, asked("x", second_chance=second_chance))], every=60, beat=lambda: None
    )
    assert len(server.asked) == tries
    assert answers.counts['tiergate_worker_replays_total{model="m",outcome="server_error",tier="t"}'] == tries


def test_tokens_are_what_the_engine_says_and_nothing_where_it_was_not_reached(
    backend: Backends, answering: Callable[..., Answering]
) -> None:
    made = answering()
    server = backend(lambda asked: Reply(text="ok"))
    inquiries = [inquiry("a", server.url, asked("x")), inquiry("b", "http://127.0.0.1:9", asked("x"))]
    answers = made.run(inquiries, every=60, beat=lambda: None)
    assert (answers.spent["a"], answers.spent["b"]) == (15, 0)


def test_of_recall_questions_it_counts_where_their_prompts_came_from(
    backend: Backends, answering: Callable[..., Answering]
) -> None:
    needle = Needle(key="a", value="b1c2", question="?", depth=0.5)
    plain = asked("x")
    probe = replace(plain, request=replace(plain.request, needle=needle))
    made = answering()

    def counted(ask: Ask, cached: int | None) -> dict[str, int]:
        server = backend(lambda asked: Reply(text="ok", cached_tokens=cached))
        counts = made.run([inquiry("c", server.url, ask)], every=60, beat=lambda: None).counts
        return {
            each.partition('cached="')[2].partition('"')[0]: amount
            for each, amount in counts.items()
            if each.startswith("tiergate_worker_probe_prompt_tokens_total{")
        }

    assert counted(probe, 8) == {"yes": 8, "no": 2}
    assert counted(probe, None) == {}
    assert counted(plain, 8) == {}


def test_it_beats_while_it_waits_and_outside_of_the_event_loop(
    backend: Backends, answering: Callable[..., Answering]
) -> None:
    beats: list[threading.Thread] = []

    def beat() -> None:
        beats.append(threading.current_thread())
        raise ConnectionError("the database is away for a moment")

    server = backend(lambda asked: Reply(text="ok", wait=2.0))
    answers = answering().run([inquiry("c", server.url, asked("x"))], every=0.2, beat=beat)
    assert len(beats) >= 2
    assert threading.main_thread() not in beats
    assert isinstance(answers.outcomes["c"][Slot("t", 0)], Answer)


def test_when_it_stops_it_gives_up_what_takes_too_long(
    backend: Backends, answering: Callable[..., Answering]
) -> None:
    server = backend(lambda asked: Reply(text="ok", wait=600 if asked.prompt == "slow" else 0))
    made = answering(stopping=lambda: True, drain_seconds=0.3)
    began = time.monotonic()
    answers = made.run(
        [inquiry("slow", server.url, asked("slow")), inquiry("quick", server.url, asked("quick"))],
        every=60,
        beat=lambda: None,
    )
    assert time.monotonic() - began < 30
    assert set(answers.outcomes) == {"quick"}


def test_a_capture_that_cannot_be_asked_does_not_take_the_others_along(
    backend: Backends, answering: Callable[..., Answering]
) -> None:
    server = backend(lambda asked: Reply(text="ok"))
    broken = inquiry("broken", server.url, asked("x"))
    broken = Inquiry(capture_id="broken", model="m", plan=broken.plan, tiers={})
    answers = answering().run([broken, inquiry("sound", server.url, asked("x"))], every=60, beat=lambda: None)
    assert set(answers.outcomes) == {"sound"}


def test_without_questions_there_is_nothing_to_do(answering: Callable[..., Answering]) -> None:
    assert answering().run([], every=60, beat=lambda: None).outcomes == {}
