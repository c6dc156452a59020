"""A probe's prompt begins as the captured one did: llama.cpp itself serves that beginning from its cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from evaluators.exchange import Endpoint, Json
from evaluators.needles import mine
from service.demo.probe_cache import LEAST, measure
from service.wire import parse_request, probe_request, replay_body, write_body
from tests.demo.test_llama_server import serving
from tests.demo.tiny_llama import write_tiny_llama

FACTS = " ".join(f"The door code of hall {name} is {4801 + 37 * ord(name)}." for name in "ABCDEFGHIJ")
USER = {"role": "user", "content": f"{FACTS}\n\nSum it up."}
TURNS: dict[str, list[dict[str, Json]]] = {
    "one message": [USER],
    "a system prompt": [{"role": "system", "content": FACTS}, {"role": "user", "content": "Sum it up."}],
    "an answer last": [USER, {"role": "assistant", "content": "Ten halls have codes."}],
}


def usage(http: httpx.Client, body: bytes) -> tuple[int, int]:
    """Tokens of the prompt, and how many of them came from the cache."""
    answer = http.post(
        Endpoint.CHAT_COMPLETIONS.value, content=body, headers={"content-type": "application/json"}
    )
    found: dict[str, Any] = answer.raise_for_status().json()["usage"]
    return found["prompt_tokens"], found["prompt_tokens_details"]["cached_tokens"]


def test_only_the_question_is_read_anew(tmp_path: Path) -> None:
    write_tiny_llama(tmp_path / "tiny.gguf")
    with serving(tmp_path / "tiny.gguf") as (http, _):
        for name, turns in TURNS.items():
            request = parse_request(
                Endpoint.CHAT_COMPLETIONS,
                write_body({"model": "tiny", "messages": turns, "max_tokens": 4, "temperature": 0.7}),
            )
            needles = mine(request, seed="a", limit=3, min_chars=1)
            assert len(needles) == 3
            captured, _ = usage(http, replay_body(request, model="tiny"))
            for needle in needles:
                probe = probe_request(request, needle, max_tokens=4, extra_body={})
                whole, cached = usage(http, replay_body(probe, model="tiny"))
                # what closes the user's turn and opens the assistant's is behind the question now
                assert cached > 0.9 * captured, name
                assert whole - cached < 0.5 * whole, name


def test_the_demo_s_own_texts_are_read_once_for_all_of_their_questions(tmp_path: Path) -> None:
    write_tiny_llama(tmp_path / "tiny.gguf")
    with serving(tmp_path / "tiny.gguf") as (http, _):
        found = measure(http, texts=1)
        assert found.questions >= 2
        assert found.cached < found.prompts
        assert found.share > LEAST
