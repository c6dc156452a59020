"""Natural needles: facts of a captured context whose answer is known without a label.

A needle is a value that occurs exactly once in the whole prompt, named by a key on its left that names
nothing else: `The access code of the blue room is 4821.`, `Invoice number: INV-20391`, `订单号为 20391`. The
closing question (last paragraph of the last user turn) yields none, nor does a value that the question would
give away. Everything is decided by the text and a seed: a capture gives the same needles on every worker.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from evaluators.exchange import Needle, Request
from evaluators.needle_keys import chinese_key, label_key, sentence_key
from evaluators.values import normal, occurrences

MAX_CHARS = 2_000_000
"""Characters of context that are searched."""
MAX_CANDIDATES = 400
"""Candidates whose uniqueness is checked, evenly spread over the context."""

_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = (
    r"\d{4}-\d{2}-\d{2}|\d{4}/\d{1,2}/\d{1,2}|\d{4} ?年 ?\d{1,2} ?月 ?\d{1,2} ?[日号]|"
    rf"(?:{_MONTH}) \d{{1,2}}, \d{{4}}|\d{{1,2}} (?:{_MONTH}) \d{{4}}"
)
_EMAIL = r"[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,3}\.[A-Za-z]{2,24}"
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{3,}(?:\.\d+)?|\d+\.\d{2,}"
_CODE = r"(?=[A-Za-z0-9_/.-]*\d)[A-Za-z0-9]+(?:[-_/.]?[A-Za-z0-9]+)*"
_VALUE = (
    r"[\"'`“*]{0,3}(?:[$€£¥#]|US\$|USD |EUR |CNY |RMB )?"
    rf"(?P<value>{_DATE}|{_EMAIL}|{_CODE}(?![\d,])|{_NUMBER})"
)
_BEHIND = r"(?![\w@%])(?![-.,:/][A-Za-z0-9])"

_SENTENCE = re.compile(rf" (?:is|was|equals)(?: now| currently| set to| exactly)? {_VALUE}{_BEHIND}")
_LABEL = re.compile(rf"(?::|=>?|\|)[ \t*_]*{_VALUE}{_BEHIND}")
_CHINESE = re.compile(
    rf"(?<=[\u4e00-\u9fff]) ?(?:[是为]|[:：=]) ?{_VALUE}(?![A-Za-z0-9@%])(?![-.,:/][A-Za-z0-9])"
)
"""Verb or mark, then a value; the key is read from the text on their left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    key: str
    value: str
    chinese: bool
    at: int
    """Where the value stands in the whole prompt, in characters."""


def mine(request: Request, *, seed: int | str, limit: int, min_chars: int) -> tuple[Needle, ...]:
    """At most `limit` needles of a request, spread over its depth and in its order.

    None when all its text is shorter than `min_chars`. `seed` chooses among equals.
    """
    prompt, open_until = _prompt_of(request)
    if limit <= 0 or len(prompt) < max(min_chars, 1):
        return ()
    prompt = prompt[:MAX_CHARS]
    found = [one for one in _candidates(prompt) if not _within(one.at, open_until)]
    fit = _unique(found, prompt, seed)
    chosen = _spread(fit, len(prompt), seed, limit)
    return tuple(
        Needle(key=one.key, value=one.value, question=_question(one), depth=round(one.at / len(prompt), 4))
        for one in sorted(chosen, key=lambda one: one.at)
    )


def _prompt_of(request: Request) -> tuple[str, tuple[int, int]]:
    """All text of the prompt, and the span in it of the closing question."""
    turns = request.messages
    last_user = max((i for i, turn in enumerate(turns) if turn.role == "user"), default=None)
    written: list[str] = []
    length = 0
    closing = (0, 0)
    for i, turn in enumerate(turns):
        text = turn.text
        if i == last_user:
            begin = _last_paragraph(text)
            closing = (length + begin, length + len(text))
        calls = "".join(f"\n{call.name} {call.arguments}" for call in turn.tool_calls)
        written.append(text + calls)
        length += len(text) + len(calls) + 2
    return "\n\n".join(written), closing


