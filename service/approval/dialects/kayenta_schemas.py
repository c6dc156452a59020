"""Kayenta's JSON in its own names (camelCase), as far as Argo Rollouts, orca and its remote judge use it."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from service.approval.dialects.judgement import Basis
from service.approval.schemas import Answer, Finite

Score = Annotated[int, Field(ge=0, le=100)]
LARGEST = 1e140
"""Of a metric's values: sums of their squares stay finite."""


class Sent(BaseModel):
    """Sent by Kayenta's clients, with fields besides; what is null was left out."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, sent: Any) -> Any:
        if not isinstance(sent, dict):
            return sent
        return {name: each for name, each in sent.items() if each is not None}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """As the validator has it: what need not be there may be null."""
        said = handler.resolve_ref_schema(handler(schema))
        for name, each in said.get("properties", {}).items():
            if name not in said.get("required", ()) and {"type": "null"} not in each.get("anyOf", ()):
                said["properties"][name] = {"anyOf": [each, {"type": "null"}]}
        return said


class Thresholds(Sent):
    pass_: float = Field(alias="pass", ge=0, le=100, allow_inf_nan=False, examples=[90])
    marginal: float = Field(ge=0, le=100, allow_inf_nan=False, examples=[75])


class ScopeIn(Sent):
    scope: str | None = Field(default=None, max_length=500, description="A sha256 binds to that artifact.")


class ScopePairIn(Sent):
    controlScope: ScopeIn = ScopeIn()  # noqa: N815
    experimentScope: ScopeIn = ScopeIn()  # noqa: N815


class ExecutionBody(Sent):
    scopes: dict[str, ScopePairIn] = Field(default_factory=dict, max_length=50)
    thresholds: Thresholds


class Execution(BaseModel):
    """What an execution's id says: everything that was asked, so that nothing is kept."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    config: str = Field(max_length=64)
    least_to_pass: float = Field(ge=0, le=100)
    marginal: float = Field(ge=0, le=100)
    artifact: str | None = Field(max_length=100)
    basis: Basis
    application: str = Field(max_length=200)
    at: float = Field(ge=0, le=1e11)
    until: float | None = Field(default=None, ge=0, le=1e12)
    """When a standalone analysis ends without having been decided; None: when it is."""


class StandaloneScopeIn(Sent):
    experimentScope: str | None = Field(  # noqa: N815
        default=None, max_length=500, description="A sha256 binds to that artifact."
    )


class StandaloneBody(Sent):
    scopes: list[StandaloneScopeIn] = Field(default_factory=list, max_length=50)
    thresholds: Thresholds
    lifetimeDurationMins: int | None = Field(  # noqa: N815
        default=None,
        ge=1,
        le=10**6,
        description="How long it waits for a decision; null = until there is one.",
    )


class ConfigOut(Answer):
    id: str
    name: str = Field(description="MODEL@TIER.", examples=["qwen3-32b@w8a8"])
    updatedTimestamp: int  # noqa: N815
    updatedTimestampIso: str  # noqa: N815
    applications: list[str]


class CredentialsOut(Answer):
    name: str = Field(examples=["approval"])
    type: str = "tiergate"
    supportedTypes: list[str]  # noqa: N815


class StartedOut(Answer):
    canaryExecutionId: str  # noqa: N815


class CancelledOut(Answer):
    id: str
    status: str = Field(description="Nothing runs between calls, so there is nothing to cancel.")


class JudgeScoreOut(Answer):
    score: Score
    classification: Literal["Pass", "Marginal", "Fail"]
    classificationReason: str  # noqa: N815


class GroupScoreOut(Answer):
    name: str
    score: Finite
    classification: str
    classificationReason: str  # noqa: N815


class MetricJudgedOut(Answer):
    name: str
    tags: dict[str, str]
    id: str
    classification: Literal["Pass", "High", "Low", "Nodata", "NodataFailMetric", "Error"]
    classificationReason: str  # noqa: N815
    groups: list[str]
    experimentMetadata: dict[str, dict[str, Finite]]  # noqa: N815
    controlMetadata: dict[str, dict[str, Finite]]  # noqa: N815
    resultMetadata: dict[str, Finite]  # noqa: N815
    critical: bool
    muted: bool = False


class JudgeResultOut(Answer):
    judgeName: str  # noqa: N815
    results: list[MetricJudgedOut]
    groupScores: list[GroupScoreOut]  # noqa: N815
    score: JudgeScoreOut


class CanaryResultOut(Answer):
    application: str
    judgeResult: JudgeResultOut  # noqa: N815
    canaryExecutionRequest: dict[str, Any]  # noqa: N815
    canaryDuration: str = Field(description="ISO 8601; age of the evidence.", examples=["PT86400S"])  # noqa: N815


