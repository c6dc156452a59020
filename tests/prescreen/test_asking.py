"""A pre-screen of real small servers, and the command that runs it."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner, Result

from service.cli import prescreen as command
from service.fleet import Backend, Ladder, Tier
from service.prescreen.asking import Screened, prescreen
from service.prescreen.forcing import Method
from service.prescreen.texts import own_requests
from tests.launch.conftest import serving
from tests.ports import free_port
from tests.prescreen.engines import SAID, vllm

WORDS = len(SAID.split())


def screened(*urls: str, texts: int = 4) -> list[Screened]:
    tiers = tuple(
        Tier(name=f"t{place}", backends=(Backend(url=url),), model=f"m{place}")
        for place, url in enumerate(urls)
    )
    ladder = Ladder(model="m", tiers=tiers)
    asked = own_requests()[:texts]
    return asyncio.run(prescreen(ladder, ladder.candidates, asked, max_tokens=32, told=lambda done, of: None))


def test_a_tier_that_thinks_alike_has_a_ratio_of_one_and_one_that_is_surprised_has_more() -> None:
    with vllm(lambda word: 1.0) as base, vllm(lambda word: 1.0) as alike, vllm(lambda word: 1.5) as other:
        same, surprised = screened(base, alike, other)
    assert same.method is Method.PROMPT_LOGPROBS
    assert same.found is not None
    assert (same.found.ratio, same.found.lower, same.found.upper) == (1.0, 1.0, 1.0)
    assert same.found.tokens == 4 * WORDS
    assert same.found.baseline == pytest.approx(math.e)
    assert surprised.found is not None
    assert surprised.found.ratio == pytest.approx(math.exp(0.5))


def test_the_baseline_s_answer_is_what_everybody_is_asked_about() -> None:
    asked: list[dict[str, Any]] = []
    with vllm(lambda word: 1.0) as base, vllm(lambda word: 1.0, asked=asked) as other:
        screened(base, other, texts=1)
    forced = [body for body in asked if "prompt_logprobs" in body]
    assert [body["messages"][-1] for body in forced] == [{"role": "assistant", "content": SAID}]
    assert {body["model"] for body in asked} == {"m1"}


def test_numbers_that_are_none_are_told_and_a_dead_or_silent_tier_is_named() -> None:
    def broken(word: str) -> float | None:
        return None if word == "sea" else 1.0

    dead = f"http://127.0.0.1:{free_port()}"
    silent = serving({}, post=lambda body: (200, {"choices": [{"message": {"content": "x"}}]}))
    with vllm(lambda word: 1.0) as base, vllm(broken) as nan, silent as other:
        of_nan, of_dead, of_silent = screened(base, nan, dead, other)
    assert (of_nan.broken, of_nan.found) == (4, None)
    assert of_dead.found is None
    assert sum(of_dead.skipped.values()) == 4
    (why,) = of_silent.skipped
    assert why == "t3: it gives no prompt_logprobs"


def ran(path: Path, *urls: str, arguments: tuple[str, ...] = ("qwen",)) -> Result:
    tiers = [{"tier": f"t{place}", "backends": [url]} for place, url in enumerate(urls)]
    (path / "tiergate.yaml").write_text(yaml.safe_dump({"models": {"qwen": {"ladder": tiers}}}))
    app = typer.Typer()
    command.register(app)
    return CliRunner().invoke(app, [*arguments, "-c", str(path / "tiergate.yaml")], env={"TERM": "dumb"})


def test_the_command_says_what_it_found_and_that_it_decides_nothing(tmp_path: Path) -> None:
    requests = tmp_path / "bodies.jsonl"
    lines = [json.dumps({"messages": [{"role": "user", "content": f"question {n}"}]}) for n in range(5)]
    requests.write_text("\n".join(lines))
    with vllm(lambda word: 1.0) as base, vllm(lambda word: 1.2) as other:
        found = ran(
            tmp_path, base, other, arguments=("qwen", "t1", "--requests", str(requests), "--limit", "4")
        )
        told = ran(tmp_path, base, other, arguments=("qwen", "--json"))
    assert found.exit_code == 0
    assert "ratio 1.2214" in found.stdout
    assert f"4 texts, {4 * WORDS} tokens, by prompt_logprobs" in found.stdout
    assert "approves nothing, rejects nothing and is kept nowhere" in found.stdout
    document = json.loads(told.stdout)
    assert document["decides"] is False
    assert document["tiers"][0]["figures"]["texts"] == 12
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bodies.jsonl", "tiergate.yaml"]


def test_broken_numbers_are_exit_1_and_nothing_measured_is_exit_3(tmp_path: Path) -> None:
    with vllm(lambda word: 1.0) as base, vllm(lambda word: None) as other:
        broken = ran(tmp_path, base, other)
        dead = ran(tmp_path, base, f"http://127.0.0.1:{free_port()}")
    assert broken.exit_code == 1
    assert "no numbers: weights or kernels are broken" in broken.stdout
    assert dead.exit_code == 3
    assert "t1: nothing could be measured" in dead.stdout


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("other",), "no model is called 'other'"),
        (("qwen", "t9"), "candidates are: t1"),
        (("qwen", "--requests", "/nowhere"), "cannot read /nowhere"),
    ],
)
def test_what_cannot_be_asked_is_exit_2(tmp_path: Path, arguments: tuple[str, ...], why: str) -> None:
    found = ran(tmp_path, "http://127.0.0.1:9", "http://127.0.0.1:8", arguments=arguments)
    assert found.exit_code == 2
    assert why in found.stderr
