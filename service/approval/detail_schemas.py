"""The JSON of what comparisons saw, name by name."""

from __future__ import annotations

from pydantic import Field

from service.approval.schemas import EPOCH, Answer


class NamedDetailOut(Answer):
    name: str = Field(
        description="A field in names of the request's schema (`*` for items and names it does not list), "
        "or what else was compared.",
        examples=["/orders/*/total"],
    )
    candidate: dict[str, int] = Field(
        description="How often by kind: agrees, value, type, missing; or a range of ratios.",
        examples=[{"agrees": 96, "value": 4}],
    )
    control: dict[str, int] = Field(description="The same of the baseline against itself.")


class DetailsOut(Answer):
    model: str
    tier: str
    epoch: str = Field(examples=[EPOCH])
    evaluator: str = Field(examples=["field_agreement"])
    version: str
    names: list[NamedDetailOut] = Field(description="The most counted first. Shown; no verdict reads it.")
