"""The JSON of verdicts, of the evidence behind them and of their reasons, field by field."""

from __future__ import annotations

from pydantic import Field

from service.approval.measured_schemas import LoadRunTermsOut, MeasuredOut, NoiseOut
from service.approval.schemas import EPOCH, Answer, Finite
from service.decision.policy import (
    AlphaSpending,
    Asked,
    BaselineAfterApproval,
    Gate,
    Hypothesis,
    LadderRule,
    OnHarm,
    Role,
    Units,
)
from service.decision.verdict import Decision, GateState


class IntervalOut(Answer):
    lower: Finite = Field(examples=[-0.0021])
    upper: Finite = Field(examples=[0.0083])
    level: Finite = Field(examples=[0.95])
    method: str


class LogEOut(Answer):
    noninferiority: Finite = Field(examples=[3.41])
    harm: Finite = Field(examples=[-5.2])
    warn: Finite = Field(examples=[-0.7])


class StratumHarmOut(Answer):
    stratum: str = Field(examples=["8k-32k/structured/stream"])
    n: int
    conversations: int
    harm: int
    benefit: int
    estimate: Finite = Field(
        description="Mean over conversations of (harm - benefit) / n, each counted once."
    )
    log_e_harm: Finite = Field(description="log E_HARM(margin) within the stratum; rejects at log_e_stratum.")


class CorrectionOut(Answer):
    labels: int = Field(description="Pairs of which people say what they are.", examples=[412])
    undecided: int = Field(description="Pairs that they looked at and left open.")
    estimate: Finite = Field(description="The difference by people's labels.", examples=[0.004])
    interval: IntervalOut = Field(description="For one look: it withholds, and never accepts.")
    raw_estimate: Finite = Field(description="By the evaluator alone.", examples=[0.009])
    raw_interval: IntervalOut
    suffices: bool = Field(description="Whether it stands in place of the raw difference.")
    missing: str = Field(description="What the labels lack; empty when they suffice.")


class FindingOut(Answer):
    criterion: str = Field(examples=["structured_output"])
    role: Role = Field(description="`shown` is found and printed, and decides nothing.")
    decision: Decision
    reason: str
    n: int = Field(description="Pairs that count.", examples=[1000])
    conversations: int = Field(description="Independent units among them.", examples=[987])
    harm: int = Field(description="Only the candidate failed.", examples=[2])
    benefit: int = Field(description="Only the baseline failed.", examples=[3])
    estimate: Finite | None = Field(
        description="Mean over conversations of (harm - benefit) / n, each counted once; by people's labels "
        "where they suffice; null without pairs.",
        examples=[-0.001],
    )
    interval: IntervalOut
    margin: Finite = Field(examples=[0.01])
    log_e: LogEOut
    warn: bool
    more_pairs: int | None = Field(
        description="Further pairs expected until accept; null when decided or out of sight.", examples=[None]
    )
    not_shown: bool = Field(description="Undecided with all the pairs, or all the time, it may ask for.")
    max_pairs: int | None = Field(
        description="N_max: where this epoch stops looking; null until it is fixed, at the minimum of pairs."
    )
    worst_strata: list[StratumHarmOut] = Field(
        description="By evidence of harm, worst first, whether or not it is enough to reject."
    )
    log_e_holm: Finite | None = Field(
        description="The harm e-value adjusted over the ladder by e-Holm: compares with log(1/alpha_harm) by "
        "itself. Shown; null where nothing is decided."
    )
    correction: CorrectionOut | None = Field(description="What people's labels say; null without any.")
    noise: NoiseOut | None = Field(description="Of the control beside the candidate's; null without either.")


class CriterionAskedOut(Answer):
    criterion: str = Field(examples=["structured_output"])
    hypothesis: Hypothesis
    margin: Finite = Field(examples=[0.01])
    min_pairs: int = Field(examples=[300])
    baseline_failure_cap: Finite = Field(examples=[0.5])
    role: Role
    max_pairs: int | None = Field(description="N_max as a person set it; null = planned.")


