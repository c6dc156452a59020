"""How much a request asks for: about how many tokens its prompt has, and how many it wants back. Pure.

There is no tokenizer here, and what a chat template adds is the engine's business. Four bytes of UTF-8 are
taken for a token, of whatever script: with a tokenizer of today (Qwen's) English prose has 3.5, Chinese 3.9,
Japanese 4.9, Russian 5.9 and source code 4.2. Digits, hex and base64 have 1.0 to 1.4: prompts full of them
are longer than estimated, and the engine has the last word. Images and files count nothing. Prompts of token
ids are counted exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

BYTES_PER_TOKEN = 4
FEWEST_BYTES_PER_TOKEN = 2
"""Of a body, however it is written: a token id and a comma."""
OUTPUT_WORDS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict")
"""Keys by which the engines' dialects limit the length of an answer; the last is llama.cpp's."""
CHOICE_WORDS = ("n", "best_of")

_TEXT = ("messages", "input", "system", "instructions", "tools", "functions", "suffix")
_MEDIA = frozenset({"data", "url", "image_url", "video_url", "audio_url", "file_url", "file_data"})
"""Their values are no text, unless the part says that it is of type text."""
_LONGEST_NUMBER = 20


class Prompt(NamedTuple):
    """The longest prompt of a request, in tokens."""

    tokens: int
    is_exact: bool
    key: str
    """Of the body, under which most of it stands."""


class Output(NamedTuple):
    """What a request wants back, in tokens of all its answers together."""

    tokens: float
    """Infinite for a number beyond all measure."""
    key: str
    """Of the body, that names the length of one answer."""
    answers: float


def prompt_of(body: Mapping[str, Any]) -> Prompt:
    """The prompt of any dialect; a batch of prompts is as long as its longest."""
    text = sum(_bytes_of(body[key]) for key in _TEXT if key in body)
    if body.get("prompt") is None:
        return Prompt(text // BYTES_PER_TOKEN, False, next((key for key in _TEXT if key in body), "prompt"))
    tokens, is_exact = max(map(_length, _batch(body["prompt"])))
    return Prompt(tokens + text // BYTES_PER_TOKEN, is_exact and not text, "prompt")


def output_of(body: Mapping[str, Any]) -> Output | None:
    """The largest number that the body gives; None when it gives none, or says that there is no limit."""
    named = {key: number for key in OUTPUT_WORDS if (number := _number(body.get(key))) is not None}
    if not named:
        return None
    key = max(named, key=lambda key: named[key])
    choices = max(_number(body.get(word)) or 1.0 for word in CHOICE_WORDS)
    answers = choices * len(_batch(body.get("prompt")))
    return Output(named[key] * answers, key, answers)


def _batch(prompt: object) -> list[object]:
    """The prompts of /v1/completions; a list of numbers is one, of token ids."""
    if isinstance(prompt, list) and not all(isinstance(each, int) for each in prompt):
        return prompt
    return [prompt]


def _length(prompt: object) -> tuple[int, bool]:
    """Tokens, and whether that is exact."""
    if isinstance(prompt, list):
        return len(prompt), True
    return _bytes_of(prompt) // BYTES_PER_TOKEN, False


def _number(value: object) -> float | None:
    """What an engine makes of it: `"300"` and 300.0 are 300 for some; None when it is none, or negative."""
    if isinstance(value, str):
        try:
            value = int(value) if len(value) <= _LONGEST_NUMBER else math.inf
        except ValueError:
            return None
    if not isinstance(value, int | float) or math.isnan(value) or value < 0:
        return None
    return float(value) if value <= 1e18 else math.inf


def _bytes_of(value: object) -> int:
    """Bytes of text in a JSON value, keys included, media not."""
    total = 0
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, str):
            total += len(part) if part.isascii() else len(part.encode("utf-8", "surrogatepass"))
        elif isinstance(part, list):
            left += part
        elif isinstance(part, dict):
            is_text = part.get("type") == "text"
            for key, inner in part.items():
                total += len(key)
                if key not in _MEDIA or (is_text and key == "data"):
                    left.append(inner)
    return total
