"""What a value is called: the key that the text on its left gives it, or nothing where that is not clear."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
_CHINESE_TIMES = re.compile(
    r"(?:[上下本今明去昨前]|[一二三四五六七八九十\d]+)个?[年月日号周天季时点分]度?|.年|.天"
)
_CHINESE_TURNS = tuple(
    _words(
        """改 改变 变更 更新 更改 更正 调整 修改 增加 增至 减少 约 大约 仅 已 均 共 暂 暂定 预计 估计
        应 应当 应该 分别 则 即 也 又 还 才 便 本来 原来 现"""
    )
)
"""What ends in one of these is no name: 已改为 says that something was, and 则为, 约为 how it is said."""
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9'/&.-]*|\d+")


def sentence_key(before: str) -> str:
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
    for written in words:
        word = written.lower()
        if word in _STOPS and (written != "A" or run == 0):  # `ward A` has a name, `A ward` an article
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
    return "" if key.lower() in _EMPTY_KEYS or not 3 <= len(key) <= 80 else key


def label_key(before: str) -> str:
    """The key of `Invoice number: ...`, `order_id=...`: one to five words, none of them a verb or pronoun."""
    labelled = _LEFT_OF_MARK.search(before)
    if labelled is None:
        return ""
    left = labelled.group(1).rpartition(". ")[2]
    left = re.sub(r"\s*\([^)]*\)\s*$", "", left).strip(" .-_/")
    words = left.split()
    if not 1 <= len(words) <= 5 or any(word.lower().strip(".,") in _STOPS for word in words):
        return ""
    words = words[1:] if words[0].lower() in _DETERMINERS and len(words) > 1 else words
    return _tidy(words) if _WORD.match(words[0]) else ""


def chinese_key(before: str) -> str:
    """The run of Chinese before 是, 为 or a colon, if it names a thing."""
    said = _LEFT_IN_CHINESE.search(before)
    if said is None:
        return ""
    key = re.sub(
        r"^(?:其中|本次|目前|当前|现在|另外|此外|注意|同时|并且|的|和|与)+", "", said.group()
    ).removesuffix("的")
    if len(key) < 2 or _CHINESE_STOPS.search(key) or _CHINESE_TIMES.fullmatch(key):
        return ""
    return "" if key.endswith(_CHINESE_TURNS) else key
