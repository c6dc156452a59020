"""Making an engine say how likely words are that it did not choose; bodies in, log probabilities out. Pure.

Three ways, by engine:

- `prompt_logprobs`: vLLM gives those of the prompt, of which the answer is the end;
- `echo`: /v1/completions repeats its prompt with them (vLLM, SGLang and others);
- `grammar`: llama.cpp gives neither. A grammar that allows the answer alone makes it write just that, and it
  reports each token's probability as it was before the grammar.

The first two need the request without its answer once, to know where that begins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from evaluators.exchange import Endpoint, Json, Request
from service.prescreen.surprise import Forced
from service.wire.probe import SHAPING
from service.wire.replay import without_traces


class Method(StrEnum):
    """How words are forced."""

    PROMPT_LOGPROBS = "prompt_logprobs"
    ECHO = "echo"
    GRAMMAR = "grammar"


class CannotForce(ValueError):
    """The engine does not tell, or not of these words; the message says what was missing."""


LONGEST_ANSWER = 8_000
"""Characters of an answer that is forced; a grammar of more is refused by engines."""


def method_of(engine: str | None, endpoint: Endpoint) -> Method:
    """The way that an engine has for an endpoint. Raises `CannotForce` where there is none."""
    if endpoint not in (Endpoint.CHAT_COMPLETIONS, Endpoint.COMPLETIONS):
        raise CannotForce(f"{endpoint} gives no log probabilities of given words")
    if engine == "llama.cpp":
        return Method.GRAMMAR
    if endpoint is Endpoint.COMPLETIONS and engine != "vllm":
        return Method.ECHO
    if engine == "sglang":
        raise CannotForce("SGLang tells them on /v1/completions alone; give requests to that path")
    return Method.PROMPT_LOGPROBS


def asking_body(request: Request, *, model: str, max_tokens: int) -> dict[str, Json]:
    """The request put to the baseline greedily, unstreamed and without formats: whose answer is forced."""
    body = {key: value for key, value in without_traces(request).items() if key not in SHAPING}
    body |= {"model": model, "max_tokens": max_tokens, "temperature": 0}
    if request.tools:
        body["tool_choice"] = "none"
    return body


def forcing_bodies(method: Method, request: Request, answer: str, *, model: str) -> list[dict[str, Json]]:
    """What is sent, in order; what comes back goes to `read_forced` in the same order."""
    if not answer.strip():
        raise CannotForce("the baseline's answer is empty")
    if len(answer) > LONGEST_ANSWER:
        raise CannotForce(f"the baseline's answer has {len(answer)} characters, more than {LONGEST_ANSWER}")
    asked = asking_body(request, model=model, max_tokens=1)
    if method is Method.GRAMMAR:
        if request.tools:
            asked.pop("tools", None)
            asked.pop("tool_choice", None)
        return [
            asked
            | {
                "grammar": f"root ::= {_literal(answer)}",
                "max_tokens": len(answer.encode("utf-8", "replace")) + 8,
                **({"logprobs": True, "top_logprobs": 1} if _chats(request) else {"logprobs": 1}),
            }
        ]
    if method is Method.ECHO:
        prompt = _prompt(request)
        return [asked | {"prompt": f"{prompt}{answer}", "echo": True, "logprobs": 1}]
    if not _chats(request):
        return [asked, asked | {"prompt": f"{_prompt(request)}{answer}", "prompt_logprobs": 0}]
    said = {
        "messages": [*request.body["messages"], {"role": "assistant", "content": answer}],
        "add_generation_prompt": False,
        "continue_final_message": True,
        "prompt_logprobs": 0,
    }
    return [asked, asked | said]


def read_forced(method: Method, request: Request, answer: str, said: Sequence[Json]) -> Forced:
    """The answer's tokens in what came back. Raises `CannotForce`."""
    if method is Method.PROMPT_LOGPROBS:
        return _of_prompt(answer, *said)
    choice = _choice(said[0])
    told = choice.get("logprobs")
    if not isinstance(told, dict):
        raise CannotForce("it gives no log probabilities")
    if method is Method.ECHO:
        return _echoed(told, _prompt(request), answer)
    written = _text(choice)
    if written != answer:
        raise CannotForce(f"it does not write what the grammar allows: {written[:60]!r}")
    return _written(told, answer)


