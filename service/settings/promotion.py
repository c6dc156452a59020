"""The part of `tiergate.yaml` under `policy.promotion`, and the values it becomes."""

from __future__ import annotations

from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field

from service.decision.ramp import OnSloLoss, Promotion
from service.settings.forms import Duration, Shape, Share, written


def _rising(steps: list[float]) -> list[float]:
    """Whole per cent, rising, up to 100 %."""
    if any(abs(100 * step - round(100 * step)) > 1e-9 for step in steps):
        raise ValueError("steps are whole per cent, such as [5%, 25%, 100%]")
    Promotion(ramp=_percent(steps))
    return steps


def _percent(steps: list[float]) -> tuple[int, ...]:
    return tuple(round(100 * step) for step in steps)


class PromotionShape(Shape):
    """How an approved tier gets its share of the clients."""

    ramp: Annotated[list[Share], AfterValidator(_rising)] = Field(
        default=cast(Any, ["100%"]),
        description="Shares of clients, step by step. An approval gives the first, the guard the others.",
    )
    hold: Duration = written("1h", "How long a step holds before the next; no warning may come up in it.")
    on_slo_loss: Literal["ask", "roll_back"] = Field(
        default="ask",
        description="A tier that serves and loses its SLO pages and freezes the ramp; `roll_back`: and goes "
        "back, if the rung below, serving at the same time, keeps it.",
    )
    measured_within: Duration = written("14d", "Measurements of SLO and money that are older count as none.")


def build_promotion(shape: PromotionShape) -> Promotion:
    """The ramp in whole percent, rising to 100."""
    return Promotion(
        ramp=_percent(shape.ramp),
        hold_seconds=shape.hold,
        on_slo_loss=OnSloLoss(shape.on_slo_loss),
        measured_seconds=shape.measured_within,
    )
