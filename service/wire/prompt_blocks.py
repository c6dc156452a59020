"""Keyed hashes of a prompt's beginnings: which prompts begin alike, and nothing of what they say.

A block is some bytes of what an engine gets to read, in its order: instructions, tools, turns. Its hash
stands for it and all before it. There is no tokenizer here: four bytes of text are taken for a token, and
what is the same up to a block's end is so for every tokenizer. Prompts of token ids are counted exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from evaluators.exchange import Json, Message, Request
from service.wire.shapes import write_json

UNIT_TOKENS = 64
"""Of one block."""
BYTES_PER_TOKEN = 4
MOST_BLOCKS = 4096
"""Of one prompt: 262,144 tokens. What is behind them is compared with nothing."""

_UNIT_BYTES = UNIT_TOKENS * BYTES_PER_TOKEN
_INSTRUCTING = ("system", "developer")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBlocks:
    """A prompt, as far as prefix caches are concerned."""

    tokens: int
    """About as many."""
    named: tuple[int, ...]
    """63 bits each, for a block and all before it; the last one may be of a part."""


def prompt_blocks(request: Request, *, key: bytes) -> PromptBlocks:
    """The beginnings of a prompt under a key of 1 to 64 bytes; ValueError without one.

    Without a key, whoever has the hashes could try out what a prompt says.
    """
    if not key:
        raise ValueError("hashes of prompts need a key")
    ids = _token_ids(request)
    if ids is not None:
        parts = (
            ",".join(map(str, ids[begin : begin + UNIT_TOKENS])).encode()
            for begin in range(0, len(ids), UNIT_TOKENS)
        )
        return PromptBlocks(tokens=len(ids), named=tuple(_chained(parts, request.model, key)))
    text = "\n".join(_texts(request)).encode("utf-8", "surrogatepass")
    parts = (text[begin : begin + _UNIT_BYTES] for begin in range(0, len(text), _UNIT_BYTES))
    tokens = max(1, len(text) // BYTES_PER_TOKEN)
    return PromptBlocks(tokens=tokens, named=tuple(_chained(parts, request.model, key)))


def _chained(parts: Iterator[bytes], model: str, key: bytes) -> Iterator[int]:
    held = model.encode("utf-8", "surrogatepass")
    for number, part in enumerate(parts):
        if number == MOST_BLOCKS:
            return
        held = blake2b(held + b"\0" + part, digest_size=8, key=key[:64], person=b"prefix").digest()
        yield int.from_bytes(held, "big") >> 1


def _token_ids(request: Request) -> list[int] | None:
    """Of a prompt that is token ids; of several prompts the first, as everywhere."""
    prompt = request.body.get("prompt")
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], list):
        prompt = prompt[0]
    if isinstance(prompt, list) and prompt and all(type(each) is int for each in prompt):
        return prompt
    return None


def _texts(request: Request) -> Iterator[str]:
    """What chat templates write, in their order: tools stand behind the instructions."""
    first = next(
        (place for place, each in enumerate(request.messages) if each.role not in _INSTRUCTING),
        len(request.messages),
    )
    yield from map(_turn, request.messages[:first])
    tools: Json = request.body.get("tools")
    if tools:
        yield write_json(tools)
    yield from map(_turn, request.messages[first:])


def _turn(message: Message) -> str:
    calls = [[call.name, call.arguments] for call in message.tool_calls]
    beside = write_json([list(message.media), calls]) if message.media or calls else ""
    return f"{message.role}\n{message.text}{beside}"