class PolicyOut(Answer):
    digest: str = Field(description="sha256 of everything the policy says.", examples=[EPOCH])
    criteria: list[CriterionAskedOut]
    alpha_accept: Finite = Field(examples=[0.05])
    alpha_harm: Finite = Field(examples=[0.05])
    alpha_warn: Finite = Field(examples=[0.05])
    alpha_strata: Finite = Field(examples=[0.01])
    alpha_gates: Finite = Field(examples=[0.05])
    load_runs: LoadRunTermsOut = Field(description="What load runs are held to.")
    max_unscored: Finite = Field(examples=[0.01])
    gates: dict[Gate, Asked]
    on_harm: OnHarm
    alpha_spending: AlphaSpending
    ladder_rule: LadderRule
    units: Units = Field(description="What of a conversation counts.")
    idle_seconds: Finite
    longest_seconds: Finite | None = Field(description="T_max of an epoch; null = no end.")
    baseline_after_approval: BaselineAfterApproval
    tenant_share_cap: Finite | None


class ProductionCriterionOut(Answer):
    criterion: str = Field(examples=["structured_output"])
    margin: Finite = Field(examples=[0.01])
    min_pairs: int = Field(examples=[300])
    decision: Decision
    reason: str
    more_pairs: int | None


class ProductionOut(Answer):
    in_force: bool = Field(description="Whether the policy in force is at least as strict as production's.")
    decision: Decision = Field(description="What production's policy would say of the same evidence.")
    criteria: list[ProductionCriterionOut]
    gates: dict[Gate, GateState]


class ThresholdsOut(Answer):
    accept: Finite | None = Field(description="log(1/alpha); null when no error rate is left.")
    harm: Finite = Field(description="log(M/alpha_harm), M = decisive criteria x tiers under test.")
    strata: Finite = Field(description="log(M S/alpha_strata), S = strata there can be.")
    warn: Finite = Field(description="log(1/alpha_warn).")
    tiers_under_test: int
    strata_under_test: int


class VerdictOut(Answer):
    model: str = Field(examples=["qwen3-32b"])
    tier: str = Field(examples=["w8a8"])
    decision: Decision
    reasons: list[str] = Field(examples=[["missing_slo"]])
    findings: list[FindingOut]
    gates: dict[Gate, GateState]
    epoch: str = Field(description="sha256; evidence of other epochs does not count.", examples=[EPOCH])
    attempt: int = Field(
        description="Which epoch of this tier to reach its minimum of pairs: 1 for the first."
    )
    alpha: Finite = Field(
        description="The error rate this attempt is held to; 0 when none is left.", examples=[0.05]
    )
    alpha_restored: str | None = Field(
        description="By whom, when and why epochs before this one are no attempts any more."
    )
    skipped: str | None = Field(description="By whom, when and why the tiers above do without this one.")
    skipped_below: list[str] = Field(
        description="Tiers below that are skipped: alpha is shared by all tiers.", examples=[[]]
    )
    not_shown: bool = Field(
        description="Undecided for good: a criterion ran out of the pairs, or the time, it may ask for."
    )
    baseline_after_approval: BaselineAfterApproval = Field(
        description="`switched_off`: alpha is already halved for it."
    )
    measured: dict[Gate, MeasuredOut] = Field(
        description="What the latest load run showed of the SLO and the money gate, as the policy weighs it."
    )
    measured_within_seconds: Finite | None = Field(description="Older load runs count as none.")
    thresholds: ThresholdsOut
    age_seconds: Finite | None = Field(description="Since the first counted pair of the epoch.")
    policy: PolicyOut
    production: ProductionOut
    evaluated_at: str = Field(description="RFC 3339.", examples=["2026-01-01T12:00:00Z"])


class TallyOut(Answer):
    evaluator: str = Field(examples=["refusal"])
    n: int
    conversations: int
    harm: int
    benefit: int
    both_failed: int
    baseline_failures: int
    candidate_failures: int
    not_counted: int = Field(description="Scored, but not the first of their conversation.")
    unscored: dict[str, int] = Field(description="Due and not scored, by reason.")
    due: int


class CoverageOut(Answer):
    traffic: dict[str, int] = Field(description="Requests by stratum.")
    evidence: dict[str, int] = Field(description="Requests that count, by stratum.")


class AttributionOut(Answer):
    differences: list[str]
    unsettled: str | None = Field(description="Why the engines cannot be told apart yet.")
    not_told: list[str] = Field(description="Facts that a side does not tell, and that were not compared.")


