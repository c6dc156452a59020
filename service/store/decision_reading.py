"""A row of the decision log in words: why it came about, and from where. Pure."""

from __future__ import annotations

from service.store.decisions import Entry

LONGEST_WHY = 120
"""Characters; the row's detail has all."""


def why(entry: Entry) -> str:
    """The reason somebody gave, or what makes it evident; a hyphen where there is neither."""
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
    text = " ".join(str(reasons or "-").split())
    return text if len(text) <= LONGEST_WHY else f"{text[: LONGEST_WHY - 1]}…"


def whence_of(entry: Entry) -> str:
    """The part of Tiergate, its machine, and who asked; a hyphen where nothing is known."""
    told = entry.detail.get("whence", {})
    place = "@".join(part for part in (told.get("part"), told.get("host")) if part)
    return f"{place} for {told['peer']}" if "peer" in told else place or "-"
