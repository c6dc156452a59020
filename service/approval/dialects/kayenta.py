"""The Kayenta facade: what Argo Rollouts' `kayenta` provider and orca's canary stage call.

Every candidate tier is a canary config, MODEL@TIER. An execution is complete at once, judged from stored
evidence at every GET; its id says all that was asked, so that no replica has to remember it. The score is put
where the caller's thresholds read the same three states.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from service.approval.desk import Desk
from service.approval.dialects.executions import (
    artifact_of,
    check_room,
    config_id,
    judged,
    known_candidates,
    parse,
    spell,
)
from service.approval.dialects.judgement import Basis, Judgement, State
from service.approval.dialects.kayenta_schemas import (
    CanaryOut,
    CanaryResultOut,
    CancelledOut,
    ConfigOut,
    CredentialsOut,
    Execution,
    ExecutionBody,
    GroupScoreOut,
    JudgeResultOut,
    JudgeScoreOut,
    MetricJudgedOut,
    StartedOut,
)
from service.moments import moment

CLASSES = {State.APPROVED: "Pass", State.REJECTED: "Fail", State.INCONCLUSIVE: "Marginal"}
METRIC_CLASSES = {State.APPROVED: "Pass", State.REJECTED: "High", State.INCONCLUSIVE: "Nodata"}
KINDS = ["CONFIGURATION_STORE", "METRICS_STORE", "OBJECT_STORE"]
Named = Annotated[str, Query(max_length=200)]


def kayenta_routes(desk: Desk) -> APIRouter:
    """Kayenta's paths, as far as canary analysis goes."""
    router = APIRouter(prefix="/kayenta")

    @router.get("/canaryConfig", summary="Kayenta: canary configs")
    def kayenta_configs(
        application: Named = "",
        configurationAccountName: Named = "",  # noqa: N803
    ) -> list[ConfigOut]:
        """One for each candidate tier that the token is for, named MODEL@TIER."""
        return [
            ConfigOut(
                id=config_id(model, tier),
                name=f"{model}@{tier}",
                updatedTimestamp=0,
                updatedTimestampIso=moment(0),
                applications=[application] if application else [],
            )
            for model, tier in known_candidates(desk)
        ]

    @router.get("/credentials", summary="Kayenta: accounts")
    def kayenta_credentials() -> list[CredentialsOut]:
        """As the metrics account: what a gate asks for, an approval or the evidence alone."""
        return [CredentialsOut(name=basis.value, supportedTypes=KINDS) for basis in Basis]

    @router.post("/canary/{config}", summary="Kayenta: begin an execution")
    def kayenta_begin(
        config: Annotated[str, Path(max_length=64)],
        body: ExecutionBody,
        application: Named = "",
        metricsAccountName: Annotated[Basis | None, Query()] = None,  # noqa: N803
    ) -> StartedOut:
        """`experimentScope.scope` may be the sha256 of what is rolled out."""
        check_room(body.thresholds)
        execution = Execution(
            config=config,
            least_to_pass=body.thresholds.pass_,
            marginal=body.thresholds.marginal,
            artifact=artifact_of(pair.experimentScope.scope for pair in body.scopes.values()),
            basis=metricsAccountName or Basis.APPROVAL,
            application=application,
            at=desk.now(),
        )
        judged(desk, execution)
        return StartedOut(canaryExecutionId=spell(execution))

    @router.get("/canary/{execution}", summary="Kayenta: an execution")
    def kayenta_execution(execution: Annotated[str, Path(max_length=2000)]) -> CanaryOut:
        """Complete at once, judged from the evidence of this moment."""
        asked = parse(execution)
        return _canary_out(asked, judged(desk, asked), execution, now=desk.now())

    @router.put("/pipelines/{execution}/cancel", summary="Kayenta: cancel an execution")
    def kayenta_cancel(execution: Annotated[str, Path(max_length=2000)]) -> CancelledOut:
        """For orca, which calls it when a stage is cancelled."""
        parse(execution)
        return CancelledOut(id=execution, status="canceled")

    return router


def score_between(found: Judgement, *, marginal: float, least_to_pass: float) -> int:
    """A whole score that these thresholds read as the judgement's state; `<= marginal` fails in orca."""
    if found.state is State.APPROVED:
        return 100
    if found.state is State.REJECTED:
        return 0
    return int(min(max(found.score, marginal + 1), least_to_pass - 1))


def _canary_out(execution: Execution, found: Judgement, spelled: str, *, now: float) -> CanaryOut:
    begun, ended = moment(execution.at), moment(now)
    return CanaryOut(
        application=execution.application,
        pipelineId=spelled,
        stageStatus={"judge": "succeeded"},
        complete=True,
        status="succeeded",
        result=canary_result(execution, found),
        canaryConfigId=execution.config,
        canaryExecutionRequest=_request(execution),
        buildTimeMillis=int(execution.at * 1000),
        buildTimeIso=begun,
        startTimeMillis=int(execution.at * 1000),
        startTimeIso=begun,
        endTimeMillis=int(now * 1000),
        endTimeIso=ended,
        storageAccountName=execution.basis.value,
        metricsAccountName=execution.basis.value,
        configurationAccountName=execution.basis.value,
    )


def canary_result(execution: Execution, found: Judgement) -> CanaryResultOut:
    """What orca reads of an execution."""
    return CanaryResultOut(
        application=execution.application,
        judgeResult=judge_result(execution, found),
        canaryExecutionRequest=_request(execution),
        canaryDuration=f"PT{int(found.evidence_age or 0)}S",
    )


def _request(execution: Execution) -> dict[str, Any]:
    return {"scopes": {}, "thresholds": {"pass": execution.least_to_pass, "marginal": execution.marginal}}


def judge_result(execution: Execution, found: Judgement) -> JudgeResultOut:
    """What Kayenta's judge would have said."""
    score = score_between(found, marginal=execution.marginal, least_to_pass=execution.least_to_pass)
    stats = {"stats": {"count": found.n_pairs}}
    metric = MetricJudgedOut.model_validate(
        {
            "name": f"{found.model}@{found.tier}",
            "tags": {},
            "id": found.evaluation_id,
            "classification": METRIC_CLASSES[found.state],
            "classificationReason": found.reason,
            "groups": ["tiergate"],
            "experimentMetadata": stats,
            "controlMetadata": stats,
            "resultMetadata": {"ratio": 1.0},
            "critical": True,
        }
    )
    told = {"score": score, "classification": CLASSES[found.state], "classificationReason": found.reason}
    return JudgeResultOut(
        judgeName="tiergate",
        results=[metric],
        groupScores=[GroupScoreOut.model_validate({"name": "tiergate", **told})],
        score=JudgeScoreOut.model_validate(told),
    )