def _last_paragraph(text: str) -> int:
    """Where the last paragraph of a text begins; 0 when it has only one."""
    breaks = [match.end() for match in re.finditer(r"\n[ \t]*\n\s*", text.rstrip())]
    return breaks[-1] if breaks else 0


def _within(at: int, span: tuple[int, int]) -> bool:
    return span[0] <= at < span[1]


def _candidates(prompt: str) -> Iterator[_Found]:
    """Every value with a key on its left, in the order of the text; not yet known to be unique."""
    for pattern, key_of in ((_SENTENCE, sentence_key), (_LABEL, label_key), (_CHINESE, chinese_key)):
        for match in pattern.finditer(prompt):
            if not _is_value(match["value"]):
                continue
            key = key_of(prompt[max(0, match.start() - 200) : match.start()])
            if key:
                yield _Found(
                    key=key, value=match["value"], chinese=pattern is _CHINESE, at=match.start("value")
                )


def _is_value(value: str) -> bool:
    """Whether a value is long enough not to be guessed: four characters, or three digits of a number."""
    digits = sum(map(str.isdigit, value))
    return len(value) <= 80 and (digits >= 3 or "@" in value or (digits >= 2 and len(value) >= 5))


def _question(found: _Found) -> str:
    return f"{found.key}是什么？" if found.chinese else f"What is the {found.key}?"


def _unique(found: list[_Found], prompt: str, seed: int | str) -> list[_Found]:
    """Those whose key names one value and whose value stands once in the prompt."""
    keys: defaultdict[str, set[str]] = defaultdict(set)
    for one in found:
        keys[one.key.casefold()].add(normal(one.value))
    once = {one.at: one for one in found if len(keys[one.key.casefold()]) == 1}
    fit = sorted(once.values(), key=lambda one: one.at)
    if len(fit) > MAX_CANDIDATES:
        fit = _spread(fit, len(prompt), seed, MAX_CANDIDATES)
    compared = normal(prompt)
    all_keys = "\n".join(("", *keys, ""))
    unique: list[_Found] = []
    for one in fit:
        key, value = normal(one.key), normal(one.value)
        if _part_of_another(one.key.casefold(), all_keys) or value in key or _said_again(key, compared):
            continue
        if occurrences(value, compared) == 1:
            unique.append(one)
    return unique


_WORD = re.compile(r"[a-z0-9]")
_SAYS = re.compile(r"[ \t*_\"'`]*(?: is | was | equals |:|=|\||[是为])")


def _said_again(key: str, compared: str) -> bool:
    """Whether something is said of a key twice, whatever it is: `Total: ten` beside `Total: 4000` counts."""
    count = 0
    at = compared.find(key)
    while at >= 0 and count < 2:
        count += _SAYS.match(compared, at + len(key)) is not None
        at = compared.find(key, at + 1)
    return count > 1


def _part_of_another(key: str, all_keys: str) -> bool:
    """Whether a longer key says all of a shorter one, so that the shorter could mean either.

    `all_keys` has each on a line of its own: one search of it for a key, where a search of every key would
    take time in the square of their number.
    """
    at = all_keys.find(key)
    while at >= 0:
        before, behind = all_keys[at - 1], all_keys[at + len(key)]
        if before + behind != "\n\n" and not _WORD.match(before) and not _WORD.match(behind):
            return True
        at = all_keys.find(key, at + 1)
    return False


def _spread(found: list[_Found], length: int, seed: int | str, limit: int) -> list[_Found]:
    """At most `limit`, one from each of `limit` equal stretches first; the seed chooses within a stretch."""

    def draw(one: _Found) -> bytes:
        return hashlib.sha256(f"{seed}|{one.at}|{one.key}".encode("utf-8", "surrogatepass")).digest()

    stretches: defaultdict[int, list[_Found]] = defaultdict(list)
    for one in found:
        stretches[one.at * limit // max(length, 1)].append(one)
    for stretch in stretches.values():
        stretch.sort(key=draw)
    chosen = [stretch[0] for stretch in stretches.values()]
    spare = sorted((one for stretch in stretches.values() for one in stretch[1:]), key=draw)
    return (chosen + spare)[:limit]
