"""The JSON of gates that tools call by webhooks: Flagger, GitHub, GitLab."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.approval.schemas import Answer

ANY_OBJECT: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The tool's own payload; read after its signature was verified over these bytes.",
        "content": {"application/json": {"schema": {"type": "object"}, "example": {"action": "requested"}}},
    }
}


class NotedOut(Answer):
    noted: Literal["new", "known", "again", "ignored"] = Field(
        description="`new`: the answer will come; `known`: it is, or was, on its way; `again`: once more.",
        examples=["new"],
    )


class FlaggerHook(BaseModel):
    """What Flagger posts. Phases come and go between its versions, so any is taken."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str = Field(max_length=253, description="Of the canary.", examples=["qwen3-32b"])
    namespace: str = Field(max_length=253, examples=["serving"])
    phase: str = Field(default="", max_length=100, examples=["WaitingPromotion"])
    checksum: str = Field(default="", max_length=253, examples=["85d557f47b"])
    metadata: dict[str, str] | None = Field(
        default=None,
        description="What stands in the canary: `hook`, `token`, `artifact`, `basis`; at the stock paths "
        "`model` and `tier`.",
        examples=[{"hook": "confirm-promotion"}],
    )