class CanaryOut(Answer):
    application: str
    pipelineId: str  # noqa: N815
    stageStatus: dict[str, str]  # noqa: N815
    complete: bool
    status: str = Field(examples=["succeeded"])
    result: CanaryResultOut
    canaryConfigId: str  # noqa: N815
    canaryExecutionRequest: dict[str, Any]  # noqa: N815
    buildTimeMillis: int  # noqa: N815
    buildTimeIso: str  # noqa: N815
    startTimeMillis: int  # noqa: N815
    startTimeIso: str  # noqa: N815
    endTimeMillis: int  # noqa: N815
    endTimeIso: str  # noqa: N815
    storageAccountName: str  # noqa: N815
    metricsAccountName: str  # noqa: N815
    configurationAccountName: str  # noqa: N815


class StandaloneStartedOut(Answer):
    canaryAnalysisExecutionId: str  # noqa: N815


class StandaloneRunOut(Answer):
    executionId: str = Field(description="Of the judgement, for GET .../canary/ID.")  # noqa: N815
    executionStatus: Literal["SUCCEEDED"]  # noqa: N815
    result: CanaryResultOut
    warnings: list[str]


class StandaloneResultOut(Answer):
    didPassThresholds: bool = Field(description="Only for approved.")  # noqa: N815
    hasWarnings: bool  # noqa: N815
    canaryScoreMessage: str  # noqa: N815
    canaryScores: list[Score]  # noqa: N815
    canaryExecutionResults: list[StandaloneRunOut]  # noqa: N815
    buildTimeIso: str  # noqa: N815
    startTimeIso: str  # noqa: N815
    endTimeIso: str  # noqa: N815


class StandaloneOut(Answer):
    application: str
    user: str
    pipelineId: str  # noqa: N815
    stageStatus: list[dict[str, str]]  # noqa: N815
    complete: bool = Field(description="Decided, or its lifetime is over.")
    executionStatus: Literal["RUNNING", "SUCCEEDED"]  # noqa: N815
    status: Literal["running", "succeeded"]
    canaryAnalysisExecutionResult: StandaloneResultOut | None = Field(description="Once complete.")  # noqa: N815
    canaryConfigId: str  # noqa: N815
    buildTimeIso: str  # noqa: N815
    startTimeIso: str  # noqa: N815
    endTimeIso: str | None = Field(description="Once complete.")  # noqa: N815
    storageAccountName: str  # noqa: N815
    metricsAccountName: str  # noqa: N815


def _value(sent: Any) -> Any:
    """Kayenta writes a missing value as the text NaN (its issue 799)."""
    if sent in ("NaN", "Infinity", "-Infinity") or (isinstance(sent, float) and not math.isfinite(sent)):
        return None
    return sent


Value = Annotated[Annotated[float, Field(ge=-LARGEST, le=LARGEST)] | None, BeforeValidator(_value)]
Name = Annotated[str, Field(max_length=500)]


class EffectIn(Sent):
    allowedIncrease: float = Field(default=1.0, ge=1, le=1e6)  # noqa: N815
    allowedDecrease: float = Field(default=1.0, ge=0, le=1)  # noqa: N815


class CanaryAnalysisIn(Sent):
    direction: Literal["increase", "decrease", "either"] = "either"
    critical: bool = False
    mustHaveData: bool = False  # noqa: N815
    effectSize: EffectIn = EffectIn()  # noqa: N815


class AnalysisIn(Sent):
    canary: CanaryAnalysisIn = CanaryAnalysisIn()


class MetricIn(Sent):
    name: Name
    groups: list[Name] = Field(default_factory=list, max_length=100)
    analysisConfigurations: AnalysisIn = AnalysisIn()  # noqa: N815


class JudgeSettingsIn(Sent):
    margin: float | None = Field(
        default=None, gt=0, lt=1, description="Of the net share of worse steps.", examples=[0.25]
    )


class JudgeIn(Sent):
    judgeConfigurations: JudgeSettingsIn = JudgeSettingsIn()  # noqa: N815


class ClassifierIn(Sent):
    groupWeights: dict[Name, Annotated[float, Field(ge=0, le=1e6)]] = Field(default_factory=dict)  # noqa: N815


class CanaryConfigIn(Sent):
    metrics: list[MetricIn] = Field(max_length=1000)
    judge: JudgeIn = JudgeIn()
    classifier: ClassifierIn = ClassifierIn()


class SeriesIn(Sent):
    control: list[Value]
    experiment: list[Value]


class MetricSetPairIn(Sent):
    name: Name
    id: Name
    tags: dict[str, str] = Field(default_factory=dict)
    values: SeriesIn


class RemoteJudgeBody(Sent):
    canaryConfig: CanaryConfigIn  # noqa: N815
    scoreThresholds: Thresholds  # noqa: N815
    metricSetPairList: list[MetricSetPairIn] = Field(max_length=1000)  # noqa: N815
