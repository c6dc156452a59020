"""How many answers have to be paid for again: from live traffic, and from structured output that fails (A9).

    r_X = share of X's answered requests that their tenant sent again within a window     where X serves
        = r_S + s (f_X - f_S)      S another tier that serves; f: share of structured output that fails
        = s f_X                    where nothing was seen of live traffic

s is the share of failures that are tried again (the first step of the failure chain). A client resends for
many reasons, which both arms share; what a tier adds to them is what it fails more often. The rate makes the
effective cost, C / (1 - r), which is shown beside the unit cost and enters no net benefit: there, the retries
are in the failure chain, and would be charged twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from service.decision.binomial import highest_share, lowest_share
from service.decision.economics import effective_cost
from service.decision.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRate:
    """A share of answers that are paid for again, and where it was seen."""

    value: float
    lower: float | None
    """Clopper & Pearson's; None where it is put together from two sources."""
    upper: float | None
    source: str
    """In words."""

    def effective(self, unit_cost: float) -> float | None:
        """Cost of a million tokens with the retries paid for; None when every answer is sent again."""
        return effective_cost(unit_cost, retry_rate=self.value) if self.value < 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resent:
    """Requests that a tier answered, and how many of them their tenant sent again."""

    total: int
    resent: int

    def __post_init__(self) -> None:
        if not 0 <= self.resent <= self.total:
            raise ValueError(f"no more requests are sent again than were sent: {self.resent} of {self.total}")


def live_rate(seen: Resent, *, level: float = 0.95) -> RetryRate | None:
    """Of a tier that served clients; None without requests. Exact limits (Clopper & Pearson 1934)."""
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}")
    if not seen.total:
        return None
    again, tail = seen.resent, (1 - level) / 2
    return RetryRate(
        value=again / seen.total,
        lower=lowest_share(again, seen.total, tail),
        upper=highest_share(again, seen.total, 1 - tail),
        source=f"live traffic: {again:,} of {seen.total:,} requests were sent again",
    )


def candidate_rate(
    own: Resent | None, baseline: Resent | None, structured: Tally, *, retried: float = 1.0
) -> RetryRate | None:
    """Of the candidate: its own live traffic, else the baseline's with what it fails more often.

    `structured`: its pairs under structured output; `retried`: s. None when nothing was seen at all.
    """
    _check(retried)
    if own is not None and (found := live_rate(own)) is not None:
        return found
    served = None if baseline is None else live_rate(baseline)
    if served is None:
        return _of_failures(structured.candidate_failures, structured.n, retried)
    rise = (structured.harm - structured.benefit) / structured.n if structured.n else 0.0
    return RetryRate(
        value=min(1.0, max(0.0, served.value + retried * rise)),
        lower=None,
        upper=None,
        source=f"{served.source} (baseline); structured output fails {100 * rise:+.2f} pp more often",
    )


def baseline_rate(seen: Resent | None, structured: Tally, *, retried: float = 1.0) -> RetryRate | None:
    """Of the baseline: its live traffic, else its structured output that fails."""
    _check(retried)
    if seen is not None and (found := live_rate(seen)) is not None:
        return found
    return _of_failures(structured.baseline_failures, structured.n, retried)


def _of_failures(failures: int, n: int, retried: float) -> RetryRate | None:
    if not n:
        return None
    return RetryRate(
        value=retried * failures / n,
        lower=None,
        upper=None,
        source=f"structured output: {failures:,} of {n:,} fail, and {retried:.0%} of them are tried again",
    )


def _check(retried: float) -> None:
    if not 0 <= retried <= 1:
        raise ValueError(f"the share of failures that are tried again must be in [0, 1], got {retried}")
