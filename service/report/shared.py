"""What several parts of a page say alike: decisions, tones, tiers and their colours."""

from __future__ import annotations

from collections.abc import Sequence

from service.decision.policy import Gate
from service.decision.verdict import Decision, GateState
from service.report.blocks import Bullets
from service.report.document import Report, TierReport
from service.report.reasons import in_words
from service.report.words import Language, Words

TONES = {Decision.ACCEPT: "good", Decision.UNDECIDED: "wait", Decision.REJECT: "bad"}
GATE_TONES = {
    GateState.PASSED: "good",
    GateState.FAILED: "bad",
    GateState.UNDECIDED: "wait",
    GateState.MISSING: "wait",
    GateState.NOT_ASKED: "",
}


def decided(say: Words, decision: Decision) -> str:
    """A decision in one word."""
    return say(f"decision.{decision}")


def gate_state(say: Words, state: GateState) -> str:
    """A gate's state in a word or two."""
    return say(f"gate_state.{state}")


def gate_name(say: Words, gate: Gate) -> str:
    """What a gate is about."""
    return say(f"gate.{gate}")


def criterion(say: Words, name: str) -> str:
    """A criterion's name for people; of a plug-in its own."""
    return say.known(f"criterion.{name}", name.replace("_", " "))


def reason(say: Words, name: str) -> str:
    """A reason of the ledger or of a failed request; an unknown one by its own name."""
    return say.known(f"reason.{name}", name.replace("_", " "))


Of = tuple[str, str]
"""Whose it is, such as a tier as it is named on the page, and a reason."""


def reasons_of(say: Words, texts: Sequence[str | Of]) -> Bullets:
    """Reasons as the rooms that found them word them, in the page's language as far as that has them."""
    told = [_told(say, text) for text in texts]
    return Bullets(
        items=tuple(text for text, _ in told),
        foreign=frozenset(text for text, language in told if language is Language.EN),
    )


def _told(say: Words, text: str | Of) -> tuple[str, Language]:
    if isinstance(text, str):
        return in_words(say.language, text)
    whose, why = text
    found, language = in_words(say.language, why)
    return say("punctuation.of", whose=whose, told=found), language


def style_of(report: Report, tier: TierReport) -> int:
    """The tier's colour and shape, the same in every chart: 0 is the baseline."""
    return report.tiers.index(tier)


def named(say: Words, tier: TierReport) -> str:
    """The tier's name, with a word where it is the baseline."""
    return say("tier.baseline", tier=tier.name) if tier.baseline else tier.name


def slug(text: str) -> str:
    """An anchor or a file's name: letters, digits and hyphens."""
    kept = "".join(each if each.isascii() and each.isalnum() else "-" for each in text.lower())
    return "-".join(part for part in kept.split("-") if part) or "x"


def tier_anchor(report: Report, tier: TierReport) -> str:
    """Unique on the page, also for tiers whose names differ in signs alone."""
    return f"{report.tiers.index(tier)}-{slug(tier.name)}"
