"""A small server that scores words as vLLM does, by a number of nats a word."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.launch.conftest import serving

SAID = "The sea is wide and the wind is strong today."


@contextmanager
def vllm(nats: Callable[[str], float | None], *, asked: list[dict[str, Any]] | None = None) -> Iterator[str]:
    """Answers `SAID` to everything; `nats` of a word is what it thinks of it, None for no number."""

    def post(body: dict[str, Any]) -> tuple[int, Any]:
        if asked is not None:
            asked.append(body)
        text = " ".join(turn["content"] for turn in body["messages"])
        words = text.split()
        answer: dict[str, Any] = {
            "choices": [{"index": 0, "message": {"content": SAID}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": len(words), "completion_tokens": 9},
        }
        if "prompt_logprobs" in body:
            answer["prompt_logprobs"] = [
                None if not at else {str(at): {"logprob": _logprob(nats(word)), "decoded_token": f" {word}"}}
                for at, word in enumerate(words)
            ]
        return 200, answer

    with serving(
        {"/version": (200, json.dumps({"version": "0.30.0"})), "/metrics": (200, "")}, post=post
    ) as url:
        yield url


def _logprob(nats: float | None) -> float | None:
    return None if nats is None else -nats
