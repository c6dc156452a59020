"""The JSON of load runs and of the control, as a verdict shows them, field by field."""

from __future__ import annotations

from pydantic import Field

from service.approval.schemas import Answer, Finite
from service.decision.evidence import Shown


class EnergyOut(Answer):
    requests: int = Field(description="That both arms answered twice, the latest of them.")
    conversations: int
    value: Finite | None = Field(
        description="psi_AQ - psi_AA/2 - psi_QQ/2 over them: 0 only if every request fails as before."
    )
    standard_error: Finite | None = Field(description="Over conversations; null below two of them.")
    p_value: Finite | None = Field(description="One-sided, against 0; a single look, which decides nothing.")
    psi_control: Finite | None = Field(description="psi_AA over these requests.")
    psi_between: Finite | None = Field(description="psi_AQ over these requests.")
    psi_candidate: Finite | None = Field(
        description="psi_QQ: share of these requests in which the candidate differs from itself."
    )


class NoiseOut(Answer):
    control: Finite = Field(description="psi_AA: share of pairs in which the baseline differs from itself.")
    candidate: Finite = Field(description="psi_AQ: share of pairs in which the candidate differs from it.")
    share: Finite | None = Field(description="psi_AA / psi_AQ; null if no pair of the candidate differs.")
    energy_at_most: Finite = Field(
        description="psi_AQ - psi_AA/2: the energy distance if the candidate never differed from itself."
    )
    energy: EnergyOut | None = Field(
        default=None,
        description="The energy distance; null unless shadow.repeats asks candidates twice.",
    )


class MeasuredOut(Answer):
    shown: Shown
    reason: str
    counts: bool = Field(description="False when it is older than policy.promotion.measured_within.")
    age_seconds: Finite | None = Field(description="Since the end of the load run.")
    ended_at: str | None = Field(description="RFC 3339.")
    run: int | None = Field(description="j: which load run of the epoch, held to alpha_j.")
    numbers: dict[str, int | Finite | str] = Field(description="What it rests on, and what it was held to.")


class ChainStepOut(Answer):
    name: str = Field(examples=["bigger model"])
    share: Finite = Field(description="Of the failures that came to the step before.")
    multiple: Finite = Field(description="Its cost in requests of the baseline.")
    price: Finite = Field(description="What it costs besides, in the currency.")


class FailureChainOut(Answer):
    steps: list[ChainStepOut]


class LoadRunTermsOut(Answer):
    slo_margin: Finite = Field(examples=[0.01])
    least_blocks: int = Field(examples=[8])
    most_baseline_misses: Finite = Field(examples=[0.03])
    power: Finite = Field(examples=[0.9])
    least_power: Finite = Field(examples=[0.8])
    block_correlation: Finite = Field(examples=[0.25])
    failure: FailureChainOut = Field(description="What is done about a failed answer, in order.")
