"""Prompts of a wanted length, made of words: what a workload matrix sends where no traffic was captured.

    tokens of a prompt = fixed + words x tokens of a word          both from two answers that told their usage

Each begins with a name of its own, so that no prefix cache knows it, and then goes on in common English
words. Which words is drawn from a seed: the same question asks the same prompts.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from evaluators.exchange import Request
from service.wire import parse_request

CHAT = "/v1/chat/completions"
_TEXT = (
    "time year people way day man thing woman life child world school state family student group "
    "country problem hand part place case week company system program question work government number "
    "night point home water room mother area money story fact month lot right study book eye job word "
    "business issue side kind head house service friend father power hour game line end member law "
    "car city community"
)
WORDS = tuple(_TEXT.split())
FEW, MANY = 64, 256
"""Words of the two prompts by which tokens are told from words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """How many tokens an engine makes of words."""

    fixed: float = 0.0
    """Tokens of a prompt without words: its template."""
    word: float = 1.35
    """Tokens of a word; by default about that of tokenizers of 32 thousand entries."""

    def __post_init__(self) -> None:
        if self.fixed < 0 or self.word <= 0:
            raise ValueError("more words are more tokens, and a template takes none back")

    def words(self, tokens: int) -> int:
        """Of a prompt of so many tokens; at least 1."""
        return max(1, round((tokens - self.fixed) / self.word))


def measure(few: int, many: int) -> Measure:
    """From the tokens of prompts of `FEW` and `MANY` words; `ValueError` where more words are not more."""
    word = (many - few) / (MANY - FEW)
    if word <= 0:
        raise ValueError(f"{FEW} words are {few} tokens, and {MANY} words {many}: its usage cannot be right")
    return Measure(fixed=max(0.0, few - FEW * word), word=word)


def text(words: int, *, seed: str) -> str:
    """So many words, the first of which is a name of its own."""
    chance = random.Random(seed)
    return " ".join((f"{chance.getrandbits(40):010x}", *(chance.choice(WORDS) for _ in range(words - 1))))


def body(words: int, *, seed: str, model: str, output_tokens: int, ignore_eos: bool) -> bytes:
    """A chat request that asks for an answer of so many tokens.

    With `ignore_eos` of exactly so many, where the engine knows that word (vLLM, SGLang, llama.cpp): answers
    of unlike lengths would make cells unlike.
    """
    asked: dict[str, object] = {
        "model": model,
        "messages": [{"role": "user", "content": text(words, seed=seed)}],
        "max_tokens": output_tokens,
        "temperature": 0,
    }
    if ignore_eos:
        asked["ignore_eos"] = True
    return json.dumps(asked).encode()


def requests(
    count: int, *, words: int, seed: str, model: str, output_tokens: int, ignore_eos: bool
) -> Iterator[Request]:
    """So many, each another; `seed` names the cell, so that no two cells share any."""
    for number in range(count):
        made = body(
            words, seed=f"{seed}:{number}", model=model, output_tokens=output_tokens, ignore_eos=ignore_eos
        )
        yield parse_request(CHAT, made)


def marked(request: Request, mark: str) -> Request:
    """The same with a word before its first message, so that no cell's prefix cache knows another's prompts.

    Within a cell the mark is one, so that what captured prompts share is shared still. A request whose first
    message is no text stays as it is.
    """
    messages = request.body.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    if not isinstance(first, dict) or not isinstance(first.get("content"), str):
        return request
    changed = [{**first, "content": f"{mark} {first['content']}"}, *messages[1:]]  # type: ignore[index]
    return replace(request, body={**request.body, "messages": changed})
