"""Natural needles: facts of a captured context whose answer is known without a label.

A needle is a value that occurs exactly once in the whole prompt, stated of a key on its left that stands
nowhere else but in questions: `The access code of the blue room is 4821.`, `Invoice number: INV-20391`,
`订单号为 20391`. Who mentions a key again may say something else of it, in words that no pattern knows. The
closing question (last paragraph of the last user turn) yields none, nor does a value that could be guessed
from its question. Everything is decided by the text and a seed: a capture gives the same needles on every
worker.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from evaluators.exchange import Needle, Request
from evaluators.needle_claims import is_asked, is_cell_of_pair, is_stated
from evaluators.needle_keys import chinese_key, label_key, sentence_key
from evaluators.needle_values import VALUE, gives_away, is_value
from evaluators.values import TOKEN, normal, occurrences

MAX_CHARS = 2_000_000
"""Characters of context that are searched."""
MAX_CANDIDATES = 400
"""Candidates whose uniqueness is checked, evenly spread over the context."""

_BEHIND = r"(?![\w@%])(?![-.,:/][A-Za-z0-9])"

_SENTENCE = re.compile(rf" (?:is|was|equals)(?: now| currently| set to| exactly)? {VALUE}{_BEHIND}")
_LABEL = re.compile(rf"(?::|=>?|\|)[ \t*_]*{VALUE}{_BEHIND}")
_CHINESE = re.compile(
    rf"(?<=[\u4e00-\u9fff]) ?(?:[是为]|[:：=]) ?{VALUE}(?![A-Za-z0-9@%])(?![-.,:/][A-Za-z0-9])"
)
"""Verb or mark, then a value; the key is read from the text on their left."""


_LABEL_MARKS = (":", "：", "=", "|")


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
    prompt, closing = _prompt_of(request)
    if limit <= 0 or len(prompt) < max(min_chars, 1):
        return ()
    prompt = prompt[:MAX_CHARS]
    found = [one for one in _candidates(prompt) if not closing[0] <= one.at < closing[1]]
    outside = f"{prompt[: closing[0]]}\0{prompt[closing[1] :]}".casefold()
    chosen = _spread(_unique(found, prompt, outside, _tools(request), seed), len(prompt), seed, limit)
    return tuple(
        Needle(key=one.key, value=one.value, question=_question(one), depth=round(one.at / len(prompt), 4))
        for one in sorted(chosen, key=lambda one: one.at)
    )


def outside_question(request: Request) -> str:
    """All text of the prompt but its closing question."""
    prompt, closing = _prompt_of(request)
    return f"{prompt[: closing[0]]}\n\n{prompt[closing[1] :]}"


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
            closing = (length + closing_begin(text), length + len(text))
        calls = "".join(f"\n{call.name} {call.arguments}" for call in turn.tool_calls)
        written.append(text + calls)
        length += len(text) + len(calls) + 2
    return "\n\n".join(written), closing


def _tools(request: Request) -> str:
    """The offered tools as they are written: they are in the prompt, and may say a value as well."""
    tools = request.body.get("tools")
    return json.dumps(tools, ensure_ascii=False)[:MAX_CHARS] if isinstance(tools, list) else ""


_LONGEST_QUESTION = 1000
_LEAST_QUESTION = 300
"""Characters. A last paragraph longer than the one is context written without blank lines: of it, the lines
(or the sentences, where it is one line) that make up its last `_LEAST_QUESTION`."""
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n\s*")
_SENTENCE_START = re.compile(r"(?<=[.!?]) |(?<=[。！？])")


def closing_begin(text: str) -> int:
    """Where in the text of the last user turn the closing question begins."""
    stripped = text.rstrip()
    begin = max((match.end() for match in _BLANK_LINE.finditer(stripped)), default=0)
    if len(stripped) - begin <= _LONGEST_QUESTION:
        return begin
    latest = len(stripped) - _LEAST_QUESTION
    line = stripped.rfind("\n", begin, latest)
    if line >= 0 and len(stripped) - line <= _LONGEST_QUESTION:
        return line + 1
    window = max(begin, len(stripped) - _LONGEST_QUESTION)
    return max((m.end() for m in _SENTENCE_START.finditer(stripped, window, latest)), default=window)


def _candidates(prompt: str) -> Iterator[_Found]:
    """Every value stated of a key on its left; not yet known to be unique."""
    for pattern, key_of in ((_SENTENCE, sentence_key), (_LABEL, label_key), (_CHINESE, chinese_key)):
        for match in pattern.finditer(prompt):
            begin, end = match.start(), match.end()
            if not is_value(match["value"]):
                continue
            # a line break within JSON ends a line as any other does
            key = key_of(prompt[max(0, begin - 200) : begin].replace("\\n", " \n"))
            if not key or gives_away(normal(key), normal(match["value"])):
                continue
            mark = prompt[begin : match.start("value")].strip()
            if not is_stated(prompt, begin, end, label=mark[:1] in _LABEL_MARKS):
                continue
            if mark.startswith("|") and not is_cell_of_pair(prompt, begin, end):
                continue
            chinese = pattern is _CHINESE
            yield _Found(key=key, value=match["value"], chinese=chinese, at=match.start("value"))


def _question(found: _Found) -> str:
    if found.chinese:
        return f"{found.key}是什么？"
    owner = found.key.split(" ")[0].endswith(("'s", "’s"))
    return f"What is {found.key}?" if owner else f"What is the {found.key}?"


def _unique(found: list[_Found], prompt: str, outside: str, tools: str, seed: int | str) -> list[_Found]:
    """Those whose value stands once in all of the prompt, and whose key stands once outside the question."""
    keys = Counter(one.key.casefold() for one in {one.at: one for one in found}.values())
    compared = normal(f"{prompt}\n{tools}")
    # One pass counts them all; a value that stands there with either sign is not unique.
    tokens = Counter(TOKEN.findall(compared))
    fit = [
        one
        for one in sorted({one.at: one for one in found}.values(), key=lambda one: one.at)
        if keys[one.key.casefold()] == 1 and _stands_once(normal(one.value), tokens, compared)
    ]
    if len(fit) > MAX_CANDIDATES:
        fit = _spread(fit, len(prompt), seed, MAX_CANDIDATES)
    return [one for one in fit if _is_named_once(one.key.casefold(), outside)]


def _stands_once(value: str, tokens: Counter[str], compared: str) -> bool:
    if TOKEN.fullmatch(value):
        return tokens[value] == 1
    return occurrences(value, compared) == 1


_WORDY = re.compile("[a-z0-9_]")
_MOST_PARTS = 1000
"""Longer words in which a key may stand; one that stands in more is no name to ask by."""


def _is_named_once(key: str, text: str) -> bool:
    """Whether a key stands once in a text, where words end, other than in a question; both casefolded."""
    places = 0
    at = text.find(key)
    for _ in range(_MOST_PARTS):
        if at < 0 or places > 1:
            return places == 1
        end = at + len(key)
        begins = not (_WORDY.match(key) and _WORDY.match(text[max(0, at - 1) : at]))
        ends = not (_WORDY.match(key[-1]) and _WORDY.match(text[end : end + 1]))
        places += begins and ends and not is_asked(text, at, end)
        at = text.find(key, at + 1)
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
