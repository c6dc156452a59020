"""OpenAI completions, the endpoint of a bare prompt."""

from __future__ import annotations

from collections.abc import Mapping

from evaluators.exchange import Answer, Endpoint, Json, Message, Request
from service.wire import shapes
from service.wire.content import digest
from service.wire.formats import Asked, asking, read_formats
from service.wire.logprobs import broken
from service.wire.shapes import WrongShape
from service.wire.thinking import split_thinking


def read_request(body: Mapping[str, Json]) -> Request:
    """Raises `WrongShape` when the body has no prompt.

    Of several prompts the first is the request, since the first choice answers it. A prompt of token ids has
    no text that we could know; its digest stands for it. With `echo` the answer begins with the prompt, so it
    is not judged as JSON.
    """
    asked = Asked() if body.get("echo") else read_formats(body, body.get("response_format"))
    return asking(
        Endpoint.COMPLETIONS,
        body,
        [_prompt(body.get("prompt"))],
        asked,
        limit="max_tokens",
    )


def _prompt(prompt: Json) -> Message:
    first = prompt[0] if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int) else prompt
    if isinstance(first, str):
        return Message(role="user", text=first)
    if isinstance(first, list) and first:
        return Message(role="user", media=(f"tokens:{digest(first)}",))
    raise WrongShape("prompt is missing, empty, or neither text nor token ids")


class CompletionsAnswer:
    """Reads an answer, whole or streamed: both carry `choices[].text`."""

    def __init__(self) -> None:
        self._texts: dict[int, list[str]] = {}
        self._finish: dict[int, str] = {}
        self._broken: dict[int, int] = {}
        self._usage: Mapping[str, Json] = {}

    def add_body(self, body: Mapping[str, Json]) -> None:
        self._add(body, whole=True)
        if not self._texts:
            raise WrongShape("the answer has no choices")

    def add_event(self, event: Mapping[str, Json]) -> None:
        self._add(event, whole=False)

    def _add(self, body: Mapping[str, Json], *, whole: bool) -> None:
        for position, item in enumerate(shapes.items(body.get("choices"), "choices")):
            choice = shapes.mapping(item, "a choice")
            given = shapes.count(choice.get("index"), "index of a choice")
            index = (position if whole else 0) if given is None else given
            if whole and index in self._texts:
                continue  # every choice of a whole body is one of its own
            if choice.get("logprobs") is not None:
                found = broken(choice["logprobs"], first=index not in self._texts)
                self._broken[index] = self._broken.get(index, 0) + found
            self._texts.setdefault(index, []).append(shapes.text(choice.get("text"), "text of a choice"))
            if finish := shapes.text(choice.get("finish_reason"), "finish_reason"):
                self._finish[index] = finish
        self._usage = shapes.mapping(body.get("usage"), "usage") or self._usage

    @property
    def ended(self) -> bool:
        return bool(self._texts) and min(self._texts) in self._finish

    @property
    def failure(self) -> str | None:
        return None  # this dialect reports errors in a body of their own

    def answer(self) -> Answer:
        if not self._texts:
            raise WrongShape("the answer has no choices")
        first = min(self._texts)
        text, thinking = split_thinking(shapes.joined(self._texts[first]))
        return Answer(
            text=text,
            reasoning=thinking,
            finish_reason=self._finish.get(first),
            prompt_tokens=shapes.count(self._usage.get("prompt_tokens"), "prompt_tokens"),
            completion_tokens=shapes.count(self._usage.get("completion_tokens"), "completion_tokens"),
            cached_tokens=shapes.detail(self._usage, "prompt_tokens_details", "cached_tokens"),
            broken_logprobs=self._broken.get(first, 0),
        )
