"""The part of `tiergate.yaml` under `policy`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo

import evaluators
from service.settings import spelling
from service.settings.forms import Age, Count, Duration, Factor, Points, Section, Shape, Share, written
from service.settings.nearest import nearest
from service.settings.promotion import PromotionShape


def _evaluator(name: str, asked: ValidationInfo) -> str:
    """Of the `known` that the reader looked up; else of ours."""
    known = (asked.context or {}).get("known") or [
        evaluator.name for evaluator in (*evaluators.ALL, *evaluators.ASKED_FOR)
    ]
    if name not in known:
        there_are = ", ".join(known)
        raise ValueError(
            f"no evaluator has this name; did you mean `{nearest(name, known)}`? (there are: {there_are})"
        )
    return name


def _margin(share: float) -> float:
    if not 0 < share < 1:
        raise ValueError(f"a margin lies above 0pp and below 100pp, got {spelling.points(share)}")
    return share


def _error_rate(rate: float) -> float:
    """Whoever writes 95% means a confidence."""
    if not 0 < rate < 0.5:
        meant = f"; for a confidence of {spelling.share(rate)} write {spelling.share(1 - rate)}"
        raise ValueError(
            f"an error rate lies above 0% and below 50%, got {spelling.share(rate)}"
            + (meant if 0.5 < rate < 1 else "")
        )
    return rate


def _part(share: float) -> float:
    if not share > 0:
        raise ValueError(f"this share lies above 0%, got {spelling.share(share)}")
    return share


def _chance(share: float) -> float:
    if not 0 < share < 1:
        raise ValueError(f"this chance lies above 0% and below 100%, got {spelling.share(share)}")
    return share


EvaluatorName = Annotated[str, AfterValidator(_evaluator)]
Margin = Annotated[Points, AfterValidator(_margin)]
ErrorRate = Annotated[Share, AfterValidator(_error_rate)]
Part = Annotated[Share, AfterValidator(_part)]
"""More than nothing."""
Chance = Annotated[Share, AfterValidator(_chance)]
"""Neither none nor certainty."""


class CriterionShape(Shape):
    """One evaluator's hypothesis; what it leaves out is taken from the policy."""

    hypothesis: Literal["non_inferior", "equivalent"] | None = Field(
        default=None, description="Default non_inferior; for refusal and tool_use equivalent."
    )
    margin: Margin | None = Field(default=None, description="Largest tolerable rise of the failure rate.")
    min_pairs: Annotated[Count, Field(ge=1)] | None = Field(
        default=None, description="Fewer pairs decide nothing."
    )
    baseline_failure_cap: Part | None = Field(
        default=None,
        description="Above this share of baseline failures the criterion measures nothing. Default 50%.",
    )
    role: Literal["decisive", "shown", "muted"] | None = Field(
        default=None,
        description="Decides (default, once named); or is printed and decides nothing; or is scored.",
    )
    max_pairs: Annotated[Count, Field(ge=1)] | None = Field(
        default=None,
        description="Where an epoch stops looking; without it, planned once the minimum of pairs is there.",
    )


class AlphaShape(Shape):
    """Error rates."""

    accept: ErrorRate = written("5%", "Of accepting a tier that is worse than the margin.")
    harm: ErrorRate = written("5%", "Of rejecting a tier that is not worse, over all criteria and tiers.")
    warn: ErrorRate = written("5%", "Of warning of a tier that is not worse at all.")
    strata: ErrorRate = written(
        "1%", "Of rejecting a tier for one stratum although none is worse than the margin, over all of them."
    )
    gates: ErrorRate = written(
        "5%", "Of passing the SLO or the money gate wrongly, or failing it, over all load runs of a tier."
    )


