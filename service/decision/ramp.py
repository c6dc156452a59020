"""How an approved tier gets its share of the clients: at once, or step by step (design section 10)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class OnSloLoss(StrEnum):
    """What the guard does when a tier that serves is shown to lose its SLO."""

    ASK = "ask"
    """Page, and freeze the ramp."""
    ROLL_BACK = "roll_back"
    """The same, and roll back if the rung below, serving at the same time, keeps it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """The policy of putting approved tiers in service."""

    ramp: tuple[int, ...] = (100,)
    """Per cent of clients after each step; one step is straight to 100 %."""
    hold_seconds: float = 3600.0
    """How long a step must hold before the next."""
    on_slo_loss: OnSloLoss = OnSloLoss.ASK
    measured_seconds: float = 14 * 86_400.0
    """Older measurements of load runs count as none."""

    def __post_init__(self) -> None:
        if not self.ramp or self.ramp[-1] != 100:
            raise ValueError(f"the last step of a ramp is 100 %, got {_written(self.ramp)}")
        if self.ramp[0] < 1 or any(
            later <= step for step, later in zip(self.ramp, self.ramp[1:], strict=False)
        ):
            raise ValueError(f"the steps of a ramp rise from at least 1 %, got {_written(self.ramp)}")
        if not self.hold_seconds >= 0:
            raise ValueError(f"a step holds for at least 0 s, got {self.hold_seconds}")
        if not self.measured_seconds > 0:
            raise ValueError(f"measurements last for more than 0 s, got {self.measured_seconds}")

    @property
    def first(self) -> int:
        """The share that an approval gives."""
        return self.ramp[0]

    def after(self, share: int) -> int | None:
        """The step after this share; None at the top, and where there is no ramp at all."""
        return next((step for step in self.ramp[1:] if step > share), None)


AT_ONCE = Promotion()
"""Straight to 100 %."""


def with_share(weights: Mapping[str, int], tier: str, share: int) -> dict[str, int]:
    """The weights once the tier has that share of 100; those with the most give it, ties by name.

    ValueError when it has more already: giving up a share is a rollback, which says who takes it.
    """
    wanted = share - weights.get(tier, 0)
    if not 0 <= wanted <= 100 or share > 100:
        raise ValueError(f"{tier!r} has {weights.get(tier, 0)} %, it cannot be given {share} %")
    moved = dict(weights)
    for giver in sorted(set(weights) - {tier}, key=lambda name: (-weights[name], name)):
        given = min(wanted, weights[giver])
        moved[giver] -= given
        wanted -= given
    moved[tier] = share
    return {name: weight for name, weight in moved.items() if weight}


def handed_over(weights: Mapping[str, int], tier: str, to: str) -> dict[str, int]:
    """The weights once a tier's share is the other's as well."""
    moved = {name: weight for name, weight in weights.items() if name != tier}
    moved[to] = moved.get(to, 0) + weights.get(tier, 0)
    return moved


def _written(ramp: tuple[int, ...]) -> str:
    return ", ".join(f"{step} %" for step in ramp) or "none"
