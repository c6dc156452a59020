"""When a tier is one artifact: its backends tell the same, and have done so for ten minutes (statistics A5).

Engines are looked at every half minute. The first identity that a tier ever shows settles at once. After it,
backends that disagree or an identity that changes make the tier unsettled, until all that answer have told
the same for ten minutes without interruption. Only then may an epoch open, or an earlier one be resumed: a
rolling upgrade, or a version that comes and goes, is one change and not many. Time is an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.engines.attribution import changed, disagreement
from service.engines.facts import EngineFacts

SETTLE_SECONDS = 600.0
"""Of uninterrupted agreement before an identity counts."""
KEPT_SECONDS = 600.0
"""How long a backend that does not answer is still taken at its last word: a restart takes minutes."""
LONGEST_GAP_SECONDS = 120.0
"""Between two looks at which somebody answered; what happened in a longer one, nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """The latest that one backend told."""

    backend: str
    facts: EngineFacts
    at: float
    """Unix seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """Where a tier stands between two looks."""

    settled: EngineFacts | None = None
    """What its evidence belongs to; None until its engines first told anything."""
    settled_since: float | None = None
    """Unix seconds: older answers may be another artifact's; None while there was never another."""
    agreed: EngineFacts | None = None
    """What all that answer tell now; None while they disagree."""
    agreed_since: float | None = None
    heard_at: float | None = None
    """Of the last look at which a backend answered."""
    unsettled: str = ""
    """Why its pairs belong to no epoch at the moment; empty when they do."""


def settle(before: Settlement, words: Sequence[Word], *, now: float) -> Settlement:
    """After one look at all backends of a tier; `words` has each backend's latest, however old.

    What is of a later time than `now` is from before a clock was set back, or from a guard whose clock is
    ahead: the farther it is, the less it says, as if it were as old.
    """
    kept = [word for word in words if abs(now - word.at) <= KEPT_SECONDS]
    if not any(word.at == now for word in kept):
        return before  # nobody answered, so nothing is known; the gap will tell
    heard = replace(before, heard_at=now)
    if before.settled_since is not None and before.settled_since > now:
        heard = replace(heard, settled_since=now)
    if apart := disagreement({word.backend: word.facts for word in kept}):
        return replace(heard, agreed=None, agreed_since=None, unsettled=f"its backends disagree: {apart}")
    agreed = _together(kept)
    if (going_on := _going_on(before, agreed, now)) is not None:
        heard = replace(heard, agreed=going_on)
    else:
        heard = replace(heard, agreed=agreed, agreed_since=now)
    settled = before.settled
    if settled is None:
        since = heard.agreed_since if before.unsettled else None
        return replace(heard, settled=agreed, settled_since=since, unsettled="")
    resumed = agreed.merged(settled) is not None
    if resumed and not before.unsettled:
        return heard
    assert heard.agreed_since is not None, "there is agreement"
    if now - heard.agreed_since < SETTLE_SECONDS:
        return replace(heard, unsettled=_waiting(settled, agreed, resumed=resumed))
    return replace(
        heard,
        settled=settled if resumed else heard.agreed,
        settled_since=heard.agreed_since,
        unsettled="",
    )


def _together(kept: Sequence[Word]) -> EngineFacts:
    """What backends that contradict each other in nothing tell together; the latest where they measure."""
    latest, *others = sorted(kept, key=lambda word: -word.at)
    facts = latest.facts
    for word in others:
        facts = facts.merged(word.facts) or facts
    return facts


def _going_on(before: Settlement, agreed: EngineFacts, now: float) -> EngineFacts | None:
    """The agreement as it has grown, None when it begins anew."""
    if before.agreed is None or before.heard_at is None:
        return None
    if abs(now - before.heard_at) > LONGEST_GAP_SECONDS:
        return None
    return agreed.merged(before.agreed)


def _waiting(settled: EngineFacts, agreed: EngineFacts, *, resumed: bool) -> str:
    minutes = f"{SETTLE_SECONDS / 60:g} minutes of agreement"
    if resumed:
        return f"its backends agree again, and count after {minutes}"
    return f"its engine changed ({changed(settled, agreed)}), and counts after {minutes}"