def _of_prompt(answer: str, short: Json, long: Json) -> Forced:
    usage = short.get("usage") if isinstance(short, dict) else None
    begin = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    told = long.get("prompt_logprobs") if isinstance(long, dict) else None
    if told is None:
        choices = long.get("choices") if isinstance(long, dict) else None
        first = choices[0] if isinstance(choices, list) and choices else {}
        told = first.get("prompt_logprobs") if isinstance(first, dict) else None
    if not isinstance(begin, int) or not isinstance(told, list):
        raise CannotForce("it gives no prompt_logprobs")
    behind = [next(iter(entry.values()), None) if isinstance(entry, dict) else None for entry in told[begin:]]
    tokens = [entry for entry in behind if isinstance(entry, dict)]
    decoded = "".join(str(entry.get("decoded_token", "")) for entry in tokens)
    if decoded and "".join(decoded.split()) != "".join(answer.split()) and "\ufffd" not in decoded:
        raise CannotForce(
            "its template does not end with the answer: what stands behind the prompt is another"
        )
    return _counted([entry.get("logprob") for entry in tokens])


def _echoed(told: Mapping[str, Json], prompt: str, answer: str) -> Forced:
    values, tokens, offsets = (told.get(name) for name in ("token_logprobs", "tokens", "text_offset"))
    if not isinstance(values, list) or not isinstance(tokens, list):
        raise CannotForce("it does not echo log probabilities of the prompt")
    if not isinstance(offsets, list) or len(offsets) != len(values):
        offsets = [sum(len(str(each)) for each in tokens[:at]) for at in range(len(tokens))]
    within = range(len(prompt), len(prompt) + len(answer))
    return _counted([value for value, at in zip(values, offsets, strict=False) if at in within])


def _written(told: Mapping[str, Json], answer: str) -> Forced:
    content = told.get("content")
    if isinstance(content, list):
        entries = [(each.get("token"), each.get("logprob")) for each in content if isinstance(each, dict)]
    else:
        tokens, values = told.get("tokens"), told.get("token_logprobs")
        if not isinstance(tokens, list) or not isinstance(values, list):
            raise CannotForce("it gives no log probabilities")
        entries = list(zip(tokens, values, strict=False))
    # What ends the answer is a token of its own, without text of the answer.
    return _counted([value for token, value in entries if token])


def _counted(values: Sequence[Any]) -> Forced:
    numbers = [float(value) for value in values if _is_number(value)]
    if not values:
        raise CannotForce("none of the answer's tokens has a log probability")
    return Forced(nats=-sum(numbers), tokens=len(numbers), broken=len(values) - len(numbers))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _chats(request: Request) -> bool:
    return request.endpoint is Endpoint.CHAT_COMPLETIONS


def _prompt(request: Request) -> str:
    prompt = request.body.get("prompt")
    first = prompt[0] if isinstance(prompt, list) and prompt else prompt
    if not isinstance(first, str):
        raise CannotForce("a prompt of token ids has no text to go on from")
    return first


def _choice(said: Json) -> Mapping[str, Json]:
    choices = said.get("choices") if isinstance(said, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise CannotForce("the answer has no choices")
    return choices[0]


def _text(choice: Mapping[str, Json]) -> str:
    message = choice.get("message")
    written = message.get("content") if isinstance(message, dict) else choice.get("text")
    return written if isinstance(written, str) else ""


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _literal(text: str) -> str:
    """A text as a literal of llama.cpp's grammars."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CannotForce("the baseline's answer holds half a surrogate pair") from None
    return '"' + "".join(_ESCAPES.get(char) or _plain(char) for char in text) + '"'


def _plain(char: str) -> str:
    return char if char >= " " and char != "\x7f" else f"\\x{ord(char):02X}"