class StratumOut(Answer):
    evaluator: str = Field(examples=["refusal"])
    stratum: str = Field(examples=["8k-32k/structured/stream"])
    n: int
    conversations: int
    harm: int
    benefit: int
    estimate: Finite = Field(description="Mean difference of the units; positive is worse.")
    log_e_harm: Finite | None = Field(
        description="log E_HARM(margin) within the stratum; null where it is too little to be looked at: at "
        "most log(15), and at most 0 where the estimate is within the margin."
    )


class TenantOut(Answer):
    evaluator: str = Field(examples=["refusal"])
    tenant: str = Field(description="Keyed hash of the API key.")
    n: int
    conversations: int
    harm: int
    benefit: int
    share: Finite = Field(description="Of the evaluator's units.")
    log_e_without: Finite = Field(description="log E_NI(margin) of everyone else.")
    passes_without: bool = Field(description="Whether everyone else is evidence enough.")
    log_e_harm: Finite = Field(description="log E_HARM(margin) of this tenant alone; warns, never rejects.")
    log_e_warn: Finite = Field(description="log E_HARM(0) of this tenant alone.")
    warn: bool


class PairOut(Answer):
    capture_id: str
    item: int = Field(description="Number of the recall probe, else 0.")
    evaluator: str
    version: str
    outcome: str
    unscored_reason: str = Field(description="Empty when it was scored.")
    baseline_passed: bool | None
    candidate_passed: bool | None
    baseline_label: str
    candidate_label: str
    baseline_reason: str
    candidate_reason: str
    origin: str = Field(description="Where the baseline's answer comes from: live or replay.")
    own_stratum: str = Field(description="Of a recall question: the depth of its answer, else empty.")
    conversation: str
    stratum: str
    epoch: str
    counted: bool = Field(description="False when another request of its conversation counts.")
    at: str = Field(description="RFC 3339.")


class EvidenceOut(Answer):
    model: str
    tier: str
    epoch: str = Field(examples=[EPOCH])
    attempt: int
    tallies: list[TallyOut] = Field(description="Candidate against baseline.")
    control: list[TallyOut] | None = Field(
        description="Baseline against itself; null when no control can run."
    )
    coverage: CoverageOut
    attribution: AttributionOut | None = Field(
        description="What besides the precision differs; null when the engines tell nothing."
    )
    strata: list[StratumOut] = Field(description="Of each evaluator, by evidence of harm, worst first.")
    tenants: list[TenantOut] = Field(
        description="Leave one out: of each evaluator, the tenant without whom least is left, first."
    )
    max_pairs: dict[str, int] = Field(description="N_max by evaluator, once it is fixed.")
    age_seconds: Finite | None = Field(description="Since the first counted pair of the epoch.")
    pairs: list[PairOut] = Field(description="The latest, newest first.")


class StepOut(Answer):
    title: str = Field(examples=["structured_output: counts"])
    sentence: str = Field(description="For who reads; follows from the steps before it.")
    numbers: dict[str, int | Finite | str] = Field(description="For who checks; texts are formulas.")


class LabelsOut(Answer):
    baseline: str = Field(examples=["ok"])
    candidate: str = Field(examples=["not_json"])
    pairs: int


class StratumCountOut(Answer):
    stratum: str
    pairs: int


class WorstPairsOut(Answer):
    criterion: str = Field(examples=["structured_output"])
    pairs: int = Field(description="Counted pairs that speak against the tier.")
    labels: list[LabelsOut] = Field(description="How they differ, the most frequent first.")
    strata: list[StratumCountOut] = Field(description="Where they are, the most frequent first.")
    examples: list[PairOut] = Field(description="The latest of the worst strata.")


class RecomputeOut(Answer):
    what: str
    command: str = Field(examples=["tiergate stats --n 1000 --harm 2 --benefit 3 --margin 0.01"])


class WhyOut(Answer):
    model: str = Field(examples=["qwen3-32b"])
    tier: str = Field(examples=["w8a8"])
    decision: Decision
    epoch: str = Field(examples=[EPOCH])
    attempt: int
    policy_digest: str = Field(description="sha256 of everything the policy says.", examples=[EPOCH])
    steps: list[StepOut] = Field(description="The chain from counts to decision, in order.")
    worst_pairs: list[WorstPairsOut] = Field(description="Labels and reasons, never prompts.")
    recompute: list[RecomputeOut] = Field(description="How to check the numbers elsewhere.")
    evaluated_at: str = Field(description="RFC 3339.", examples=["2026-01-01T12:00:00Z"])
