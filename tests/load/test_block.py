"""Blocks against a backend that notes when it wrote what; nothing here depends on how fast the machine is."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from service.engines.load import EngineLoad
from service.fleet import Backend, BackendTls, Slo
from service.load import engine_watch, servers
from service.load.block import Aborted, Block, Load, measure, measure_together, run_block
from service.load.figures import BlockFigures
from service.load.plan import Arrivals, BlockPlan, Part
from service.wire import parse_request
from tests.authority import Authority
from tests.load.scripted import (
    FINISH,
    STREAM,
    Script,
    ScriptedBackend,
    Turn,
    chat,
    chat_request,
    delta,
    load_of,
    scripted,
    usage,
)
from tests.patience import PATIENCE


def plan(rate: float | None = 40.0, **more: object) -> BlockPlan:
    given = {
        "tier": "w8a8",
        "part": Part.SLO,
        "arrivals": Arrivals.CONSTANT,
        "rate": rate,
        "warm_up_seconds": 0.1,
        "window_seconds": 0.3,
        "cool_down_seconds": 0.2,
        **more,
    }
    return BlockPlan(**given)  # type: ignore[arg-type]


async def one(asked: BlockPlan, load: Load, **more: object) -> Block:
    async with asyncio.timeout(PATIENCE):
        block = await measure(asked, load, **more)  # type: ignore[arg-type]
    return block


async def test_times_are_those_of_the_first_and_the_last_token_and_begin_when_a_request_was_due() -> None:
    async def script(turn: Turn) -> None:
        await turn.send(STREAM)
        await turn.event(delta(role="assistant", content=""))
        await asyncio.sleep(0.05)  # a role is no token
        await turn.event(delta(content="a"), output=True)
        await asyncio.sleep(0.05)
        await turn.event(delta(content="b"), output=True)
        await asyncio.sleep(0.05)
        await turn.event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})  # nor is an end
        await turn.event(usage(2))
        await turn.event("[DONE]")
        await turn.end()

    async with scripted(script) as backend:
        block = await one(plan(), load_of(backend))
        wrote = {served.number: served.writes for served in backend.served}
        start = backend.served[0].came - block.timed[0].sent  # type: ignore[operator]
    assert block.figures.failed == {}
    assert block.figures.offered == sum(0.1 <= each.scheduled < 0.4 for each in block.timed) == 12
    complete = [each for each in block.timed if each.ended is not None and not each.fault]
    assert len(complete) >= 12
    for each in complete:
        assert None not in (each.sent, each.first_byte, each.first_token, each.last_token)
        assert each.scheduled <= each.begun <= each.sent <= each.first_byte  # type: ignore[operator]
        assert each.first_byte <= each.first_token <= each.last_token <= each.ended  # type: ignore[operator]
        assert each.ttft == each.first_token - each.scheduled  # type: ignore[operator]
        assert each.tpot == each.last_token - each.first_token  # type: ignore[operator]
        assert (each.tokens, each.counted, each.prompt_tokens) == (2, 2, 7)
    # None is noted before the backend wrote it: the k-th first token not before the k-th write of one, though
    # a role came 50 ms earlier, and so with the last.
    for place, noted in enumerate(([e.first_token for e in complete], [e.last_token for e in complete])):
        written = sorted(writes[place] for writes in wrote.values() if len(writes) == 2)
        assert all(
            seen >= at - start
            for seen, at in zip(sorted(noted), written, strict=False)  # type: ignore[type-var,operator]
        )


async def test_no_request_waits_for_an_answer_before_it_is_sent() -> None:
    wanted, all_came = 16, asyncio.Event()

    async def script(turn: Turn) -> None:
        if turn.served.number + 1 == wanted:
            all_came.set()
        await all_came.wait()  # nobody is answered before all are here
        await chat(turn)

    async with scripted(script) as backend:
        block = await one(plan(), load_of(backend))
    # What is held back is late for every one of them: the stall is not hidden behind requests not sent.
    assert block.figures.passed == block.figures.offered == 12
    assert all(each.ended is not None for each in block.timed if block.figures.plan.counts(each.scheduled))


async def test_goodput_counts_tokens_of_usage_of_those_that_met_the_slo_over_the_window() -> None:
    async def script(turn: Turn) -> None:
        match turn.served.number % 4:
            case 0:
                await turn.send(b"HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy")
            case 1:
                await turn.send(STREAM)
                await turn.event(delta(content="half"), output=True)
                turn.cut()
            case _:
                await chat(turn, tokens=5, told=7)

    async with scripted(script) as backend:
        figures = (await one(plan(), load_of(backend))).figures
    good = figures.offered - sum(figures.failed.values())
    assert set(figures.failed) == {"overloaded", "cut_off"}
    assert figures.passed == good
    assert figures.goodput == figures.throughput == pytest.approx(7 * good / 0.3)
    assert figures.mean_output_tokens == 7
    assert figures.count_ratio == pytest.approx(5 / 7)
    assert figures.bytes_per_token == pytest.approx(5 * len("t0 ") / 7)
    assert figures.missed == sum(figures.failed.values())


async def test_answers_later_than_the_slo_have_no_goodput() -> None:
    async def script(turn: Turn) -> None:
        await asyncio.sleep(0.02)
        await chat(turn)

    async with scripted(script) as backend:
        slo = Slo(ttft_seconds=0.019, tpot_seconds=PATIENCE)
        figures = (await one(plan(), load_of(backend, slo=slo))).figures
    assert (figures.passed, figures.goodput) == (0, 0.0)
    assert figures.throughput > 0


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        (b"HTTP/1.1 429 Slow down\r\ncontent-length: 0\r\n\r\n", "overloaded"),
        (b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n", "server_error"),
        (b"HTTP/1.1 400 No\r\ncontent-length: 0\r\n\r\n", "rejected"),
        (b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}", "unreadable"),
        (b"SSH-2.0\r\n\r\n", "unreadable"),
        (STREAM + b"f\r\ndata: not json\n\r\n1\r\n\n\r\n0\r\n\r\n", "unreadable"),
        (STREAM + b"0\r\n\r\n", "cut_off"),
        (STREAM + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n", "cut_off"),
    ],
)
async def test_every_way_to_fail_is_a_miss_with_its_name(script: bytes, fault: str) -> None:
    async def fail(turn: Turn) -> None:
        await turn.send(script)

    async with scripted(fail) as backend:
        figures = (await one(plan(), load_of(backend))).figures
    assert figures.failed == {fault: figures.offered}
    assert (figures.passed, figures.goodput, figures.ttft.p95) == (0, 0.0, None)
    assert any(reason.startswith("nothing_answered") for reason in figures.invalid)


async def test_an_engine_may_end_a_stream_without_a_reason() -> None:
    async def script(turn: Turn) -> None:
        await turn.send(STREAM)
        await turn.event(delta(content="a"), output=True)
        await turn.event("[DONE]")
        await turn.end()

    async with scripted(script) as backend:
        figures = (await one(plan(), load_of(backend))).figures
    assert (figures.failed, figures.passed) == ({}, 12)
    assert figures.without_usage == 12


@pytest.mark.parametrize("told", [-5, 10**30, 2.0, True, "7"])
async def test_usage_that_cannot_be_is_none_and_events_are_counted(told: Any) -> None:
    async def script(turn: Turn) -> None:
        await turn.send(STREAM)
        for _ in range(3):
            await turn.event(delta(content="a"), output=True)
        await turn.event(FINISH)
        await turn.event({**usage(1), "usage": {"prompt_tokens": told, "completion_tokens": told}})
        await turn.event("[DONE]")
        await turn.end()

    async with scripted(script) as backend:
        figures = (await one(plan(), load_of(backend))).figures
    assert (figures.failed, figures.without_usage) == ({}, figures.offered)
    assert figures.mean_output_tokens == 3
    assert figures.spent_prompt_tokens == 0


async def test_an_answer_as_long_as_its_connection_is_complete_if_it_was_seen_to_end() -> None:
    async def script(turn: Turn) -> None:
        head = STREAM.replace(b"transfer-encoding: chunked\r\n", b"connection: close\r\n")
        told = f"data: {json.dumps(delta(content='a'))}\n\n"
        if turn.served.number % 2:
            told += f"data: {json.dumps(FINISH)}\n\ndata: {json.dumps(usage(1))}"
        await turn.send(head + told.encode())
        turn.close()

    async with scripted(script) as backend:
        figures = (await one(plan(), load_of(backend))).figures
    assert set(figures.failed) == {"cut_off"}
    assert figures.passed == figures.offered - figures.failed["cut_off"] > 0
    assert figures.without_usage == 0


async def test_an_answer_without_output_is_a_miss_and_one_of_one_token_has_no_tpot() -> None:
    async def script(turn: Turn) -> None:
        await chat(turn, tokens=turn.served.number % 2)

    async with scripted(script) as backend:
        figures = (await one(plan(), load_of(backend))).figures
    assert set(figures.failed) == {"no_output"}
    assert figures.without_tpot == figures.passed == figures.offered - figures.failed["no_output"]
    assert figures.tpot.p50 is None


async def test_an_error_in_the_stream_and_an_answer_that_takes_too_long_are_misses() -> None:
    async def script(turn: Turn) -> None:
        await turn.send(STREAM)
        await turn.event(delta(content="a"), output=True)
        if turn.served.number % 2:
            await turn.event({"error": {"message": "out of memory"}})
            await turn.end()
        else:
            await asyncio.Event().wait()

    async with scripted(script) as backend:
        figures = (await one(plan(), load_of(backend, request_seconds=0.3))).figures
    assert set(figures.failed) == {"stream_error", "timeout"}
    assert figures.missed == figures.offered


async def test_a_sweep_does_not_wait_for_what_is_a_miss_already() -> None:
    async def script(turn: Turn) -> None:
        if turn.served.number % 2:
            await asyncio.Event().wait()
        await chat(turn, pause=0.1)  # later than the SLO, and answered all the same

    async with scripted(script) as backend:
        load = load_of(backend, slo=Slo(ttft_seconds=0.05, tpot_seconds=PATIENCE))
        figures = (await one(plan(part=Part.SWEEP), load)).figures
    assert figures.passed == 0
    assert figures.failed["given_up"] > 0


async def test_a_sweeps_block_ends_once_all_of_its_window_have_missed_however_long_its_load_may_last() -> (
    None
):
    slo = Slo(ttft_seconds=0.1, tpot_seconds=PATIENCE)

    async def script(turn: Turn) -> None:
        await asyncio.Event().wait()

    async with scripted(script) as backend:
        asked = plan(part=Part.SWEEP, cool_down_seconds=100 * PATIENCE)
        block = await one(asked, load_of(backend, slo=slo, silent_seconds=100 * PATIENCE))
    figures = block.figures
    assert (figures.failed, figures.answered) == ({"given_up": 12}, 0)
    window = [each for each in block.timed if figures.plan.counts(each.scheduled)]
    # None was dropped while another of them could still have met its SLO, which that would have helped.
    assert min(each.ended for each in window) >= figures.plan.seconds + 0.1  # type: ignore[type-var,operator]
    after = [each for each in block.timed if each.scheduled >= figures.plan.seconds]
    assert all(each.ended is None for each in after), "the load was what it was until the window's had ended"


async def test_a_sweeps_block_waits_for_answers_whose_first_token_came() -> None:
    """All of them while others, which never begin to answer, are given up."""
    slo = Slo(ttft_seconds=2.0, tpot_seconds=PATIENCE)

    async def script(turn: Turn) -> None:
        if turn.served.number % 2:
            await asyncio.Event().wait()
        await turn.send(STREAM)
        await turn.event(delta(content="a"), output=True)
        await asyncio.sleep(2 * slo.ttft_seconds)
        await turn.event(delta(content="b"), output=True)
        await turn.event(FINISH)
        await turn.event(usage(2))
        await turn.end()

    async with scripted(script) as backend:
        figures = (await one(plan(part=Part.SWEEP), load_of(backend, slo=slo))).figures
    assert figures.failed == {"given_up": figures.offered - figures.passed}
    assert 0 < figures.passed < figures.offered


def engine_page(running: int, waiting: int, done: int = 0) -> str:
    return (
        f'vllm:num_requests_running{{engine="0"}} {running}\n'
        f'vllm:num_requests_waiting{{engine="0"}} {waiting}\n'
        f'vllm:generation_tokens_total{{engine="0"}} {done}\n'
    )


async def test_nothing_is_sent_before_the_engine_has_ended_what_others_left_it() -> None:
    left = 3

    async with scripted(chat) as backend:

        def work() -> str:
            nonlocal left
            assert not backend.served
            left -= left > 0
            return engine_page(min(left, 1), max(left - 1, 0), done=100 - left)

        backend.page = work
        block = await one(plan(), load_of(backend, rest_seconds=PATIENCE, engine_seconds=PATIENCE))
        assert left == 0
    assert block.figures.busy_before == ()
    assert block.figures.passed == 12
    before = [each.load for each in block.figures.engine if each.at < 0]
    assert before == [EngineLoad(running=0.0, waiting=0.0)], "of the looks before it the last is kept"


async def test_an_engine_that_never_comes_to_rest_is_loaded_all_the_same_and_the_block_says_so() -> None:
    done = 0

    def work() -> str:
        nonlocal done
        done += 1
        return engine_page(1, 0, done)

    async with scripted(chat) as backend:
        backend.page = work
        busy = (await one(plan(), load_of(backend, rest_seconds=0.4))).figures
        unasked = (await one(plan(), load_of(backend))).figures
    assert busy.busy_before == (backend.url,)
    assert busy.valid, busy.invalid
    assert BlockFigures.of(json.loads(json.dumps(busy.document()))) == busy
    assert unasked.busy_before == (), "who serves others is not waited for"


async def test_gauges_that_do_not_move_are_stale_and_nobody_waits_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_watch, "STALE_SECONDS", 0.3)
    async with scripted(chat) as backend:
        backend.page = engine_page(2, 1)
        figures = (await one(plan(), load_of(backend, rest_seconds=100 * PATIENCE))).figures
    assert (figures.busy_before, figures.passed) == ((), 12)


async def test_an_engine_too_busy_to_tell_is_waited_for_and_one_that_cannot_be_asked_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(servers, "PAGE_SECONDS", 0.1)
    monkeypatch.setattr(engine_watch, "STALE_SECONDS", 0.05)
    asked = 0

    def slow() -> str | None:
        nonlocal asked
        asked += 1
        return None if asked < 4 else engine_page(0, 0)

    async with scripted(chat) as backend:
        backend.page, backend.mute = slow, True
        figures = (await one(plan(), load_of(backend, rest_seconds=PATIENCE))).figures
        assert asked >= 4
        assert (figures.busy_before, figures.passed) == ((), 12)
        backend.page = lambda: None
        figures = (await one(plan(), load_of(backend, rest_seconds=0.3))).figures
        assert figures.busy_before == (backend.url,)
        backend.mute = False  # a 404
        figures = (await one(plan(), load_of(backend, rest_seconds=100 * PATIENCE))).figures
        assert figures.busy_before == ()
    figures = (await one(plan(), load_of(backend, rest_seconds=100 * PATIENCE))).figures
    assert figures.failed == {"unreachable": 12}


async def test_a_block_that_waits_for_its_engine_can_be_broken_off() -> None:
    done = 0

    def work() -> str:
        nonlocal done
        done += 1
        return engine_page(1, 0, done)

    async def objection() -> str:
        return "cancelled" if done > 2 else ""

    async with scripted(chat) as backend:
        backend.page = work
        with pytest.raises(Aborted, match="cancelled"):
            await one(plan(), load_of(backend, rest_seconds=100 * PATIENCE), watch=objection)
        assert backend.served == []


@pytest.mark.parametrize("part", [Part.SLO, Part.COST])
@pytest.mark.parametrize("said", [0, 1])
async def test_a_block_has_an_end_of_its_own_however_long_a_silent_tier_may_be_waited_for(
    part: Part, said: int
) -> None:
    async def script(turn: Turn) -> None:
        await turn.send(STREAM)
        for _ in range(said):
            await turn.event(delta(content="a"), output=True)
        await asyncio.Event().wait()

    async with scripted(script) as backend:
        slo = Slo(ttft_seconds=0.05, tpot_seconds=0.05)
        load = load_of(backend, slo=slo, silent_seconds=0.2, request_seconds=100 * PATIENCE)
        figures = (await one(plan(part=part), load)).figures
    assert figures.failed == {"given_up": 12}
    assert "nothing_answered: given_up 12" in figures.invalid


async def test_what_can_still_meet_its_slo_is_waited_for() -> None:
    async def script(turn: Turn) -> None:
        await chat(turn, pause=0.2)

    async with scripted(script) as backend:
        figures = (await one(plan(), load_of(backend, silent_seconds=0.01))).figures
    assert figures.passed == figures.offered == 12


async def test_nobody_there_is_unreachable_and_the_block_invalid() -> None:
    async with scripted(chat) as backend:
        pass
    figures = (await one(plan(), load_of(backend))).figures
    assert figures.failed == {"unreachable": figures.offered}
    assert not figures.valid


async def test_an_idle_connection_that_the_backend_closes_costs_no_request() -> None:
    async with scripted(chat) as backend:

        async def script(turn: Turn) -> None:
            await chat(turn)
            asyncio.get_running_loop().call_later(0.001, turn.cut)

        backend.script = script
        figures = (await one(plan(rate=100.0), load_of(backend))).figures
        assert figures.failed == {}
        assert backend.connections > 1


async def test_connections_are_kept_and_requests_carry_our_mark_and_the_backends_own_headers() -> None:
    async with scripted(chat) as backend:
        there = Backend(url=backend.url, api_key="sesame", headers=(("X-Team", "blue"),))
        await one(plan(rate=20.0, window_seconds=0.5), load_of(backend, backends=(there,)))
        first = backend.served[0]
        assert first.path == "/v1/chat/completions"
        assert first.headers["authorization"] == "Bearer sesame"
        assert first.headers["x-team"] == "blue"
        assert first.headers["x-tiergate-replay"] == "1"
        assert first.headers["accept"] == "text/event-stream"
        assert first.body["model"] == "served-name"
        assert first.body["stream"] is True
        assert first.body["stream_options"] == {"include_usage": True}
        assert backend.connections <= len(backend.served)


async def test_a_unix_socket_is_reached(tmp_path: Path) -> None:
    backend = ScriptedBackend(chat)
    path = tmp_path / "engine.sock"
    async with await asyncio.start_unix_server(backend.serve, path):
        load = load_of(backends=(Backend(url=f"unix:{path}"),))
        figures = (await one(plan(), load)).figures
        backend.drop_idle()
    assert figures.passed == figures.offered == 12


async def test_tls_is_spoken_with_who_is_trusted_and_with_nobody_else(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with scripted(chat, tls=authority.issue("server").server_context()) as backend:
        trusting = Backend(url=backend.url, tls=BackendTls(ca=authority.text))
        trusted = (await one(plan(), load_of(backend, backends=(trusting,)))).figures
        served = len(backend.served)
        doubted = (await one(plan(), load_of(backend))).figures
    assert trusted.passed == trusted.offered == 12
    assert doubted.failed == {"unreachable": 12}
    assert len(backend.served) == served


async def test_requests_go_to_the_backend_with_the_fewest_under_way() -> None:
    async def never(turn: Turn) -> None:
        await asyncio.Event().wait()

    async with scripted(never) as stuck, scripted(chat) as quick:
        closed = plan(rate=None, arrivals=Arrivals.CLOSED, concurrency=2, part=Part.CONCURRENCY)
        await one(closed, load_of(stuck, quick))
        assert len(stuck.served) == 1
        assert len(quick.served) > 2


async def test_a_closed_loop_keeps_so_many_under_way() -> None:
    at_once, most = 0, 0
    all_here = asyncio.Event()

    async def script(turn: Turn) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        if at_once == 3:
            all_here.set()
        await all_here.wait()  # nobody is answered before three are under way
        at_once -= 1
        await chat(turn)

    async with scripted(script) as backend:
        closed = plan(rate=None, arrivals=Arrivals.CLOSED, concurrency=3, part=Part.CONCURRENCY)
        block = await one(closed, load_of(backend))
        assert most == 3
        assert len(backend.served) > 3
    assert block.figures.asked_rate is None
    assert block.figures.lag_p99 is not None
    assert block.figures.passed == block.figures.offered > 0


async def test_a_backend_that_refuses_at_once_is_not_asked_as_fast_as_can_be() -> None:
    async with scripted(chat) as backend:
        pass
    closed = plan(rate=None, arrivals=Arrivals.CLOSED, concurrency=2, part=Part.CONCURRENCY)
    block = await one(closed, load_of(backend))
    # Every 0.2 s at most, over 0.6 s.
    assert len(block.timed) <= 2 * 4


async def test_the_load_goes_on_until_the_windows_last_request_has_ended() -> None:
    enough = asyncio.Event()

    async def script(turn: Turn) -> None:
        if turn.served.number > 18:  # 4 of the warm-up, 12 of the window
            enough.set()
        await enough.wait()
        await chat(turn)

    async with scripted(script) as backend:
        block = await one(plan(cool_down_seconds=PATIENCE), load_of(backend))
    assert block.figures.passed == 12
    assert len(block.timed) > 18


async def test_blocks_of_one_seed_send_the_same_requests_at_the_same_times() -> None:
    load = {"requests": tuple(chat_request(f"question {number}") for number in range(7))}
    async with scripted(chat) as backend:
        asked = plan(arrivals=Arrivals.POISSON, seed=5, window_seconds=0.4)
        first = await one(asked, load_of(backend, **load))
        second = await one(asked, load_of(backend, **load))
        other = await one(
            plan(arrivals=Arrivals.POISSON, seed=6, window_seconds=0.4), load_of(backend, **load)
        )
    ours, theirs = first.figures.columns, second.figures.columns
    assert (ours.scheduled, ours.request) == (theirs.scheduled, theirs.request)
    assert ours.scheduled != other.figures.columns.scheduled
    assert first.figures.repeated >= first.figures.offered - 7


async def test_a_traces_requests_go_with_their_own_times() -> None:
    trace = (0.0, 0.05, 0.06, 0.2)
    requests = tuple(chat_request(f"{number}") for number in range(4))
    async with scripted(chat) as backend:
        asked = plan(rate=None, arrivals=Arrivals.TRACE, window_seconds=0.5)
        block = await one(asked, load_of(backend, requests=requests, trace=trace))
    gaps = {0: 0.05, 1: 0.01, 2: 0.14, 3: 0.2 / 3}
    for earlier, later in zip(block.timed, block.timed[1:], strict=False):
        assert later.request == (earlier.request + 1) % 4
        assert later.scheduled - earlier.scheduled == pytest.approx(gaps[earlier.request])


DIALECTS = {
    "/v1/completions": (
        {"model": "m", "prompt": ["one", "two"], "n": 2},
        [
            {"choices": [{"index": 0, "text": "a"}]},
            {"choices": [{"index": 0, "text": "b", "finish_reason": "length"}]},
            usage(2),
        ],
    ),
    "/v1/responses": (
        {"model": "m", "input": "hello"},
        [
            {"type": "response.created", "response": {}},
            {"type": "response.output_text.delta", "delta": "a"},
            {"type": "response.function_call_arguments.delta", "delta": "{}"},
            {"type": "response.completed", "response": {"usage": {"input_tokens": 7, "output_tokens": 2}}},
        ],
    ),
    "/v1/messages": (
        {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hello"}]},
        [
            {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}},
            {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "a"}},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "b"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
            {"type": "message_stop"},
        ],
    ),
}


@pytest.mark.parametrize("path", DIALECTS)
async def test_every_dialect_is_sent_streamed_and_its_tokens_are_counted(path: str) -> None:
    body, events = DIALECTS[path]

    async def script(turn: Turn) -> None:
        await turn.send(STREAM)
        for event in events:
            kind = f"event: {event['type']}\n" if "type" in event else ""
            await turn.chunk(f"{kind}data: {json.dumps(event)}\n\n")
        await turn.end()

    async with scripted(script) as backend:
        request = parse_request(path, json.dumps(body).encode())
        block = await one(plan(), load_of(backend, requests=(request,)))
        asked = backend.served[0].body
    assert backend.served[0].path == path
    assert asked["stream"] is True
    assert "n" not in asked
    assert asked.get("prompt", "one") == "one"
    figures = block.figures
    assert (figures.failed, figures.passed) == ({}, figures.offered)
    assert {(each.tokens, each.counted, each.prompt_tokens) for each in block.timed if each.tokens} == {
        (2, 2, 7)
    }


async def test_engines_are_looked_at_before_during_and_after() -> None:
    looks, in_the_middle = 0, asyncio.Event()

    def page() -> str:
        nonlocal looks
        looks += 1
        if looks == 2:
            in_the_middle.set()
        return 'vllm:num_requests_running{engine="0"} 3.0\nvllm:kv_cache_usage_perc{engine="0"} 0.5\n'

    async def script(turn: Turn) -> None:
        await in_the_middle.wait()  # the block is not over before
        await chat(turn)

    async with scripted(script) as backend:
        backend.page = page
        load = load_of(backend, engine_seconds=0.1)
        figures = (await one(plan(), load)).figures
    samples = figures.engine
    assert len(samples) >= 3
    assert samples[0].at < 0
    assert samples[-1].at >= 0.4
    assert {sample.backend for sample in samples} == {backend.url}
    assert all(sample.load and sample.load.running == 3.0 for sample in samples)


async def test_an_engine_that_tells_nothing_is_unknown() -> None:
    async with scripted(chat) as backend:
        figures = (await one(plan(), load_of(backend))).figures
    assert [sample.load for sample in figures.engine] == [None, None]


async def test_whoever_objects_ends_the_block_at_once() -> None:
    async def objection() -> str:
        return "clients wait too long" if backend.served else ""

    async with scripted(chat) as backend:
        with pytest.raises(Aborted, match="clients wait too long"):
            await one(plan(window_seconds=10 * PATIENCE), load_of(backend), watch=objection)
        seen = len(backend.served)
        await asyncio.sleep(0.1)
        assert len(backend.served) <= seen + 1


async def test_arms_of_one_round_get_the_same_schedule_and_have_figures_of_their_own() -> None:
    async def slow(turn: Turn) -> None:
        await asyncio.sleep(0.05)
        await chat(turn)

    async with scripted(chat) as one_tier, scripted(slow) as other:
        first = await one(plan(), load_of(one_tier))
        second = await one(plan(tier="bf16"), load_of(other))
    assert first.figures.columns.scheduled == second.figures.columns.scheduled
    assert second.figures.ttft.p50 > 0.049  # type: ignore[operator]
    assert (first.figures.plan.tier, second.figures.plan.tier) == ("w8a8", "bf16")


async def test_figures_survive_json() -> None:
    async with scripted(chat) as backend:
        backend.page = 'vllm:num_requests_running{engine="0"} 3.0\n'
        figures = (await one(plan(), load_of(backend, engine_seconds=0.1))).figures
    assert BlockFigures.of(json.loads(json.dumps(figures.document(), allow_nan=False))) == figures


async def test_a_block_runs_in_a_loop_of_its_own_and_leaves_everything_as_it_was() -> None:
    before = gc.isenabled(), gc.get_freeze_count(), sys.getswitchinterval()
    async with scripted(chat) as backend:
        backend.page = 'vllm:num_requests_running{engine="0"} 3.0\n'
        block = await asyncio.to_thread(run_block, plan(), load_of(backend))
    assert (block.figures.failed, block.figures.passed) == ({}, 12)
    assert [sample.load for sample in block.figures.engine] == [EngineLoad(running=3.0)] * 2
    assert (gc.isenabled(), gc.get_freeze_count(), sys.getswitchinterval()) == before


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"backends": ()}, "no backend"),
        ({"requests": ()}, "no requests"),
        ({"backends": (Backend(url="ftp://x"),)}, "http://HOST"),
    ],
)
async def test_what_cannot_be_carried_out_is_refused(more: dict[str, object], match: str) -> None:
    async with scripted(chat) as backend:
        with pytest.raises(ValueError, match=match):
            await one(plan(), load_of(backend, **more))


async def test_a_trace_without_duration_is_refused() -> None:
    async with scripted(chat) as backend:
        with pytest.raises(ValueError, match="trace"):
            await one(plan(rate=None, arrivals=Arrivals.TRACE), load_of(backend, trace=(1.0,)))


async def test_arms_that_run_together_get_the_same_requests_at_the_same_moments_and_none_waits() -> None:
    """Nobody is answered before both backends have requests: one after the other, this would never end."""
    came = [asyncio.Event(), asyncio.Event()]

    def script_of(own: asyncio.Event, other: asyncio.Event) -> Script:
        async def script(turn: Turn) -> None:
            own.set()
            await other.wait()
            await chat(turn)

        return script

    async with (
        scripted(script_of(came[0], came[1])) as first,
        scripted(script_of(came[1], came[0])) as second,
    ):
        plans = plan(seed=3), plan(seed=3, tier="bf16")
        async with asyncio.timeout(PATIENCE):
            blocks = await measure_together([(plans[0], load_of(first)), (plans[1], load_of(second))])
    assert [block.figures.plan.tier for block in blocks] == ["w8a8", "bf16"]
    assert [block.figures.passed for block in blocks] == [12, 12]
    one_arm, other_arm = (block.figures.columns for block in blocks)
    assert (one_arm.scheduled, one_arm.request) == (other_arm.scheduled, other_arm.request)
    assert {sample.backend for sample in blocks[0].figures.engine} == {first.url}


async def test_an_arm_of_others_has_ended_when_its_own_requests_have_and_is_sent_nothing_more() -> None:
    async def slow(turn: Turn) -> None:
        await chat(turn, pause=0.2)

    async with scripted(chat) as quick, scripted(slow) as other:
        asked = plan(cool_down_seconds=0.0), plan(tier="bf16", window_seconds=0.9, cool_down_seconds=0.0)
        async with asyncio.timeout(PATIENCE):
            await measure_together([(asked[0], load_of(quick)), (asked[1], load_of(other))])
        assert len(quick.served) == 16, "0.4 s at 40 a second, while the other went on"
        assert len(other.served) == 40


async def test_an_objection_ends_all_arms_that_run_together() -> None:
    async def never(turn: Turn) -> None:
        await asyncio.Event().wait()

    async def watch() -> str:
        return "clients lose their SLO" if first.served and second.served else ""

    async with scripted(never) as first, scripted(never) as second:
        arms = [(plan(window_seconds=PATIENCE), load_of(each)) for each in (first, second)]
        with pytest.raises(Aborted, match="clients lose their SLO"):
            async with asyncio.timeout(PATIENCE):
                await measure_together(arms, watch=watch)


async def test_what_cannot_be_carried_out_for_one_arm_is_begun_for_none() -> None:
    async with scripted(chat) as backend:
        with pytest.raises(ValueError, match="no backend"):
            await measure_together([(plan(), load_of(backend)), (plan(), load_of(backend, backends=()))])
        assert backend.served == []
