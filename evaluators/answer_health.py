"""Whether an answer is sound, whatever it says: written, ended by itself, neither looping nor broken.

One exclusive class per answer, in this order of precedence: `engine_error`, `runaway`, `white_space_flood`,
`repetition`, `empty`, `cut_short`, `filtered`, `language_switch`, `ok`. One evaluator and not six: each costs
the worker a unit of every pair (ADR 22).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from evaluators.beside import beside, ratio_range
from evaluators.exchange import Answer, Fault, Request
from evaluators.repetition import flooded, loop_in
from evaluators.score import Detail, Score, failed
from evaluators.scripts import switched_to

_BROKEN_TEXT = re.compile(
    r"!{24}|\ufffd{8}|\x00{4}"
    r"|(?i:\bnan\b[\s,;]*){6}|(?i:nan){8}"
    r"|(?:(?:<unk>|<pad>|<s>|</s>|<\|endoftext\|>|<\|im_end\|>|<\|eot_id\|>|\[UNK\]|\[PAD\]"
    r"|<\|reserved_special_token_\d+\|>)\s*){4}"
)
"""What a model writes whose logits are not numbers: token 0 for ever ("!" in many vocabularies), unknown and
padding tokens, bytes that are no character."""
_BROKEN_ENGINE = re.compile(
    r"(?i:\bnan\b|\binf\b|\binfinity\b|not JSON compliant|probability tensor|non-?finite"
    r"|CUDA error|illegal memory access|device-side assert|HIP error|out of memory|EngineDeadError"
    r"|engine (?:core|loop|is dead)|cublas|cudnn|assert(?:ion)? ?(?:error|failed))"
)
"""What engines say when a kernel gave them something that is not a number, or died of it."""
_UNSEEN = 4
"""Tokens that came to no text, at the token limit, which are no accident of the last character."""
_LOOK = 16_384
"""Characters looked at for these, of both ends of an answer."""
FILTERED = frozenset({"content_filter"})


@dataclass(frozen=True, slots=True)
class AnswerHealth:
    """Judges every generation but probes. Says nothing about whether an answer is right."""

    name: ClassVar[str] = "answer_health"
    version: ClassVar[str] = "2"

    def applies(self, request: Request) -> bool:
        """Not to a request that asks for no text of its own: probes, `echo`, no token at all."""
        return request.needle is None and not request.body.get("echo") and request.max_tokens != 0

    def score(self, request: Request, answer: Answer) -> Score:
        """The class of one answer; what it writes while thinking may loop or break as well."""
        if answer.broken_logprobs:
            found = f"{answer.broken_logprobs} tokens whose log probability is no finite number"
            return failed("engine_error", f"expected numbers, found {found}", answer.text)
        for written in (answer.text, answer.reasoning):
            failure = _damage(written, answer)
            if failure is not None:
                return failure
        if (unseen := _unseen(request, answer)) is not None:
            return unseen
        ended = _ending(answer)
        if ended is not None:
            return ended
        if _is_prose(request, answer):
            to = switched_to([message.text for message in request.messages], answer.text)
            if to is not None:
                reason = f"expected the language of the request, found {to} letters that it has none of"
                return failed("language_switch", reason, answer.text)
        return Score(passed=True, label="ok")

    def details(self, baseline: Answer, candidate: Answer) -> tuple[Detail, ...]:
        """The ratio of lengths by range; whether tools and ends differ. Nothing of what was said."""
        found = beside(baseline, candidate)
        told = (
            (found.length_ratio is not None, Detail("length", ratio_range(found.length_ratio or 1.0))),
            (not found.tool_choice_agrees, Detail("tool choice", "differs")),
            (not found.finish_reason_agrees, Detail("finish reason", "differs")),
        )
        return tuple(detail for is_told, detail in told if is_told)

    def score_fault(self, request: Request, fault: Fault) -> Score:
        """A generation that broke: `engine_error` if it smells of numbers that are none, else `fault`."""
        if _BROKEN_ENGINE.search(fault.detail):
            return failed("engine_error", str(fault), fault.detail)
        return failed("fault", str(fault))


def _damage(written: str, answer: Answer) -> Score | None:
    if not written:
        return None
    ends = written if len(written) <= 2 * _LOOK else f"{written[:_LOOK]}\n{written[-_LOOK:]}"
    broken = _BROKEN_TEXT.search(ends)
    if broken is not None:
        reason = (
            "the text looks like logits that are not numbers: one token, or no character, again and again"
        )
        return failed("engine_error", reason, ends[broken.start() :])
    unlimited = answer.finish_reason == "length"
    if flooded(written):
        where = "to the token limit" if unlimited else "and more"
        return failed(
            "runaway" if unlimited and not written[-64:].strip() else "white_space_flood",
            f"256 characters of white space in a row {where}",
            written[:200],
        )
    loop = loop_in(written)
    if loop is None:
        return None
    reason = f"said {loop.times} times in a row"
    if unlimited and loop.at_end:
        return failed("runaway", f"{reason}, to the token limit", loop.unit)
    return failed("repetition", reason, loop.unit)


def _unseen(request: Request, answer: Answer) -> Score | None:
    """To the token limit, and nothing to be seen: engines leave out padding and other special tokens, which
    a model writes for ever once its logits are no numbers. Thinking that is not shown is no sign."""
    seen = answer.text or answer.reasoning or answer.tool_calls or answer.refusal
    hidden = answer.reasoning_hidden or request.body.get("include_reasoning") is False
    if seen or hidden or answer.finish_reason != "length":
        return None
    unseen = (answer.completion_tokens or 0) - (answer.reasoning_tokens or 0)
    if unseen < _UNSEEN:
        return None
    reason = f"{unseen} tokens to the token limit came to no text at all"
    return failed("engine_error", reason, "")


def _ending(answer: Answer) -> Score | None:
    if not answer.text.strip() and not answer.tool_calls and not answer.refusal:
        thought = f" after {len(answer.reasoning)} characters of thinking" if answer.reasoning else ""
        return failed("empty", f"nothing was written{thought}, finish_reason {answer.finish_reason}", "")
    if answer.finish_reason == "length":
        return failed("cut_short", "the token limit came before the end", answer.text[-200:])
    if answer.finish_reason in FILTERED:
        return failed("filtered", f"finish_reason is {answer.finish_reason}", answer.text[-200:])
    return None


def _is_prose(request: Request, answer: Answer) -> bool:
    """JSON has keys in English whatever language it is about."""
    return not request.wants_json and answer.text.lstrip()[:1] not in ("", "{", "[")
