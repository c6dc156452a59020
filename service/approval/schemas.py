"""The JSON of `/api/v1`, field by field; `/docs` prints it.

Here and in `verdict_schemas` is the only pydantic in this room.

Numbers are finite: JSON has no NaN and no Infinity, and some pipelines take an unparsable answer for a yes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from service.decision.verdict import Decision


def storable(text: str) -> str:
    """Without NUL, which no PostgreSQL column can hold: the sign of an unknown character stands for it."""
    return text.replace("\0", "\ufffd")


Finite = Annotated[float, Field(allow_inf_nan=False)]
Digest = Annotated[
    str,
    StringConstraints(pattern=r"^(sha256:)?[0-9a-f]{64}$"),
    Field(examples=["sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]),
]
Duration = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,8}[smhdw]$")]
Reason = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000), AfterValidator(storable)
]
TierName = Annotated[str, StringConstraints(min_length=1, max_length=500)]
YEAR = 366 * 86400
EPOCH = "5f0c3f1fb2b1f0c1f1e0a7a8a1d57a3c0a2f2a5f0a4c6f4d2f7b8b1d9e3c4a5b"


class Answer(BaseModel):
    """Built from our own frozen values."""

    model_config = ConfigDict(from_attributes=True, frozen=True)


class Body(BaseModel):
    """Sent by a client: unknown fields are errors, and nothing is converted that was not meant so."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _whole_numbers(cls, sent: Any) -> Any:
        """JSON has one kind of number: 60.0 is the integer 60, in JSON Schema as well."""
        if not isinstance(sent, dict):
            return sent
        return {
            name: int(each) if isinstance(each, float) and each.is_integer() else each
            for name, each in sent.items()
        }


class ProblemOut(Answer):
    type: str = Field(
        description="RFC 9457; a place on this API's page of documentation.",
        examples=["/docs#problem-unknown_tier"],
    )
    title: str = Field(
        description="The same for every problem of a code.", examples=["There is no such tier"]
    )
    status: int = Field(description="The HTTP status.", examples=[404])
    detail: str = Field(
        description="What is wrong this time.", examples=["model 'qwen3-32b' has no tier 'w8a9'"]
    )
    code: str = Field(description="One word for programs; it keeps its meaning.", examples=["unknown_tier"])
    hint: str = Field(description="What to do about it; may be empty.", examples=["did you mean 'w8a8'?"])
    reasons: list[str] | None = Field(
        default=None, description="The verdict's reasons, where one stands in the way.", examples=[None]
    )
    decision: Decision | None = Field(default=None, examples=[None])


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


class RejectionBody(Body):
    reason: Reason = Field(description="Why; kept in the decision log and shown with the tier.")
    force: bool = Field(default=False, description="Do not ask whether the tier that takes over is up.")


class InterventionBody(Body):
    reason: Reason = Field(description="Why; kept in the decision log and shown with every verdict.")


class InterventionOut(Answer):
    model: str = Field(examples=["qwen3-32b"])
    tier: str = Field(examples=["w8a8"])
    epoch: str = Field(description="What it holds for; another epoch ends it.", examples=[EPOCH])
    changed: bool = Field(description="False when everything was so already.")
    skipped: bool = Field(description="Whether the tiers above do without this one.")
    attempt: int = Field(description="The attempt that this epoch counts as.")
    alpha: float = Field(description="The error rate that it is held to.", examples=[0.05])


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


class LogOut(Answer):
    entries: list[EntryOut] = Field(description="Oldest first; `model` is empty where a decision is of none.")
    next_after: int | None = Field(description="Pass as `after` to read on; null at the end.")
    chain: Literal["intact", "broken"]
    broken_at: int | None = Field(description="Sequence number of the first entry that does not fit.")
    head_seq: int = Field(description="Of the last entry; 0 of an empty log.")
    head_digest: str = Field(description="Keep it elsewhere: `tiergate log verify --head SEQ:DIGEST`.")


class IssuedRouteOut(Answer):
    model: str = Field(examples=["qwen3-32b"])
    weights: dict[str, int] = Field(description="Per cent by tier.", examples=[{"bf16": 95, "w8a8": 5}])
    version: int = Field(examples=[3])
    issued_at: float = Field(description="Unix seconds.", examples=[1767225600.0])


class RoutesOut(Answer):
    now: float = Field(description="This API's clock, unix seconds.", examples=[1767225601.5])
    routes: list[IssuedRouteOut]


class EpochOut(Answer):
    epoch: str = Field(examples=[EPOCH])
    current: bool = Field(description="New evidence belongs to it.")
    attempt: int | None = Field(description="Its number, once it reached the minimum of pairs.")
    first_seen: str = Field(description="RFC 3339.")
    facts: dict[str, Any] = Field(description="All that its hash is made of: declared, and told by engines.")


class EpochsOut(Answer):
    model: str
    tier: str
    epoch: str = Field(description="The one that counts now.", examples=[EPOCH])
    unsettled: str | None = Field(
        description="Why pairs belong to none at the moment: backends that disagree, an engine that changed."
    )
    epochs: list[EpochOut] = Field(description="The latest first.")


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