class LoadRunsShape(Shape):
    """What the gates that load runs decide are held to."""

    slo_margin: Margin = written("1pp", "Largest tolerable rise of the share of requests that miss the SLO.")
    failure_weight: Annotated[Factor, Field(ge=0)] | None = Field(
        default=None,
        description="What one failure costs in baseline requests; by default what money.failure comes to.",
    )
    blocks: Annotated[Count, Field(ge=2)] = Field(
        default=8, description="Of each tier; with fewer a run shows nothing."
    )
    baseline_misses: Part = written(
        "3%", "Beyond this share of misses of the baseline the rate was too high to show anything."
    )
    power: Chance = written("90%", "Chance of passing an equal tier for which a run extends its window.")
    least_power: Chance = written("80%", "A run whose budget does not reach it is not made.")
    block_correlation: Annotated[float, Field(ge=0, le=1, strict=False)] = Field(
        default=0.25,
        description="Of misses within a block, assumed while fewer than 20 blocks differ between the tiers.",
    )


Asking = Literal["required", "off"]


class GatesShape(Shape):
    """Conditions of acceptance; `off` is printed as `not asked` with every verdict."""

    quality: Literal["required"] = Field(
        default="required", description="Every criterion holds. Without it anything would be accepted."
    )
    control: Asking = Field(
        default="required", description="The baseline against itself shows no difference."
    )
    coverage: Asking = Field(
        default="required", description="Every stratum of the traffic is in the evidence."
    )
    attribution: Asking = Field(
        default="required", description="Baseline and candidate differ in precision and in nothing else."
    )
    slo: Asking = Field(
        default="required", description="A load run shows that the SLO pass rate did not drop."
    )
    money: Asking = Field(default="required", description="A load run shows a net benefit.")


class PolicyShape(Shape):
    """What a tier must show."""

    margin: Margin = written("1pp", "Largest tolerable rise of a failure rate; per criterion below.")
    min_pairs: Annotated[Count, Field(ge=1)] = Field(default=300, description="Fewer pairs decide nothing.")
    alpha: Annotated[AlphaShape, Section] = Field(default=AlphaShape(), description="Error rates.")
    criteria: dict[EvaluatorName, Annotated[CriterionShape, Section]] = Field(
        default_factory=dict,
        description="What decides, by evaluator; without it ours for JSON, recall and refusals. "
        "Every other evaluator is shown until it is named here.",
    )
    gates: Annotated[GatesShape, Section] = Field(
        default=GatesShape(), description="Conditions of acceptance."
    )
    on_harm: Literal["roll_back", "ask"] = Field(
        default="roll_back", description="What the guard does when a promoted tier is shown to harm."
    )
    load_runs: Annotated[LoadRunsShape, Section] = Field(
        default=LoadRunsShape(), description="What the SLO and the money gate are held to."
    )
    promotion: Annotated[PromotionShape, Section] = Field(
        default=PromotionShape(), description="How an approved tier gets its share of the clients."
    )
    ladder_rule: Literal["fixed_sequence", "independent"] = Field(
        default="fixed_sequence",
        description="A tier is tested at full alpha once the rung below was accepted, or each at its share.",
    )
    alpha_spending: Literal["over_attempts", "first_attempt"] = Field(
        default="over_attempts", description="How a tier that is submitted again shares alpha.accept."
    )
    max_unscored: Share = written("1%", "Largest share of pairs without a score.")
    units: Literal["first_sampled", "closed_conversations"] = Field(
        default="first_sampled",
        description="Of a conversation counts its first sampled request, or all of it once it is closed.",
    )
    idle: Duration = written(
        "30m", "Without a request, after which a conversation is closed; with `units: closed_conversations`."
    )
    tenant_share_cap: Part | None = Field(
        default=None,
        description="Largest share of a criterion's units that one tenant may hold in an acceptance.",
    )
    baseline_after_approval: Literal["kept", "switched_off"] = Field(
        default="kept",
        description="Switched off leaves nothing to fall back to: acceptance takes half of alpha.accept.",
    )
    longest: Age = written(
        "none", "Age at which an epoch without a decision is given up as not shown; `none` for no end."
    )
