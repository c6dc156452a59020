"""Whether a text states that something is so, for good: not supposed, doubted, asked, dated or taken back."""

from __future__ import annotations

import re

_BEFORE = 200
_AFTER = 160
"""Characters beside a statement that are read."""

_SENTENCE_END = re.compile(r"\.(?=[\s\"'*)]|\Z)|[!?;。！？；\n]|\\n")
_LABEL_END = re.compile(r"\.(?=[\s\"'*)]|\Z)|[!?;。！？；\n\"|}\]]|\\n|,(?=\s|\"|\Z)|，")
_LAST_END = re.compile(r".*(?:\.(?=\s)|[!?;。！？；\n]|\\n)", re.DOTALL)

_DOUBTED = re.compile(
    r"""(?i)\b(?:if|whether|unless|suppose|supposing|assume|assuming|imagine|not|never|nobody|no\ one|none
    |cannot|doubts?|believes?|believed|thinks?|thought|guess|guesses|guessed|claims?|claimed|rumou?rs?
    |rumou?red|false|wrong|wrongly|once|formerly|previously|originally|initially|perhaps|maybe|might|could|would|example|examples|instance
    |pretend|e\.g)\b|n[’']t\b|\A\W*(?:is|was|are|were|does|did|do|could|should|what|which)\b""",
    re.VERBOSE,
)
_CHINESE_DOUBTED = re.compile(
    "如果|假如|假设|假定|倘若|要是|除非|是否|没有人|没人|不是|并不|并非|不再|不对|原来|原先|本来|曾|一度|以前|此前|之前"
    "|例如|比如|举例|据说|据称|传闻|可能|也许|或许|大概|误以为|错误"
)
_LIMITED = re.compile(
    r"(?i)\b(?:until|till|before|after|when|while|unless|if|or|instead|at first|originally|for now|in|per"
    r"|plus|minus|once|but|except|through)\b|\d|[或但除减]|之前|以前|以后|直到"
)
_COUNTED = re.compile(
    r"(?i)[\s*_]*(?:[kmb]|bn|mn|mio|thousand|million|billion|trillion|dozen|hundred|per ?cent)\b"
)
_CHINESE_COUNTED = re.compile("[余多几]?[十百千万亿%％‰]")
_TAKEN_BACK = re.compile(
    r"""(?i)\A[\s"'*)\].。]*(?:correction|update|erratum|actually|no[,:]|sorry|wait|oops|later
    |since\ then|now\b|then\b|(?:it|this|that)\ (?:is|was|has|had|changed|became|will|may|might|isn|wasn))
    |\b(?:is\ now|has\ changed|was\ changed|no\ longer|not\ any\ ?more|corrected|superseded
    |outdated|is\ wrong|was\ wrong|make\ (?:it|that)|change\ (?:it|that)|instead)\b
    |更正|改为|改成|变更|现在是|不再|作废|有误|写错|说错|更新为|应为|应该是""",
    re.VERBOSE,
)


def is_stated(text: str, begin: int, end: int, *, label: bool) -> bool:
    """Whether `text[begin:end]`, a verb or mark and its value, ends a statement that holds as it is.

    Read are the sentence (of a label, its line or field) and what follows it directly.
    """
    before = text[max(0, begin - _BEFORE) : begin]
    last = _LAST_END.match(before)
    before = before[last.end() :] if last else before
    if _DOUBTED.search(before) or _CHINESE_DOUBTED.search(before):
        return False
    after = text[end : end + _AFTER]
    if _COUNTED.match(after) or _CHINESE_COUNTED.match(after):
        return False
    closed = after.lstrip("\"'`*_”")
    ends = (_LABEL_END if label else _SENTENCE_END).search(closed)
    rest, mark = (closed[: ends.start()], ends.group()) if ends else (closed, "")
    if mark in ("?", "？") or "吗" in rest or _LIMITED.search(rest):
        return False
    return _TAKEN_BACK.search(closed[ends.end() :] if ends else "") is None


_ASKS = re.compile(
    r"\b(?:what|which|where|when|who|how much|how many|tell me|tell us|give me|find|extract|look up|look for"
    r"|report|return|state|list|name|answer)\b|什么|多少|哪|告诉|找出|提取|列出|给出|回答|查一下|查询"
)


def is_asked(text: str, begin: int, end: int) -> bool:
    """Whether `text[begin:end]`, a name in lower case, stands in a sentence that only asks for it.

    `What is the total in these notes?`, `Read this and tell me the total.` With a digit it may say something.
    """
    before = text[max(0, begin - _BEFORE) : begin]
    last = _LAST_END.match(before)
    before = before[last.end() :] if last else before
    after = text[end : end + _AFTER]
    ends = _SENTENCE_END.search(after)
    after, mark = (after[: ends.start()], ends.group()) if ends else (after, "")
    if re.search(r"\d", before + after):
        return False
    return mark in ("?", "？") or _ASKS.search(before) is not None


def is_cell_of_pair(text: str, begin: int, end: int) -> bool:
    """Whether a value behind `|` is the second of the two cells of its row: of more, columns are named."""
    line = text[text.rfind("\n", max(0, begin - _BEFORE), begin) + 1 : begin]
    behind = text[end : end + _AFTER].partition("\n")[0].partition("\\n")[0]
    return "|" not in line.strip().removeprefix("|") and behind.strip(" \t\r*_`\"'") in ("", "|")
