"""Figures of a pre-screen: two perplexities of the same words, and their ratio with an interval.

With L_b and L_c the negative log-likelihoods (nats) of text i under baseline and candidate and T the
baseline's tokens of it,

    d = sum_i (L_c - L_b) / sum_i T        perplexity ratio = exp(d)

Texts are the clusters: words of one text are not independent. The variance of this ratio of sums is that of
its linearisation, n / (n - 1) x sum_i (L_c - L_b - d T)^2 / (sum_i T)^2 (Cochran, Sampling Techniques, 6.4),
with Student's t on n - 1 degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.95
LEAST_TEXTS = 3
"""Fewer have no interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """One text under one tier."""

    nats: float
    """Negative log-likelihood of all tokens that have a number."""
    tokens: int
    """How many these are."""
    broken: int = 0
    """Tokens whose log probability is no finite number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surprise:
    """A candidate beside its baseline, over some texts."""

    texts: int
    tokens: int
    """Of the baseline."""
    baseline: float
    """Perplexity."""
    candidate: float
    """The same words under the candidate, per token of the baseline."""
    ratio: float
    lower: float | None
    upper: float | None
    """95 % interval of the ratio; None with fewer than `LEAST_TEXTS` texts."""
    worst: int
    """Place of the text with the largest rise per token."""


def surprise(pairs: Sequence[tuple[Forced, Forced]]) -> Surprise | None:
    """Baseline and candidate of each text; None where no text has numbers alone under both."""
    kept = [
        (place, base, candidate)
        for place, (base, candidate) in enumerate(pairs)
        if base.tokens and candidate.tokens and not (base.broken or candidate.broken)
    ]
    if not kept:
        return None
    rises = [candidate.nats - base.nats for _, base, candidate in kept]
    sizes = [base.tokens for _, base, _ in kept]
    tokens = sum(sizes)
    mean = sum(rises) / tokens
    reach = _reach(rises, sizes, mean)
    return Surprise(
        texts=len(kept),
        tokens=tokens,
        baseline=_exp(sum(base.nats for _, base, _ in kept) / tokens),
        candidate=_exp(sum(candidate.nats for _, _, candidate in kept) / tokens),
        ratio=_exp(mean),
        lower=None if reach is None else _exp(mean - reach),
        upper=None if reach is None else _exp(mean + reach),
        worst=kept[max(range(len(kept)), key=lambda at: rises[at] / sizes[at])][0],
    )


def _reach(rises: Sequence[float], sizes: Sequence[int], mean: float) -> float | None:
    """Half the width of the interval of the mean rise."""
    from scipy.special import stdtrit  # half a second to load, and only figures need it

    count, tokens = len(rises), sum(sizes)
    if count < LEAST_TEXTS:
        return None
    spread = sum((rise - mean * size) ** 2 for rise, size in zip(rises, sizes, strict=True))
    error = math.sqrt(count / (count - 1) * spread) / tokens
    return float(stdtrit(count - 1, 0.5 + LEVEL / 2)) * error


def _exp(nats: float) -> float:
    """At most the largest double: a candidate may be surprised without bound."""
    return math.exp(min(nats, 700.0))
