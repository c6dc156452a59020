"""The JSON of gates that render the judgement as it is: Argo Rollouts' web metric, Spinnaker's webhook."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from service.approval.dialects.judgement import Basis, State
from service.approval.schemas import Answer, Body, Finite

AnyDigest = Annotated[str, StringConstraints(pattern=r"^(sha256:)?[0-9a-fA-F]{64}$")]


class GateQuery(BaseModel):
    """What a gate is asked, in the URL. Unknown parameters are refused: one misspelt would bind nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    artifact: AnyDigest | None = Field(
        default=None,
        description="sha256 of what is about to be rolled out; another one than was measured waits.",
    )
    basis: Basis = Field(
        default=Basis.APPROVAL, description="`approval`: one must be in force; `verdict`: accept suffices."
    )


class ArgoJudgementOut(Answer):
    verdict: State = Field(examples=["inconclusive"])
    ok: bool = Field(description="Only for approved.", examples=[False])
    score: Finite = Field(description="100 approved, 75 to 89 inconclusive, 0 rejected.", examples=[81.3])
    reason: str = Field(description="One sentence.", examples=["tier w8a8 is undecided: 120 of 300 pairs."])
    evaluation_id: str = Field(description="Epoch, attempt, policy.", examples=["5f0c3f1fb2b1f0c1-1-9b0d"])
    n_pairs: int = Field(description="Of the criterion that has fewest.", examples=[120])
    expires_at: str | None = Field(description="RFC 3339; of the approval.", examples=[None])
    evidence_age: int | None = Field(description="Seconds since the first counted pair.", examples=[86400])


class ArgoOut(Answer):
    data: ArgoJudgementOut = Field(description="What `jsonPath: {$.data}` selects.")


class SpinnakerBody(Body):
    """Nothing: everything is in the URL, which is polled as well."""


class SpinnakerOut(Answer):
    status: Literal["running", "approved", "rejected", "inconclusive"] = Field(
        description="`running` while waiting may still change it.", examples=["running"]
    )
    progress: str = Field(description="State and reason.", examples=["inconclusive: 120 of 300 pairs."])
    status_url: str = Field(description="Where to ask again: this URL.")
    score: Finite = Field(examples=[81.3])
    evaluation_id: str = Field(examples=["5f0c3f1fb2b1f0c1-1-9b0d"])
    n_pairs: int = Field(examples=[120])
    approved_at: str | None = Field(description="RFC 3339.", examples=[None])
    expires_at: str | None = Field(description="RFC 3339; null = until revoked.", examples=[None])
    evidence_age: int | None = Field(description="Seconds since the first counted pair.", examples=[86400])
