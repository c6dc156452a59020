"""A recall question appended to a captured request, with everything else that would shape the answer removed.

The prompt up to the end of the captured one stays as it is, so that a prefix cache serves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from evaluators.exchange import Endpoint, Format, Json, Needle, Request
from service.wire.formats import GUIDES
from service.wire.replay import without_traces
from service.wire.requests import read_body
from service.wire.shapes import NotARequest

SHAPING = frozenset(
    {
        *GUIDES,
        "response_format",
        "output_format",
        "output_config",
        "stop",
        "stop_sequences",
        "stop_token_ids",
        "include_stop_str_in_output",
        "n",
        "best_of",
        "logprobs",
        "top_logprobs",
        "prompt_logprobs",
        "echo",
        "suffix",
        "stream",
        "stream_options",
        "prediction",
        "modalities",
        "audio",
        "verbosity",
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "min_tokens",
        "ignore_eos",
        "truncate_prompt_tokens",
        "parallel_tool_calls",
        "tool_choice",
        "function_call",
        # sampling: probes are greedy
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "typical_p",
        "seed",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
        "repeat_penalty",
        "logit_bias",
        "use_beam_search",
        "length_penalty",
        "allowed_token_ids",
        "bad_words",
        "thinking",
    }
)
"""Keys that shape an answer: a probe drops them, and sets itself or takes from `extra_body` what it needs."""


def probe_request(
    request: Request, needle: Needle, *, max_tokens: int, extra_body: Mapping[str, Json]
) -> Request:
    """The captured request asking for `needle` instead, greedily and unstreamed, in at most `max_tokens`.

    The question is appended to the last user message; after an assistant or tool message it is a new user
    turn. Tools stay in the prompt but may not be called. `extra_body` (thinking off, say) is merged in last,
    objects within it key by key. Raises `NotARequest` for a prompt that is token ids.
    """
    body = {key: value for key, value in without_traces(request).items() if key not in SHAPING}
    body.update(_asking(request, needle.question))
    body["temperature"] = 0
    if request.tools:
        body["tool_choice"] = {"type": "none"} if request.endpoint is Endpoint.MESSAGES else "none"
    body[_limit_key(request)] = max_tokens
    for key, value in extra_body.items():
        held = body.get(key)
        body[key] = {**held, **value} if isinstance(held, dict) and isinstance(value, dict) else value
    probe = read_body(request.endpoint, body)
    return replace(probe, format=Format.TEXT, schema=None, constrained=False, needle=needle)


def _limit_key(request: Request) -> str:
    if request.endpoint is Endpoint.RESPONSES:
        return "max_output_tokens"
    return "max_completion_tokens" if "max_completion_tokens" in request.body else "max_tokens"


def _asking(request: Request, question: str) -> dict[str, Json]:
    """The key of the body that holds the prompt, with the question behind it."""
    body = request.body
    if request.endpoint is Endpoint.COMPLETIONS:
        prompt = body.get("prompt")
        first = prompt[0] if isinstance(prompt, list) else prompt
        if not isinstance(first, str):
            raise NotARequest("a prompt of token ids cannot be asked a question")
        return {"prompt": f"{first}\n\nQuestion: {question}\nAnswer:"}
    if request.endpoint is Endpoint.RESPONSES:
        asking: dict[str, Json] = {"input": _with_question(body.get("input"), question, "input_text")}
        text = body.get("text")
        if isinstance(text, dict):  # text.format is the response format of this dialect
            asking["text"] = {key: value for key, value in text.items() if key not in ("format", "verbosity")}
        return asking
    return {"messages": _with_question(body.get("messages"), question, "text")}


def _behind(question: str) -> str:
    """The question as it follows a task that is still open, which a model would else answer first or instead.

    On a 135M model 22 of 24 probes were answered with such words and 19 without (SmolLM2, F16).
    """
    chinese = any("\u4e00" <= char <= "\u9fff" for char in question)
    return f"\n\n现在只回答这个问题：{question}" if chinese else f"\n\nNow answer only this: {question}"


def _with_question(turns: Json, question: str, part_type: str) -> Json:
    if isinstance(turns, str):
        return turns + _behind(question)
    *before, last = turns
    if last.get("role") != "user":
        return [*turns, {"role": "user", "content": question}]
    content = last.get("content")
    if isinstance(content, list):
        asked: Json = [*content, {"type": part_type, "text": _behind(question)}]
    else:
        asked = content + _behind(question) if content else question
    return [*before, {**last, "content": asked}]
