"""The ten questions of `tiergate check`, put to real small servers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluators.long_context_recall import LongContextRecall
from service.launch.ask import ask_all
from service.launch.check import Level, Line, all_backends
from service.launch.check_recall import QUESTIONS, own_questions, recall_lines
from service.settings import load
from service.settings.values import ProbePlan
from tests.launch.answering import guessing, reading, refusing, reply, thinking
from tests.launch.conftest import models_page, serving
from tests.ports import free_port

Script = Callable[[dict[str, Any]], tuple[int, Any]]
PAGES = {"/health": (200, ""), "/v1/models": (200, models_page("qwen"))}


def lines(path: Path, *backends: str, shadow: str | None = None, **probe: Any) -> list[Line]:
    baseline = {"tier": "bf16", "backends": list(backends), **({"shadow": [shadow]} if shadow else {})}
    models = {"qwen": {"ladder": [baseline, {"tier": "w8a8", "backends": ["http://127.0.0.1:9"]}]}}
    (path / "tiergate.yaml").write_text(yaml.safe_dump({"models": models, "probe": probe}))
    settings = load(path / "tiergate.yaml", {})
    return recall_lines(settings, ask_all(all_backends(settings)))


def line(path: Path, script: Script, **probe: Any) -> Line:
    with serving(PAGES, post=script) as url:
        (found,) = lines(path, url, **probe)
    assert found.subject == f"qwen/bf16 {url}"
    return found


def test_ten_questions_can_be_made_and_none_gives_its_answer_away() -> None:
    questions = own_questions(ProbePlan(max_tokens=77, extra_body={"top_k": 1}))
    assert len({question.needle for question in questions}) == QUESTIONS
    for question in questions:
        assert question.needle is not None
        assert LongContextRecall().applies(question)
        assert question.needle.value not in question.needle.question
        assert (question.body["max_tokens"], question.body["top_k"]) == (77, 1)


def test_a_baseline_that_reads_is_well(tmp_path: Path) -> None:
    found = line(tmp_path, reading)
    assert (found.level, found.text) == (Level.OK, "answers 10 of 10 recall questions")


def test_a_baseline_that_thinks_first_is_refused_with_advice_that_helps(tmp_path: Path) -> None:
    found = line(tmp_path, thinking)
    assert found.level is Level.FAIL
    assert "answers 0 of 10 recall questions within 128 tokens" in found.text
    assert "set probe.max_tokens to 1024" in found.text
    assert line(tmp_path, thinking, max_tokens=1024).level is Level.OK
    off = {"chat_template_kwargs": {"enable_thinking": False}}
    assert str(off["chat_template_kwargs"]).replace("'", "").replace("False", "false") in found.text
    assert line(tmp_path, thinking, extra_body=off).level is Level.OK


def test_a_baseline_that_does_not_recall_is_refused(tmp_path: Path) -> None:
    found = line(tmp_path, guessing)
    assert found.level is Level.FAIL
    assert "found another answer: It is 12345." in found.text
    assert "probe.per_capture: 0" in found.text


def test_a_baseline_that_refuses_the_settings_says_which(tmp_path: Path) -> None:
    found = line(tmp_path, refusing, extra_body={"top_q": 1})
    assert found.level is Level.FAIL
    assert "unknown keys: ['top_q']" in found.text
    assert "correct probe.extra_body" in found.text


@pytest.mark.parametrize(("right", "level"), [(6, Level.OK), (5, Level.FAIL)])
def test_six_of_ten_are_enough(tmp_path: Path, right: int, level: Level) -> None:
    left = iter([True] * right + [False] * 10)
    found = line(tmp_path, lambda body: reading(body) if next(left) else reply("I do not know."))
    assert found.level is level
    assert f"answers {right} of 10" in found.text


def test_what_is_no_answer_refuses_nothing(tmp_path: Path) -> None:
    """A server that is down or overloaded says nothing about the settings."""
    found = line(tmp_path, lambda body: (503, {"error": {"message": "busy"}}))
    assert found.level is Level.WARN
    assert "could not be tried (overloaded" in found.text
    assert lines(tmp_path, f"http://127.0.0.1:{free_port()}") == []


def test_the_spare_backend_is_asked_first(tmp_path: Path) -> None:
    with serving(PAGES, post=guessing) as url, serving(PAGES, post=reading) as spare:
        (found,) = lines(tmp_path, url, shadow=spare)
    assert (found.level, found.subject) == (Level.OK, f"qwen/bf16 {spare}")


def test_a_model_that_is_not_probed_is_not_asked(tmp_path: Path) -> None:
    with serving(PAGES, post=guessing) as url:
        assert lines(tmp_path, url, per_capture=0) == []
