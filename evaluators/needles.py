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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluators.exchange import Needle, Request
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
_LEFT_OF_VERB = re.compile(r"[^\n.!?;:|]{3,160}\Z")
_LEFT_OF_MARK = re.compile(
    r"(?:\A|[\n!?;,|{(]|\. )[ \t>*_#\"'•-]*([A-Za-z][A-Za-z0-9 _'./()-]{1,60}?)[ \t*_\"'`]*\Z"
)
_LEFT_IN_CHINESE = re.compile(r"[\u4e00-\u9fff][\u4e00-\u9fffA-Za-z0-9]{1,20}\Z")

_DETERMINERS = frozenset(("the", "our", "your", "my", "his", "her", "its", "their", "this"))
_LINKS = frozenset(("of", "for", "in", "on", "at", "to", "from", "with", "by", "under"))


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_STOPS = _words(
    """a an and are as be because been but can could did do does had has have he i if it me not or shall she
    should so than that then there these they those though today was we were what when where which while who
    whom why will would yes you is said says told tells think thinks know knows"""
)
_EMPTY_KEYS = _words(
    """answer value result number example question problem thing one rest idea point reason case same other
    first second third next last step note total sum output input text line page section chapter figure table
    http https www id no nr name time date year it this that"""
)
_CHINESE_STOPS = re.compile(
    "[我你您他她它]|这|那|请|如果|因为|所以|但是|而且|或者|以及|认为|觉得|知道|什么|多少|不[是为]|就是|都是|也是|可能|应该"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9'/&.-]*|\d+")


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
    for pattern, key_of in ((_SENTENCE, _sentence_key), (_LABEL, _label_key), (_CHINESE, _chinese_key)):
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


def _sentence_key(before: str) -> str:
    """The noun phrase that ends the text before a verb, without its article, or nothing.

    `the access code of the blue room`: it begins at a determiner, or with the sentence, and is words linked
    by prepositions. A verb or a pronoun inside means that something else is said.
    """
    said = _LEFT_OF_VERB.search(before)
    if said is None:
        return ""
    # only what follows the last comma, bracket or quote belongs to the verb
    joined = re.split(r"[,()\"“”]", said.group())[-1]
    words = _WORD.findall(joined)
    if not words or not joined.endswith(words[-1]):
        return ""
    for begin, word in enumerate(words):
        if word.lower() in _DETERMINERS and _is_phrase(words[begin + 1 :]):
            return _tidy(words[begin + 1 :])
    fresh = joined == said.group() and (said.start() > 0 or len(before) < 200)
    return _tidy(words) if fresh and _is_phrase(words) else ""


def _is_phrase(words: Sequence[str]) -> bool:
    """Runs of one to four plain words, linked by a preposition and perhaps a determiner."""
    if not words or len(words) > 12:
        return False
    run = 0
    linked = True
    for word in (word.lower() for word in words):
        if word in _STOPS:
            return False
        if word in _LINKS:
            if run == 0:
                return False
            run, linked = 0, True
        elif word in _DETERMINERS:
            if not linked or run:
                return False
        else:
            run += 1
            linked = False
            if run > 4:
                return False
    return run > 0


def _tidy(words: Sequence[str]) -> str:
    """A phrase as it stands in a question: first word in lower case unless it is a name or an acronym."""
    first, *rest = words
    if first[1:] == first[1:].lower() and not any(map(str.isdigit, first)):
        first = first.lower()
    key = " ".join((first, *rest))
    return "" if key.lower() in _EMPTY_KEYS or len(key) < 3 else key


def _label_key(before: str) -> str:
    """The key of `Invoice number: ...`, `order_id=...`: one to five words, none of them a verb or pronoun."""
    labelled = _LEFT_OF_MARK.search(before)
    if labelled is None:
        return ""
    left = re.sub(r"\s*\([^)]*\)\s*$", "", labelled.group(1)).strip(" .-_/")
    words = left.split()
    if not 1 <= len(words) <= 5 or any(word.lower().strip(".,") in _STOPS for word in words):
        return ""
    words = words[1:] if words[0].lower() in _DETERMINERS and len(words) > 1 else words
    return _tidy(words) if _WORD.match(words[0]) else ""


def _chinese_key(before: str) -> str:
    """The run of Chinese before 是, 为 or a colon, if it names a thing."""
    said = _LEFT_IN_CHINESE.search(before)
    if said is None:
        return ""
    key = re.sub(
        r"^(?:其中|本次|目前|当前|另外|此外|注意|同时|并且|的|和|与)+", "", said.group()
    ).removesuffix("的")
    return "" if len(key) < 2 or _CHINESE_STOPS.search(key) else key


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
    unique: list[_Found] = []
    for one in fit:
        key, value = normal(one.key), normal(one.value)
        ambiguous = any(other != one.key.casefold() and _holds(other, one.key.casefold()) for other in keys)
        if ambiguous or value in key or _times_said(key, compared) > 1:
            continue
        if occurrences(value, compared) == 1:
            unique.append(one)
    return unique


_SAYS = re.compile(r"[ \t*_\"'`]*(?: is | was | equals |:|=|\||[是为])")


def _times_said(key: str, compared: str) -> int:
    """How often something is said of a key, whatever it is: `Total: ten` beside `Total: 4000` counts."""
    count = 0
    at = compared.find(key)
    while at >= 0:
        count += _SAYS.match(compared, at + len(key)) is not None
        at = compared.find(key, at + 1)
    return count


def _holds(phrase: str, part: str) -> bool:
    """Whether a longer key says all of a shorter one, so that the shorter could mean either."""
    return re.search(rf"(?<![a-z0-9]){re.escape(part)}(?![a-z0-9])", phrase) is not None


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
