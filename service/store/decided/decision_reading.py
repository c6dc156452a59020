"""A row of the decision log in words: why it came about, and from where. Pure."""

from __future__ import annotations

from service.store.decided.decisions import Entry

LONGEST_WHY = 120
"""Characters; the row's detail has all."""
NO_REASON = "-"
"""Of a row that needs none."""


def why(entry: Entry) -> str:
    """The reason somebody gave, or what makes it evident, as far as it fits; a hyphen without either."""
    return shortened(whole_why(entry))


def shortened(text: str) -> str:
    """As much of a reason as a line takes."""
    return text if len(text) <= LONGEST_WHY else f"{text[: LONGEST_WHY - 1]}…"


def given(entry: Entry) -> bool:
    """Whether a person, or a program of theirs, worded the reason."""
    return bool(entry.detail.get("reason"))


def whole_why(entry: Entry) -> str:
    """All of it, in one line."""
    detail = entry.detail
    reasons = detail.get("reason") or detail.get("reasons") or detail.get("because")
    if isinstance(reasons, list):
        reasons = "; ".join(map(str, reasons))
    if reasons is None and entry.action == "policy":
        reasons = ", ".join(detail.get("changed", {})) or "the first policy"
    if reasons is None and "verdict" in detail:
        reasons = f"the verdict is {detail['verdict'].get('decision')}"
    if reasons is None and "token" in detail:
        reasons = f"token {detail['token']}: {', '.join(detail.get('scopes', ())) or 'ended'}"
    return " ".join(str(reasons or NO_REASON).split())


def whence_of(entry: Entry) -> str:
    """The part of Tiergate, its machine, and who asked; a hyphen where nothing is known."""
    told = entry.detail.get("whence", {})
    place = "@".join(part for part in (told.get("part"), told.get("host")) if part)
    return f"{place} for {told['peer']}" if "peer" in told else place or "-"
