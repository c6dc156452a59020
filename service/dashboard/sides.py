"""Two answers side by side: their texts by words, their JSON by pointer, their tool calls by place. Pure.

What both have in common is folded to some words before and after each difference, unless the whole is asked
for. Nothing here knows whether a difference matters: the evaluator's word stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from service.dashboard.captured import Piece, bounded, pieces, shown
from service.dashboard.json_changes import JsonChanges, json_changes
from service.dashboard.word_changes import EFFORT, Stretch, stretches, words_of
from service.store.labels.kept_text import AnswerText, Call

CONTEXT = 300
"""Characters of what is the same, before and after a difference."""
LEAST_FOLDED = 200
"""Fewer characters than this are not worth a fold."""
MOST_CHANGED = 3_000
"""Characters of one difference before it is folded."""
MOST_SIDE = 24_000
"""Characters of one side before the rest is folded, however many differences follow."""
MOST_CALLS, MOST_CALLS_WHOLE = 20, 500
"""Tool calls of a side before the rest is folded; and at all, so that the page of a broken answer is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChanges:
    """Two texts with what differs marked."""

    baseline: tuple[Piece, ...]
    candidate: tuple[Piece, ...]
    same: int
    """Words that both have; blanks are none."""
    only_baseline: int
    only_candidate: int
    is_same: bool

    @property
    def is_folded(self) -> bool:
        return any(each.folded for each in (*self.baseline, *self.candidate))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallChanges:
    """The calls that stand in one place of both answers."""

    place: int
    """From 1."""
    baseline: Call | None
    candidate: Call | None
    is_same_name: bool
    arguments: TextChanges
    fields: JsonChanges | None
    """Where the arguments of both are JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Everything in which two answers may differ."""

    text: TextChanges
    fields: JsonChanges | None
    """Where the texts of both are JSON."""
    refusal: TextChanges
    calls: tuple[CallChanges, ...]
    calls_left_out: int
    """Places of calls beyond these."""
    baseline: AnswerText
    candidate: AnswerText

    @property
    def is_folded(self) -> bool:
        """Whether there is more to see."""
        told = (self.text, self.refusal, *(each.arguments for each in self.calls))
        return self.calls_left_out > 0 or any(each.is_folded for each in told)


def sides(baseline: AnswerText, candidate: AnswerText, *, whole: bool = False) -> Sides:
    """Both answers compared; `whole` leaves nothing folded but calls beyond `MOST_CALLS_WHOLE`."""
    places = list(zip_longest(baseline.calls, candidate.calls))
    shown = places[: MOST_CALLS_WHOLE if whole else MOST_CALLS]
    effort = EFFORT // max(1, len(shown))
    return Sides(
        text=text_changes(baseline.text, candidate.text, whole=whole),
        fields=json_changes(baseline.text, candidate.text),
        refusal=text_changes(baseline.refusal, candidate.refusal, whole=whole),
        calls=tuple(
            _call(place, one, other, whole=whole, effort=effort)
            for place, (one, other) in enumerate(shown, start=1)
        ),
        calls_left_out=len(places) - len(shown),
        baseline=baseline,
        candidate=candidate,
    )


def text_changes(baseline: str, candidate: str, *, whole: bool = False, effort: int = EFFORT) -> TextChanges:
    """Two texts compared by words, with so much effort at most."""
    if not baseline or not candidate:
        # One of them is all there is: to mark every word of it would tell nothing.
        return TextChanges(
            baseline=tuple(shown(baseline, whole=whole)),
            candidate=tuple(shown(candidate, whole=whole)),
            same=0,
            only_baseline=_words(baseline),
            only_candidate=_words(candidate),
            is_same=baseline == candidate,
        )
    told = stretches(baseline, candidate, effort=effort)
    changed = [each for each in told if not each.is_same]
    return TextChanges(
        baseline=tuple(_side(told, [each.baseline for each in told], whole=whole)),
        candidate=tuple(_side(told, [each.candidate for each in told], whole=whole)),
        same=sum(_words(each.baseline) for each in told if each.is_same),
        only_baseline=sum(_words(each.baseline) for each in changed),
        only_candidate=sum(_words(each.candidate) for each in changed),
        is_same=baseline == candidate,
    )


def _words(text: str) -> int:
    return sum(not each.isspace() for each in words_of(text))


def _call(place: int, one: Call | None, other: Call | None, *, whole: bool, effort: int) -> CallChanges:
    texts = ["" if each is None else each.arguments for each in (one, other)]
    return CallChanges(
        place=place,
        baseline=one,
        candidate=other,
        is_same_name=one is not None and other is not None and one.name == other.name,
        arguments=text_changes(*texts, whole=whole, effort=effort),
        fields=json_changes(*texts) if one is not None and other is not None else None,
    )


def _side(told: Sequence[Stretch], texts: Sequence[str], *, whole: bool) -> list[Piece]:
    return bounded(_whole(told, texts) if whole else _folded(told, texts))


def _whole(told: Sequence[Stretch], texts: Sequence[str]) -> Iterator[Piece]:
    for each, text in zip(told, texts, strict=True):
        yield from _marked(text) if not each.is_same else pieces(text)


def _folded(told: Sequence[Stretch], texts: Sequence[str]) -> Iterator[Piece]:
    written = 0
    for place, (each, text) in enumerate(zip(told, texts, strict=True)):
        if written > MOST_SIDE:
            yield Piece(text="", folded=sum(len(rest) for rest in texts[place:]))
            return
        if each.is_same:
            head = 0 if place == 0 else CONTEXT
            tail = 0 if place == len(told) - 1 else CONTEXT
            if len(told) == 1:
                head, tail = MOST_CHANGED, CONTEXT
        else:
            head, tail = MOST_CHANGED - CONTEXT, CONTEXT
        left_out = len(text) - head - tail
        made = _marked if not each.is_same else pieces
        if left_out < LEAST_FOLDED:
            yield from made(text)
            written += len(text)
            continue
        yield from made(text[:head])
        yield Piece(text="", folded=left_out, differs=not each.is_same)
        yield from made(text[len(text) - tail :])
        written += head + tail


def _marked(text: str) -> Iterator[Piece]:
    """What differs, with its line ends: one that only one side has would not be seen."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if line:
            yield from pieces(line, differs=True)
        if number < len(lines) - 1:
            yield Piece(text="↵", unseen="LINE FEED", differs=True)
            yield Piece(text="\n", differs=True)
