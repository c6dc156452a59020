from __future__ import annotations

import re
import signal
import threading
import time
from dataclasses import dataclass

import pytest

from evaluators.exchange import Answer, Endpoint, Fault, Request
from evaluators.score import NotApplicable, PairScore, Score, TimeLimit, Unscored, UnscoredReason
from workers.judge import Alarm, NotMainThread, judge

REQUEST = Request(endpoint=Endpoint.CHAT_COMPLETIONS, model="m", messages=())


def spin(seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def swallow(seconds: float) -> None:
    """Catches whatever is raised, as careless code does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            spin(1)
        except Exception:
            continue


@dataclass(frozen=True)
class Fake:
    """An evaluator that does what the answer says."""

    name: str = "fake"
    version: str = "1"

    def applies(self, request: Request) -> bool:
        return True

    def score(self, request: Request, answer: Answer) -> Score:
        match answer.text:
            case "spin":
                spin()
            case "raise":
                raise ValueError("a bug")
            case "regex":
                re.match(r"(a+)+$", "a" * 40 + "b")
        return Score(passed=answer.text == "ok", label="label")

    def score_fault(self, request: Request, fault: Fault) -> NotApplicable:
        return NotApplicable(why="fault")


def judged(baseline: str, candidate: str) -> object:
    return judge(Fake(), REQUEST, Answer(text=baseline), Answer(text=candidate), seconds=0.1)


def test_quick_judgements_are_not_disturbed() -> None:
    found = judged("ok", "no")
    assert isinstance(found, PairScore)
    assert found.harm


@pytest.mark.parametrize("way", ["spin", "regex"])
def test_an_answer_that_takes_too_long_to_judge_has_failed(way: str) -> None:
    began = time.monotonic()
    found = judged("ok", way)
    assert time.monotonic() - began < 30
    assert isinstance(found, PairScore)
    assert found.candidate == Score(
        passed=False, label="unjudgeable", reason="judging took longer than its time limit"
    )


def test_a_pair_whose_two_answers_take_too_long_is_unscored() -> None:
    found = judged("spin", "spin")
    assert isinstance(found, Unscored)
    assert found.reason is UnscoredReason.TIME_LIMIT


def test_an_evaluator_that_swallows_the_limit_does_not_escape_it() -> None:
    began = time.monotonic()
    with pytest.raises(TimeLimit), Alarm(0.1):
        swallow(0.4)
    assert time.monotonic() - began < 30


def test_an_evaluator_that_raises_is_a_counted_bug_of_ours() -> None:
    found = judged("raise", "ok")
    assert isinstance(found, Unscored)
    assert found.reason is UnscoredReason.BUG


def test_the_alarm_is_off_afterwards_and_the_handler_back() -> None:
    def before(number: int, frame: object) -> None:
        raise AssertionError("rang late")

    previous = signal.signal(signal.SIGALRM, before)
    try:
        judged("ok", "spin")
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        assert signal.getsignal(signal.SIGALRM) is before
    finally:
        signal.signal(signal.SIGALRM, previous)


def test_outside_of_the_main_thread_it_refuses() -> None:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            judged("ok", "ok")
        except NotMainThread as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert len(raised) == 1
    assert "main thread" in str(raised[0])


def test_a_limit_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        Alarm(0)
