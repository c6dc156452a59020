"""The JSON of `/api/v1`, field by field; `/docs` prints it. The only pydantic in this room.

Numbers are finite: JSON has no NaN and no Infinity, and some pipelines take an unparsable answer for a yes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from service.decision.policy import AlphaSpending, Asked, Gate, Hypothesis, LadderRule, OnHarm
from service.decision.verdict import Decision, GateState

Finite = Annotated[float, Field(allow_inf_nan=False)]
Digest = Annotated[str, StringConstraints(pattern=r"^(sha256:)?[0-9a-f]{64}$")]
Duration = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,8}[smhdw]$")]
Reason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]
TierName = Annotated[str, StringConstraints(min_length=1, max_length=500)]
YEAR = 366 * 86400
EPOCH = "5f0c3f1fb2b1f0c1f1e0a7a8a1d57a3c0a2f2a5f0a4c6f4d2f7b8b1d9e3c4a5b"


class Answer(BaseModel):
    """Built from our own frozen values."""

    model_config = ConfigDict(from_attributes=True, frozen=True)


class Body(BaseModel):
    """Sent by a client: unknown fields are errors, and nothing is converted that was not meant so."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ErrorOut(Answer):
    code: str = Field(description="One word for programs.", examples=["unknown_tier"])
    message: str = Field(examples=["model 'qwen3-32b' has no tier 'w8a9'"])
    hint: str = Field(description="What to do about it; may be empty.", examples=["did you mean 'w8a8'?"])
    reasons: list[str] | None = Field(
        default=None, description="The verdict's reasons, where one stands in the way."
    )
    decision: Decision | None = None


class ErrorAnswer(Answer):
    error: ErrorOut


class RouteOut(Answer):
    version: int = Field(description="Grows with every change; 0 before the first.", examples=[3])
    serving: str = Field(description="The tier with the most weight.", examples=["w8a8"])
    weights: dict[str, int] = Field(description="Per cent of clients by tier.", examples=[{"w8a8": 100}])


class ModelOut(Answer):
    model: str = Field(description="The name clients send.", examples=["qwen3-32b"])
    baseline: str = Field(examples=["bf16"])
    tiers: list[str] = Field(description="Least to most aggressive.", examples=[["bf16", "w8a8", "w4a16"]])
    serving: str = Field(examples=["bf16"])
    route_version: int = Field(examples=[0])


class ModelsOut(Answer):
    models: list[ModelOut]


class ApprovalOut(Answer):
    by: str = Field(description="Name of the token.", examples=["ci"])
    at: str = Field(description="RFC 3339.", examples=["2026-01-01T12:00:00Z"])
    expires_at: str | None = Field(description="RFC 3339; null = until revoked.")
    expired: bool
    artifact: str | None = Field(description="sha256 the approval is bound to.")
    override: bool = Field(description="Given against the verdict by a token with scope admin.")
    reason: str | None
    decision: Decision = Field(description="The verdict at that moment.")
    epoch: str = Field(examples=[EPOCH])
    policy_digest: str = Field(description="sha256 of the policy at that moment.")
    evaluators: dict[str, str] = Field(description="Versions at that moment.")


class RungOut(Answer):
    tier: str = Field(examples=["w8a8"])
    rung: int = Field(description="0 is the baseline.", examples=[1])
    state: str = Field(
        description="baseline, shadowing (no pairs yet), undecided, accept, reject, approved, expired.",
        examples=["undecided"],
    )
    weight: int = Field(description="Per cent of clients it serves now.", examples=[0])
    decision: Decision | None = Field(description="null for the baseline.")
    summary: str = Field(description="The state in one sentence.")
    approval: ApprovalOut | None
    declares: dict[str, str] = Field(examples=[{"weights": "int8", "activations": "int8"}])
    price_per_hour: Finite | None
    backends: int = Field(description="How many are configured.", examples=[1])


class LadderOut(Answer):
    model: str = Field(examples=["qwen3-32b"])
    baseline: str = Field(examples=["bf16"])
    route: RouteOut
    rungs: list[RungOut]


class IntervalOut(Answer):
    lower: Finite = Field(examples=[-0.0021])
    upper: Finite = Field(examples=[0.0083])
    level: Finite = Field(examples=[0.95])
    method: str


class LogEOut(Answer):
    noninferiority: Finite = Field(examples=[3.41])
    harm: Finite = Field(examples=[-5.2])
    warn: Finite = Field(examples=[-0.7])


class FindingOut(Answer):
    criterion: str = Field(examples=["structured_output"])
    decision: Decision
    reason: str
    n: int = Field(description="Pairs that count.", examples=[1000])
    conversations: int = Field(description="Independent units among them.", examples=[987])
    harm: int = Field(description="Only the candidate failed.", examples=[2])
    benefit: int = Field(description="Only the baseline failed.", examples=[3])
    estimate: Finite | None = Field(
        description="(harm - benefit) / n; null without pairs.", examples=[-0.001]
    )
    interval: IntervalOut
    margin: Finite = Field(examples=[0.01])
    log_e: LogEOut
    warn: bool
    more_pairs: int | None = Field(
        description="Further pairs expected until accept; null when decided or out of sight.", examples=[None]
    )


