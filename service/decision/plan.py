"""How many pairs and days a tier will take to be accepted, before any evidence exists."""

from __future__ import annotations

import math
from dataclasses import dataclass

from service.decision.multiplicity import attempt_alpha
from service.decision.planning import (
    LEAST_DISCORDANCE,
    STOP_FACTOR,
    fixed_pairs,
    zero_discordance_pairs,
)
from service.decision.stopping import simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What one expects of the tier, and of the traffic."""

    margin: float
    discordance: float
    """Share of pairs in which exactly one arm fails."""
    difference: float = 0.0
    """True rise of the failure rate; must be below the margin."""
    power: float = 0.9
    """Chance of acceptance to plan for, over all criteria together."""
    alpha: float = 0.05
    attempt: int | None = None
    """j: plan at the share of alpha that the j-th attempt gets (A5); None = all of alpha."""
    criteria: int = 1
    """Criteria like this one that must all pass, taken to be independent."""
    design_effect: float = 1.0
    """How many times more pairs the conversations need than independent pairs."""
    requests_per_day: float | None = None
    sample: float = 1.0
    """Share of the requests that is mirrored."""
    applies: float = 1.0
    """Share of the mirrored requests that the criterion applies to."""

    def __post_init__(self) -> None:
        if self.criteria < 1:
            raise ValueError(f"criteria must be at least 1, got {self.criteria}")
        if self.requests_per_day is not None and not 0 < self.requests_per_day < math.inf:
            raise ValueError(f"requests per day must be above 0, got {self.requests_per_day}")
        for name in ("sample", "applies"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in (0, 1], got {getattr(self, name)}")

    @property
    def planned_alpha(self) -> float:
        """The error rate that is left for this attempt."""
        return self.alpha if self.attempt is None else attempt_alpha(self.alpha, self.attempt)

    @property
    def pairs_per_day(self) -> float | None:
        """For each criterion; None when the traffic is not known."""
        if self.requests_per_day is None:
            return None
        return self.requests_per_day * self.sample * self.applies


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Pairs for each criterion until all of them have passed."""

    fixed: int
    """One look at this many pairs, with the power asked for."""
    mean: int | None
    median: int | None
    quantile: int | None
    """The e-process accepts within this many pairs with the power asked for. None: not within 30 samples."""
    zero_discordance: int
    """What the e-process needs if no pair is discordant: it cannot accept before."""
    max_pairs: int
    """Where to stop looking (A13)."""
    simulated_epochs: int
    seed: int


def plan(scenario: Scenario, *, seed: int, repeats: int = 2000) -> Plan:
    """Fixed sample by formula, e-process by seeded simulation; ValueError for a scenario that cannot pass."""
    alpha, effect = scenario.planned_alpha, scenario.design_effect
    # All independent criteria together pass with the power asked for if each has this much.
    power = scenario.power ** (1 / scenario.criteria) if 0 < scenario.power < 1 else scenario.power
    fixed = fixed_pairs(
        margin=scenario.margin,
        discordance=scenario.discordance,
        difference=scenario.difference,
        alpha=alpha,
        power=power,
        design_effect=effect,
    )
    longest = STOP_FACTOR * fixed_pairs(
        margin=scenario.margin,
        discordance=max(LEAST_DISCORDANCE, scenario.discordance),
        alpha=alpha,
        power=0.9,
        design_effect=effect,
    )
    stopping = simulate(
        margin=scenario.margin,
        discordance=scenario.discordance,
        difference=scenario.difference,
        alpha=alpha,
        repeats=repeats,
        seed=seed,
    ).slowest_of(scenario.criteria, seed + 1)

    clean = zero_discordance_pairs(scenario.margin, alpha)

    def needed(pairs: float | None) -> int | None:
        return None if pairs is None else math.ceil(pairs * effect)

    return Plan(
        fixed=math.ceil(fixed),
        mean=needed(stopping.mean),
        median=needed(stopping.quantile(0.5)),
        quantile=needed(stopping.quantile(scenario.power)),
        zero_discordance=clean,
        max_pairs=max(math.ceil(longest), clean),
        simulated_epochs=repeats,
        seed=seed,
    )
