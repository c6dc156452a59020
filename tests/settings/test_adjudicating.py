"""Which pairs people judge, and which judges are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.settings import Settings
from service.settings.adjudicating import AdjudicationPlan, JudgePlan

Loaded = Callable[..., Settings]
Problems = Callable[..., list[str]]


def with_judge(minimal: dict[str, Any], url: str, **more: object) -> dict[str, Any]:
    return {**minimal, "adjudication": {"judge": {"url": url, "model": "wise", **more}}}


def test_refusals_are_queued_by_default_and_nobody_but_people_is_asked(
    minimal: dict[str, Any], loaded: Loaded
) -> None:
    assert loaded(minimal).adjudication == AdjudicationPlan()
    assert AdjudicationPlan() == AdjudicationPlan(
        evaluators=("refusal",), audit=0.05, overlap=0.2, keep_seconds=30 * 86400.0, judge=None
    )


def test_everything_can_be_set(minimal: dict[str, Any], loaded: Loaded, tmp_path: Path) -> None:
    (tmp_path / "judge.key").write_text("the key\n")
    given = with_judge(
        minimal,
        "https://judge.example/api/v1/",
        api_key_file="judge.key",
        tokens_per_day="2M",
        timeout="30s",
        max_tokens=2048,
    )
    given["adjudication"] |= {
        "evaluators": ["refusal", "structured_output"],
        "audit": "10%",
        "overlap": "0%",
        "keep": "7d",
    }
    found = loaded(given).adjudication
    assert found == AdjudicationPlan(
        evaluators=("refusal", "structured_output"),
        audit=0.1,
        overlap=0.0,
        keep_seconds=7 * 86400.0,
        judge=JudgePlan(
            url="https://judge.example/api/v1",
            model="wise",
            api_key="the key",
            tokens_per_day=2_000_000,
            timeout_seconds=30.0,
            max_tokens=2048,
        ),
    )
    assert "the key" not in repr(found)


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://judge:9000", "http://judge:9000/v1"),
        ("https://judge.example/", "https://judge.example/v1"),
        ("https://judge.example/openai/v1", "https://judge.example/openai/v1"),
    ],
)
def test_a_url_without_a_path_means_v1(given: str, url: str, minimal: dict[str, Any], loaded: Loaded) -> None:
    judge = loaded(with_judge(minimal, given)).adjudication.judge
    assert judge is not None
    assert judge.url == url


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (
            "http://gpu-a:8000",
            "http://gpu-a:8000/v1 is under test, in backends of tier 'bf16' of model 'qwen'",
        ),
        ("http://GPU-B:8000/other/v1", "in backends of tier 'w8a8' of model 'qwen'"),
        ("http://gpu-a.:8000/v1", "in backends of tier 'bf16'"),
        ("http://gpu-s:7000", "in shadow of tier 'bf16' of model 'qwen'"),
        ("https://gateway.example:443", "in backends of tier 'w4a16' of model 'qwen'"),
        ("http://localhost:8080", "is the proxy itself (proxy.listen 127.0.0.1:8080)"),
        ("http://[::1]:8001/v1", "in backends of tier 'here' of model 'qwen'"),
        ("http://127.0.0.2:8001/v1", "in backends of tier 'here' of model 'qwen'"),
        ("http://127.1:8001/v1", "in backends of tier 'here' of model 'qwen'"),
        ("http://[::ffff:127.0.0.1]:8001", "in backends of tier 'here' of model 'qwen'"),
    ],
)
def test_a_judge_that_is_under_test_is_refused_by_name(
    url: str, said: str, minimal: dict[str, Any], problems: Problems
) -> None:
    ladder = minimal["models"]["qwen"]["ladder"]
    ladder[0]["shadow"] = ["http://gpu-s:7000"]
    ladder.append({"tier": "w4a16", "backends": ["https://gateway.example"]})
    ladder.append({"tier": "here", "backends": ["http://127.0.0.1:8001"]})
    (problem,) = problems(with_judge(minimal, url))
    assert said in problem
    assert problem.endswith("a judge must not judge its own answers")
    assert "adjudication.judge.url" in problem


@pytest.mark.parametrize("url", ["http://gpu-a:8001", "https://gpu-a", "http://gpu-c:8000"])
def test_another_port_or_host_is_another_server(url: str, minimal: dict[str, Any], loaded: Loaded) -> None:
    assert loaded(with_judge(minimal, url)).adjudication.judge is not None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"judge": {"url": "judge.example", "model": "m"}}, "expected http(s)://HOST[:PORT][/PATH]"),
        ({"judge": {"url": "http://u:p@judge", "model": "m"}}, "credentials do not belong in a URL"),
        ({"judge": {"url": "http://j/v1/chat/completions", "model": "m"}}, "leave out /chat/completions"),
        ({"judge": {"url": "http://j/v1?a=b", "model": "m"}}, "expected http(s)://HOST"),
        ({"judge": {"url": "http://j:0", "model": "m"}}, "expected http(s)://HOST"),
        ({"judge": {"url": "http://j"}}, "the key `model` is missing here"),
        ({"judge": {"url": "http://j", "model": "m", "api_key": "s"}}, "name that in `api_key_file`"),
        ({"judge": {"url": "http://j", "model": "m", "api_key_file": "none.key"}}, "there is no file"),
        ({"judge": {"url": "http://j", "model": "m", "max_tokens": 1}}, "adjudication.judge.max_tokens"),
        ({"evaluators": ["refusals"]}, "did you mean `refusal`?"),
        ({"evaluators": ["refusal", "refusal"]}, "'refusal' stands in this list twice"),
        ({"evaluators": ["field_agreement"]}, "field_agreement compares two answers"),
        ({"audit": "120%"}, "adjudication.audit"),
        ({"keep": "0s"}, "adjudication.keep"),
    ],
)
def test_what_cannot_be_meant_is_said(
    changes: dict[str, object], said: str, minimal: dict[str, Any], problems: Problems
) -> None:
    assert any(said in problem for problem in problems({**minimal, "adjudication": changes}))


def test_an_api_key_of_more_than_one_line_is_refused_without_being_shown(
    minimal: dict[str, Any], problems: Problems, tmp_path: Path
) -> None:
    (tmp_path / "judge.key").write_text("sec\x01ret\n")
    (problem,) = problems(with_judge(minimal, "http://j", api_key_file="judge.key"))
    assert "an API key is printable ASCII on one line" in problem
    assert "ret" not in problem.split("api_key_file", 1)[1]


def test_nobody_is_asked_when_nothing_is_queued(minimal: dict[str, Any], loaded: Loaded) -> None:
    assert loaded({**minimal, "adjudication": {"evaluators": []}}).adjudication.evaluators == ()
