"""English sentences in which a number may be 1 beside a word for several."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_BESIDE = re.compile(r"\{(\w+)\}(?: of about \{\w+\}| measured)? ([a-z]+)\b")
NUMBERS = {
    *("count", "pairs", "conversations", "requests", "runs", "blocks", "rows", "labels", "looks", "strata"),
    *("gaps", "seen", "waiting", "in_flight", "evidence", "tokens", "takes", "needs", "largest"),
    *(
        "first_pairs",
        "last_pairs",
        "fields",
        "skipped",
        "dropped",
        "lost",
        "processed",
        "checked",
        "amount",
        "more",
        "all",
    ),
}
"""Names of numbers that count something."""
SEVERAL = {"were", "are", "have", "wait"}


def told_as_several(sentences: Mapping[str, str]) -> Iterator[str]:
    """Names of sentences that would say `1 pairs`; `{pairs:pair|pairs}` asks for the form by the number."""
    for name, text in sentences.items():
        for number, word in _BESIDE.findall(text):
            if number in NUMBERS and (word in SEVERAL or (word.endswith("s") and not word.endswith("ss"))):
                yield f"{name}: {number} {word}"
