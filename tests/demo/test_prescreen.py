"""llama.cpp itself says how likely words are that it did not choose."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import httpx
import pytest

from evaluators.exchange import Endpoint
from service.prescreen.forcing import Method, forcing_bodies, read_forced
from service.wire import parse_request, write_body
from tests.demo.test_llama_server import serving
from tests.demo.tiny_llama import write_tiny_llama

ASKED = {"model": "tiny", "messages": [{"role": "user", "content": "ab"}]}
SAID = 'Sea "4\n'


def truth(http: httpx.Client, text: str) -> float:
    """Nats of the text behind the prompt, token by token, out of every token's probability.

    The model's tokens are bytes, and its template is the bare text.
    """
    tokens: list[int] = http.post("/tokenize", json={"content": "ab", "add_special": True}).json()["tokens"]
    nats = 0.0
    for byte in text.encode():
        asked = {"prompt": tokens, "n_predict": 1, "n_probs": 300, "temperature": 0}
        answer: dict[str, Any] = http.post("/completion", json=asked).raise_for_status().json()
        likely = {
            each["id"]: each["logprob"] for each in answer["completion_probabilities"][0]["top_logprobs"]
        }
        token = 3 + byte
        nats -= likely[token]
        tokens = [*tokens, token]
    return nats


def test_a_grammar_forces_words_and_their_probabilities_are_those_without_it(tmp_path: Path) -> None:
    write_tiny_llama(tmp_path / "tiny.gguf")
    request = parse_request(Endpoint.CHAT_COMPLETIONS, write_body(ASKED))
    with serving(tmp_path / "tiny.gguf") as (http, _):
        (body,) = forcing_bodies(Method.GRAMMAR, request, SAID, model="tiny")
        said = http.post(Endpoint.CHAT_COMPLETIONS.value, json=body).raise_for_status().json()
        found = read_forced(Method.GRAMMAR, request, SAID, [said])
        assert (found.tokens, found.broken) == (len(SAID), 0)
        assert found.nats > 1.0
        assert math.isclose(found.nats, truth(http, SAID), rel_tol=0.01) or pytest.fail(
            f"{found.nats} nats by the grammar, {truth(http, SAID)} without"
        )
