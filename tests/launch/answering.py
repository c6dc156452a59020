"""How small servers answer chats: they read, they think, they guess."""

from __future__ import annotations

import re
from typing import Any

from tests.evaluators.reader import read


def reply(text: str, *, reasoning: str = "", finish: str = "stop") -> tuple[int, Any]:
    message = {"role": "assistant", "content": text, "reasoning_content": reasoning}
    return 200, {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def reading(body: dict[str, Any]) -> tuple[int, Any]:
    """What the text says behind the name that its last line asks for."""
    text, _, question = body["messages"][-1]["content"].rpartition("Now answer only this: ")
    return reply(f"It is {read(text, question)}.")


def thinking(body: dict[str, Any]) -> tuple[int, Any]:
    """The answer, once 500 tokens have been thought; unless thinking is off."""
    if body.get("chat_template_kwargs") == {"enable_thinking": False} or body["max_tokens"] > 500:
        return reading(body)
    return reply("", reasoning="Let me see.", finish="length")


def guessing(body: dict[str, Any]) -> tuple[int, Any]:
    return reply("It is 12345.")


def refusing(body: dict[str, Any]) -> tuple[int, Any]:
    """Says which key it does not know."""
    unknown = [key for key in body if not re.fullmatch("model|messages|temperature|max_tokens", key)]
    return 400, {"error": {"message": f"unknown keys: {unknown}"}}
