"""Reasons and decisions as pages tell them: ours in the reader's language, what somebody wrote as it is."""

from __future__ import annotations

from markupsafe import Markup

from service.charts.canvas import visible
from service.report import reasons
from service.report.words import Language, Words
from service.store.decided.decision_reading import NO_REASON, given, shortened, whole_why
from service.store.decided.decisions import Entry
from service.store.decided.holds import Hold, HoldKind


def in_words(language: Language, text: str) -> str:
    """A reason of ours; marked as English where it has no form in the reader's language."""
    found, spoken = reasons.in_words(language, text)
    return found if spoken is language else _marked(found, spoken)


def action(say: Words, name: str) -> str:
    """What the decision log calls so, in words; a name that is none of ours as it is."""
    return say.known(f"action.{name}", name.replace("_", " "))


def held_because(language: Language, hold: Hold) -> str:
    """Why a tier is held: the guard's reason, or a person's."""
    return hold.reason if hold.kind is HoldKind.REJECTED else in_words(language, hold.reason)


def because(language: Language, entry: Entry, *, whole: bool = False) -> str:
    """Why a row of the log came about, as far as a line takes it unless all is asked for."""
    text = whole_why(entry)
    if text != NO_REASON and not given(entry):
        found, spoken = reasons.in_words(language, text)
        if spoken is not language:
            return _marked(found if whole else shortened(found), spoken)
        text = found
    return text if whole else shortened(text)


def _marked(text: str, spoken: Language) -> Markup:
    return Markup('<span lang="{}">{}</span>').format(spoken.tag, visible(text))
