"""Whether a candidate that fails as often fails elsewhere: energy distance and noise share (A11, B6).

Request i fails with probability p_i on the baseline and q_i on the candidate. With psi_XY the mean squared
difference of a failure of X and one of Y (for failures of 0 or 1: the share of discordant pairs),

    energy = psi_AQ - psi_AA / 2 - psi_QQ / 2 = mean (q_i - p_i)^2

which is 0 only if every request fails as before: equal totals of other requests do not cancel (energy
distance: Szekely & Rizzo 2013, J Stat Plan Inference 143:1249; here with squared differences within a
request). Two answers of each arm give an unbiased term a request,

    e_i = ((A1 - Q1)(A2 - Q2) + (A1 - Q2)(A2 - Q1)) / 2

It is shown and never decides: theta is not biased by noise, and a harmless change has energy too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from service.decision.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """One request answered twice by each arm: failures in [0, 1], and the conversation it belongs to."""

    conversation: str
    baseline: tuple[float, float]
    candidate: tuple[float, float]

    def __post_init__(self) -> None:
        if not all(0 <= failure <= 1 for failure in (*self.baseline, *self.candidate)):
            raise ValueError(f"failures must be in [0, 1], got {self.baseline} and {self.candidate}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """The energy distance of two arms and what it is made of; every figure is None without requests."""

    requests: int
    conversations: int
    value: float | None
    """Estimate of mean (q_i - p_i)^2; by chance it may fall below 0."""
    standard_error: float | None
    """Robust to conversations (CR1); None below two of them."""
    psi_control: float | None
    """psi_AA, the baseline against itself."""
    psi_candidate: float | None
    """psi_QQ, the candidate against itself."""
    psi_between: float | None
    """psi_AQ, the baseline against the candidate."""

    @property
    def p_value(self) -> float | None:
        """One-sided normal p against "all requests fail as before". A single look; None without a spread."""
        if self.value is None or not self.standard_error:
            return None
        return float(ndtr(-self.value / self.standard_error))

    @property
    def noise_share(self) -> float | None:
        """psi_AA / psi_AQ: 1 if the arms differ as much as the baseline from itself; None if psi_AQ is 0."""
        return noise_share(self.psi_control, self.psi_between)


def energy_distance(repeats: Iterable[Repeats]) -> Energy:
    """The estimate over all requests; its standard error lets those of a conversation fail together."""
    requests = list(repeats)
    if not requests:
        return Energy(
            requests=0,
            conversations=0,
            value=None,
            standard_error=None,
            psi_control=None,
            psi_candidate=None,
            psi_between=None,
        )
    first_a, second_a = np.array([each.baseline for each in requests], dtype=np.float64).T
    first_q, second_q = np.array([each.candidate for each in requests], dtype=np.float64).T
    terms = ((first_a - first_q) * (second_a - second_q) + (first_a - second_q) * (second_a - first_q)) / 2
    crossed = [(a - q) ** 2 for a in (first_a, second_a) for q in (first_q, second_q)]
    names = {each.conversation: None for each in requests}
    return Energy(
        requests=len(requests),
        conversations=len(names),
        value=float(terms.mean()),
        standard_error=_clustered_error(terms.tolist(), [each.conversation for each in requests]),
        psi_control=float(((first_a - second_a) ** 2).mean()),
        psi_candidate=float(((first_q - second_q) ** 2).mean()),
        psi_between=float(np.mean(crossed)),
    )


def noise_share(psi_control: float | None, psi_between: float | None) -> float | None:
    """psi_AA / psi_AQ: how much of the discordance with the candidate the baseline has with itself."""
    return psi_control / psi_between if psi_control is not None and psi_between else None


def noise_share_of(control: Tally, candidate: Tally) -> float | None:
    """The noise share of counted pairs; None without control pairs or without a discordant candidate pair."""
    return noise_share(_discordance(control), _discordance(candidate))


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What the control and the pairs of the candidate tell, and repeats of the candidate if there are any."""

    control: float
    """psi_AA."""
    candidate: float
    """psi_AQ."""
    share: float | None
    """psi_AA / psi_AQ; None if no pair of the candidate is discordant."""
    energy: Energy | None = None
    """From requests of which the candidate was asked twice; None without."""

    @property
    def energy_at_most(self) -> float:
        """psi_AQ - psi_AA / 2: the energy distance if the candidate never differed from itself."""
        return max(0.0, self.candidate - self.control / 2)


def noise_of(control: Tally, candidate: Tally, energy: Energy | None = None) -> Noise | None:
    """Of counted pairs, with the `energy` of their repeats; None without pairs of both."""
    own, between = _discordance(control), _discordance(candidate)
    if own is None or between is None:
        return None
    return Noise(control=own, candidate=between, share=noise_share_of(control, candidate), energy=energy)


def _discordance(tally: Tally) -> float | None:
    return (tally.harm + tally.benefit) / tally.n if tally.n else None


def _clustered_error(terms: Sequence[float], conversations: Sequence[str]) -> float | None:
    """CR1 standard error of the mean: sqrt(K/(K-1) sum_k (sum of deviations in k)^2) / n."""
    mean = math.fsum(terms) / len(terms)
    sums: dict[str, float] = {}
    for conversation, term in zip(conversations, terms, strict=True):
        sums[conversation] = sums.get(conversation, 0.0) + term - mean
    clusters = len(sums)
    if clusters < 2:
        return None
    return math.sqrt(clusters / (clusters - 1) * math.fsum(each**2 for each in sums.values())) / len(terms)
