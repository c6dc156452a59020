"""The part of `tiergate.yaml` under `money`, and the values it becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, model_validator

from service.decision.failure_chain import RETRY_OR_ESCALATE, ChainStep, FailureChain
from service.settings.forms import Amount, Factor, Name, Section, Shape, Share, written


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """What failures and operations cost."""

    currency: str = "CNY"
    failure: FailureChain = RETRY_OR_ESCALATE
    operations_per_request: float = 0.0
    """Of running one more tier, in the currency."""


DEFAULT_MONEY = Money()


class StepShape(Shape):
    """One thing that is done about a failed answer."""

    step: Name = Field(description="What it is, in a word or two.")
    share: Share = written("100%", "Of the failures that came to the step before.")
    costs: Factor = written("0x", "In requests of the baseline.")
    price: Amount = Field(
        default=0.0, description="What it costs besides, in the currency: a person's minutes, say."
    )

    @model_validator(mode="after")
    def _costs_something(self) -> StepShape:
        if not {"costs", "price"} & self.model_fields_set:
            raise ValueError("a step says its `costs`, in requests of the baseline, or its `price`")
        return self


class FailureShape(Shape):
    """What a failed answer costs: a retry, some go to a bigger model, and what is done about those left."""

    retry: Factor = written("1x", "Each failure is tried again; in requests of the baseline.")
    escalate: Factor = written("6x", "Some go to a bigger model.")
    escalate_share: Share = written("50%", "How many of them.")
    then: list[StepShape] = Field(
        default=[], description="What is done about those that fail there as well, step by step."
    )


class MoneyShape(Shape):
    """What failures and operations cost."""

    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = Field(
        default="CNY", description="ISO 4217 code. Every price is in it."
    )
    failure: Annotated[FailureShape, Section] = Field(
        default=FailureShape(), description="Cost of one failure."
    )
    operations_per_request: Amount = Field(
        default=0.0, description="Cost of running one more tier, per request, in the currency."
    )


def build_money(shape: MoneyShape) -> Money:
    """All amounts are in `currency`, or multiples of a baseline request's cost."""
    return Money(
        currency=shape.currency,
        failure=build_chain(shape.failure),
        operations_per_request=shape.operations_per_request,
    )


def build_chain(shape: FailureShape) -> FailureChain:
    """A retry, the bigger model, and then the others, in order."""
    retry, escalate = RETRY_OR_ESCALATE.steps
    return FailureChain(
        steps=(
            ChainStep(name=retry.name, multiple=shape.retry),
            ChainStep(name=escalate.name, share=shape.escalate_share, multiple=shape.escalate),
            *(
                ChainStep(name=each.step, share=each.share, multiple=each.costs, price=each.price)
                for each in shape.then
            ),
        )
    )
