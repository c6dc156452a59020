"""Pairs that were due and have no score: when they are too many, or befall one arm, the verdict is withheld.

What is missing need not be missing at random. Acceptance waits; harm stands only if it would stand had every
missing pair spoken against it. Pairs that were put aside before any answer existed are shown and not missing:
no answer can have caused it.
"""

from __future__ import annotations

import math

from scipy.special import betaln, xlogy

from service.decision.policy import Policy
from service.decision.tally import Tally, Triple
from service.decision.wording import compared_shares

PUT_ASIDE = frozenset({"late", "mixed_artifact", "unsupported_guide"})
"""Reasons that hold whatever is answered: a closed conversation, an unsettled engine, a grammar."""


def lost(tally: Tally) -> int:
    """Pairs without a score that an answer may have cost theirs."""
    return sum(count for reason, count in tally.unscored.items() if reason not in PUT_ASIDE)


def due(tally: Tally) -> int:
    """Pairs of which a score was to be had, counted or not."""
    return tally.n + tally.not_counted + lost(tally)


def unscored_share(tally: Tally) -> float:
    """Share of the due pairs without a score; 0 when none was due."""
    of = due(tally)
    return lost(tally) / of if of else 0.0


def withheld_reason(policy: Policy, tally: Tally, control: Tally | None) -> str | None:
    """Why this tally cannot be believed as it is, None when it can."""
    share = unscored_share(tally)
    if share > policy.max_unscored:
        found, allowed = compared_shares(share, policy.max_unscored)
        return f"unscored share {found} > {allowed}"
    if control is not None and log_e_uneven(tally, control) >= -math.log(policy.alpha_warn):
        candidate, baseline = compared_shares(share, unscored_share(control))
        return f"unscored share differs between arms: candidate {candidate}, control {baseline}"
    return None


def log_e_uneven(tally: Tally, control: Tally) -> float:
    """Log e-value that candidate and control lose pairs at different rates; 0 without a loss.

    If arms lose alike, a loss is the candidate's with probability p = its share of the due pairs. Against it,
    a uniform mixture of binomials: Beta(1 + u_Q, 1 + u_A) / (p^u_Q (1 - p)^u_A) (Robbins 1970, Ann Math Stat
    41:1397).
    """
    own, controls = lost(tally), lost(control)
    of, of_control = due(tally), due(control)
    if not of or not of_control:
        return 0.0
    expected = of / (of + of_control)
    return float(betaln(1 + own, 1 + controls) - xlogy(own, expected) - xlogy(controls, 1 - expected))


def had_they_been(tally: Tally, triple: Triple) -> Tally:
    """The tally had every lost pair been a conversation like this one."""
    missing = lost(tally)
    return tally + Tally(units={triple: missing} if missing else {})