class CriterionAskedOut(Answer):
    criterion: str = Field(examples=["structured_output"])
    hypothesis: Hypothesis
    margin: Finite = Field(examples=[0.01])
    min_pairs: int = Field(examples=[300])
    baseline_failure_cap: Finite = Field(examples=[0.5])


class PolicyOut(Answer):
    digest: str = Field(description="sha256 of everything the policy says.", examples=[EPOCH])
    criteria: list[CriterionAskedOut]
    alpha_accept: Finite = Field(examples=[0.05])
    alpha_harm: Finite = Field(examples=[0.05])
    alpha_warn: Finite = Field(examples=[0.05])
    max_unscored: Finite = Field(examples=[0.01])
    gates: dict[Gate, Asked]
    on_harm: OnHarm
    alpha_spending: AlphaSpending
    ladder_rule: LadderRule


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
    not_shown: bool = Field(description="Undecided for good: a criterion ran out of pairs it may ask for.")
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
    pairs: list[PairOut] = Field(description="The latest, newest first.")


class ApprovalBody(Body):
    artifact: Digest | None = Field(default=None, description="sha256 of what will be rolled out.")
    expires_in: Annotated[int, Field(ge=1, le=YEAR)] | Duration | None = Field(
        default=None, description="Seconds, or a number with s, m, h, d or w.", examples=["30d"]
    )
    override: bool = Field(
        default=False, description="Approve against the verdict; needs a reason and scope `admin`."
    )
    reason: Reason | None = None


class RollbackBody(Body):
    to: TierName | None = Field(
        default=None, description="A rung below the one that serves; the next approved one by default."
    )
    if_serving: TierName | None = Field(
        default=None,
        description="Only if this is the highest tier that serves, so that a repeated call goes down once.",
    )
    reason: Reason | None = None
    force: bool = Field(default=False, description="Do not ask the target's backends whether they are up.")


class ChangeOut(Answer):
    model: str = Field(examples=["qwen3-32b"])
    tier: str = Field(
        description="The tier asked about; of a rollback, the one that serves now.", examples=["w8a8"]
    )
    changed: bool = Field(description="False when everything was so already.")
    approval: ApprovalOut | None = None
    route: RouteOut
    published: bool = Field(
        description="Whether the proxies have been told; if not, the guard tells them as soon as it can."
    )
    warnings: list[str]


class EntryOut(Answer):
    seq: int
    at: str = Field(description="RFC 3339.")
    actor: str
    action: str = Field(examples=["approve"])
    model: str
    tier: str | None
    detail: dict[str, Any]
    prev: str = Field(description="Digest of the entry before it.")
    digest: str = Field(description="sha256 over this entry and `prev`.")


class DecisionsOut(Answer):
    model: str
    entries: list[EntryOut] = Field(description="Oldest first.")
    next_after: int | None = Field(description="Pass as `after` to read on; null at the end.")
    chain: Literal["intact", "broken"] = Field(description="Of the whole log, all models.")
    broken_at: int | None = Field(description="Sequence number of the first entry that does not fit.")


class CountersOut(Answer):
    seen: int = Field(description="= skipped + sampled")
    skipped: dict[str, int] = Field(description="By reason.")
    sampled: int = Field(description="= shipped + dropped")
    dropped: dict[str, int] = Field(description="By reason.")
    shipped: int = Field(description="= processed + expired + lost + waiting")
    processed: int
    expired: int
    lost: int
    waiting: int
    in_flight: int = Field(description="Begun by running proxies and not decided yet.")
    unaccounted: int = Field(description="At most so many requests were seen by killed proxies and not told.")


class PairAccountOut(Answer):
    model: str
    tier: str
    arm: str = Field(examples=["candidate"])
    evaluator: str = Field(examples=["refusal"])
    due: int = Field(description="= scored + unscored + not_applicable + over_budget")
    scored: int
    unscored: dict[str, int] = Field(description="By reason.")
    not_applicable: int
    over_budget: int


class LedgerOut(Answer):
    model: str | None = Field(description="null = all models together.")
    balanced: bool = Field(description="Every equation holds.")
    problems: list[str] = Field(description="What a person should know, in words.")
    counters: CountersOut
    traffic: dict[str, int] = Field(description="Requests by stratum.")
    pairs: list[PairAccountOut]


class HealthOut(Answer):
    status: str = Field(examples=["ok"])


class ReadyOut(Answer):
    status: str = Field(examples=["ready"])
    database: str = Field(examples=["ok"])
    redis: str = Field(description="Not needed to be ready: approvals are published later.", examples=["ok"])
