"""Log probabilities that are no numbers: what a kernel that gave NaN leaves in an answer that looks sound.

JSON has no NaN, so engines write `null` (vLLM's streams, llama.cpp), the word (SGLang), or fail. -9999 is no
sign: vLLM writes it where it does not know.
"""

from __future__ import annotations

import math

from evaluators.exchange import Json


def broken(logprobs: Json, *, first: bool = True) -> int:
    """How many tokens that were written have a log probability that is no finite number.

    Alternatives do not count: a guide rules tokens out, and theirs is then minus infinity. Shapes that are
    not known count nothing. `first`: the list begins the answer; with `echo` its first token has none.
    """
    if isinstance(logprobs, list):
        return sum(_is_broken(entry) for entry in logprobs)
    if not isinstance(logprobs, dict):
        return 0
    found = sum(broken(logprobs.get(name)) for name in ("content", "refusal"))
    given = logprobs.get("token_logprobs")
    if isinstance(given, list):
        found += sum(map(_is_no_number, given[1:] if first and given[:1] == [None] else given))
    return found


def _is_broken(entry: Json) -> bool:
    return isinstance(entry, dict) and "logprob" in entry and _is_no_number(entry["logprob"])


def _is_no_number(value: Json) -> bool:
    if isinstance(value, str):  # some gateways put NaN into quotes
        return value.strip().lower().lstrip("+-") in ("nan", "inf", "infinity")
    return value is None or (isinstance(value, float) and not math.isfinite(value))
