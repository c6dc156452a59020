"""Whether a request keeps to the limits of its model, before anybody waits for it. Pure.

Only bodies that may be above a limit are read for it. What cannot be read then is refused: a guard that lets
pass what it does not understand is none. What a guard lets pass the engine may still refuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from service.fleet import Ladder, Limits
from service.proxy.entry import admission
from service.proxy.entry.prompts import FEWEST_BYTES_PER_TOKEN, OUTPUT_WORDS, output_of, prompt_of
from service.proxy.entry.surface import Surface
from service.proxy.http.errors import Refusal, too_large

MOST_READ = 256 * 1024
"""Bytes of a body that is read to tell a short prompt from a long one: some milliseconds."""

_OUTPUT_WORDS = frozenset(word.encode() for word in OUTPUT_WORDS)


def guards(ladders: Mapping[str, Ladder]) -> dict[str, Guard]:
    """By model; for those that have something to keep to."""
    found = {model: Guard(ladder.limits) for model, ladder in ladders.items()}
    return {model: guard for model, guard in found.items() if guard.limits_size or guard.limits_tokens}


class Guard:
    """Of one model."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.limits_size = limits.max_request is not None
        self.limits_tokens = (
            limits.max_prompt_tokens is not None
            or limits.max_output_tokens is not None
            or limits.require_max_tokens
        )

    def refuse(
        self, body: bytes, plain: bytes | None, surface: Surface | None, *, generates: bool
    ) -> Refusal | None:
        """Why the request goes no further; `plain` is the body without its content coding."""
        limit = self._limits.max_request
        if limit is not None:
            if max(len(body), len(plain or b"")) > limit:
                return too_large(limit)
            if plain is None:  # nobody here can tell how large it is
                return _unreadable(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "has a Content-Encoding that hides it")
        if not generates or not self.limits_tokens:
            return None
        if plain is None:
            return _unreadable(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "has a Content-Encoding other than gzip, deflate and zstd"
            )
        if not self._may_exceed(plain, surface):
            return None
        content = admission.read_json(plain)
        if not isinstance(content, dict):
            return _unreadable(HTTPStatus.BAD_REQUEST, "is no JSON object, or one with too many parts")
        return self._prompt(content) or self._output(content)

    def _may_exceed(self, plain: bytes, surface: Surface | None) -> bool:
        """Whether the body is worth reading: most are short, and name no length of an answer."""
        limits = self._limits
        if limits.require_max_tokens or surface is None:
            return True
        if limits.max_output_tokens is not None and (
            surface.names_any(_OUTPUT_WORDS) or surface.may_be_disguised
        ):
            return True
        longest = limits.max_prompt_tokens
        return longest is not None and len(plain) > longest * FEWEST_BYTES_PER_TOKEN

    def _prompt(self, content: Mapping[str, object]) -> Refusal | None:
        limit = self._limits.max_prompt_tokens
        if limit is None or (prompt := prompt_of(content)).tokens <= limit:
            return None
        about = f"has {prompt.tokens}" if prompt.is_exact else f"has about {prompt.tokens}"
        return Refusal(
            status=HTTPStatus.BAD_REQUEST,
            code="context_length_exceeded",
            message=f"A prompt of this model may have {limit} tokens here, and yours {about}. Shorten it.",
            param=prompt.key,
        )

    def _output(self, content: Mapping[str, object]) -> Refusal | None:
        limit, asked = self._limits.max_output_tokens, output_of(content)
        if asked is None:
            if not self._limits.require_max_tokens:
                return None
            return _too_much("max_tokens_required", "Say how long an answer may be: max_tokens", "max_tokens")
        if limit is None or asked.tokens <= limit:
            return None
        together = f" in its {asked.answers:.0f} answers together" if asked.answers > 1 else ""
        return _too_much(
            "max_tokens_too_large",
            f"A request of this model may ask for {limit} tokens here, and yours asks for "
            f"{asked.tokens:.0f}{together}: {asked.key}",
            asked.key,
        )


def exceeds(plain: bytes | None, tokens: int) -> bool:
    """Whether a prompt is estimated at more; that of a body that cannot be read, or is large, is taken to be.

    Nothing is refused by it, so that it may not hold up everybody else: it reads no more than `MOST_READ`.
    """
    if plain is not None and len(plain) <= tokens * FEWEST_BYTES_PER_TOKEN:
        return False
    content = None if plain is None or len(plain) > MOST_READ else admission.read_json(plain)
    return not isinstance(content, dict) or prompt_of(content).tokens > tokens


def _too_much(code: str, message: str, param: str) -> Refusal:
    return Refusal(status=HTTPStatus.BAD_REQUEST, code=code, message=f"{message}.", param=param)


def _unreadable(status: HTTPStatus, why: str) -> Refusal:
    return Refusal(
        status=status, code="unreadable_body", message=f"This model's limits apply to tokens; the body {why}."
    )
