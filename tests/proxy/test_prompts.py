"""How long a prompt is about, and how much of an answer is asked for."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.proxy.entry.prompts import FEWEST_BYTES_PER_TOKEN, output_of, prompt_of


def user(content: object) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": content}]}


@pytest.mark.parametrize(
    ("body", "tokens", "key"),
    [
        # "role" + "user" + "content" = 15 bytes, which stand for what a template writes
        (user("x" * 385), 100, "messages"),
        (user("文" * 128 + "x"), 100, "messages"),  # three bytes each
        (user([{"type": "text", "text": "x" * 400}]), 106, "messages"),
        ({"messages": [], "system": "x" * 400}, 100, "messages"),
        ({"system": [{"type": "text", "text": "x" * 400}]}, 103, "system"),
        ({"input": "x" * 400}, 100, "input"),
        ({"input": [{"role": "user", "content": [{"type": "input_text", "text": "x" * 400}]}]}, 108, "input"),
        ({"instructions": "x" * 400, "input": "y" * 400}, 200, "input"),
        ({"prompt": "x" * 400}, 100, "prompt"),
        ({"prompt": ["x" * 40, "x" * 400]}, 100, "prompt"),
        ({"prompt": "x" * 400, "suffix": "y" * 40}, 110, "prompt"),
        ({"prompt": {"id": "p", "variables": {"text": "x" * 400}}}, 104, "prompt"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}, 8, "tools"),
        ({"model": "m" * 4000}, 0, "prompt"),
        ({"messages": None, "prompt": None}, 0, "messages"),
    ],
)
def test_text_is_four_bytes_a_token_wherever_it_stands(body: dict[str, Any], tokens: int, key: str) -> None:
    assert prompt_of(body) == (tokens, False, key)


@pytest.mark.parametrize(
    ("prompt", "tokens"), [([1] * 300, 300), ([[1] * 10, [2] * 300], 300), ([], 0), ([[]], 0)]
)
def test_token_ids_are_counted(prompt: object, tokens: int) -> None:
    assert prompt_of({"prompt": prompt}) == (tokens, True, "prompt")


def test_the_longest_of_a_mixed_batch_counts() -> None:
    assert prompt_of({"prompt": ["x" * 400, [1, 2, 3]]}) == (100, False, "prompt")
    assert prompt_of({"prompt": ["x" * 4, [1, 2, 3]]}) == (3, True, "prompt")


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 9000}},
        {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 9000},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 9000}},
        {"type": "input_audio", "input_audio": {"data": "A" * 9000, "format": "wav"}},
        {"type": "file", "file": {"file_data": "A" * 9000}},
    ],
)
def test_media_are_no_text(part: dict[str, Any]) -> None:
    assert prompt_of(user([part])).tokens < 40


def test_a_document_of_text_is() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "A" * 9000}
    assert prompt_of(user([{"type": "document", "source": source}])).tokens > 2250


def test_lone_surrogates_and_great_depth_are_counted_like_anything_else() -> None:
    assert prompt_of({"input": "\ud83d" * 400}).tokens == 300
    deep: object = "x" * 400
    for _ in range(5000):
        deep = [deep]
    assert prompt_of({"input": deep}).tokens == 100


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**6) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["prompt", "type", "data", "é"]), inner)
    ),
    max_leaves=20,
)


@given(
    st.dictionaries(st.sampled_from(["messages", "prompt", "input", "n", "max_tokens"]), JSON_VALUES),
    st.booleans(),
)
def test_no_prompt_is_longer_than_its_body_is_in_writing(body: dict[str, Any], ascii_only: bool) -> None:
    """What spares most bodies from being read."""
    written = json.dumps(body, ensure_ascii=ascii_only, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )
    assert prompt_of(body).tokens * FEWEST_BYTES_PER_TOKEN <= len(written)
    output_of(body)


@pytest.mark.parametrize(
    ("body", "tokens", "key", "answers"),
    [
        ({"max_tokens": 300}, 300, "max_tokens", 1),
        ({"max_tokens": 300, "max_completion_tokens": 400}, 400, "max_completion_tokens", 1),
        ({"max_output_tokens": 300, "n": None}, 300, "max_output_tokens", 1),
        ({"n_predict": 300}, 300, "n_predict", 1),
        ({"max_tokens": 300, "n": 4}, 1200, "max_tokens", 4),
        ({"max_tokens": 300, "n": 2, "best_of": 5}, 1500, "max_tokens", 5),
        ({"max_tokens": 300, "prompt": ["a", "b"]}, 600, "max_tokens", 2),
        ({"max_tokens": 300, "prompt": [1, 2, 3]}, 300, "max_tokens", 1),
        ({"max_tokens": 300, "prompt": [[1], [2]], "n": 2}, 1200, "max_tokens", 4),
        ({"max_tokens": "300"}, 300, "max_tokens", 1),
        ({"max_tokens": 300.0}, 300, "max_tokens", 1),
        ({"max_tokens": 10**30}, math.inf, "max_tokens", 1),
        ({"max_tokens": "9" * 5000}, math.inf, "max_tokens", 1),
        ({"max_tokens": math.inf}, math.inf, "max_tokens", 1),
        ({"max_tokens": 0}, 0, "max_tokens", 1),
    ],
)
def test_what_is_asked_for_is_the_largest_number_times_the_answers(
    body: dict[str, Any], tokens: float, key: str, answers: int
) -> None:
    assert output_of(body) == (tokens, key, answers)


@pytest.mark.parametrize("given_one", [None, -1, "many", [], {}, math.nan, "-1"])
def test_what_is_no_limit_names_none(given_one: object) -> None:
    assert output_of({"max_tokens": given_one}) is None
    assert output_of({}) is None
