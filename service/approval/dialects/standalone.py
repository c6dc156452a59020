"""Kayenta's standalone analysis, for clients that know yes, no and "not complete" (Referee, build plugins).

There is no inconclusive result here: an analysis stays incomplete until it is decided or its lifetime is
over, and then has not passed.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from service.approval.desk import Desk
from service.approval.dialects.executions import artifact_of, check_room, judged, parse, spell
from service.approval.dialects.judgement import Basis, Judgement, State
from service.approval.dialects.kayenta import canary_result
from service.approval.dialects.kayenta_schemas import (
    Execution,
    StandaloneBody,
    StandaloneOut,
    StandaloneResultOut,
    StandaloneRunOut,
    StandaloneStartedOut,
)
from service.moments import moment

Named = Annotated[str, Query(max_length=200)]


def standalone_routes(desk: Desk) -> APIRouter:
    """Begin, and ask."""
    router = APIRouter(prefix="/kayenta/standalone_canary_analysis")

    @router.post("/{config}", summary="Kayenta: begin a standalone analysis")
    def kayenta_analyse(
        config: Annotated[str, Path(max_length=64)],
        body: StandaloneBody,
        application: Named = "",
        metricsAccountName: Annotated[Basis | None, Query()] = None,  # noqa: N803
    ) -> StandaloneStartedOut:
        """Of a canary config, by its id."""
        check_room(body.thresholds)
        now, minutes = desk.now(), body.lifetimeDurationMins
        execution = Execution(
            config=config,
            least_to_pass=body.thresholds.pass_,
            marginal=body.thresholds.marginal,
            artifact=artifact_of(scope.experimentScope for scope in body.scopes),
            basis=metricsAccountName or Basis.APPROVAL,
            application=application,
            at=now,
            until=None if minutes is None else now + 60 * minutes,
        )
        judged(desk, execution)
        return StandaloneStartedOut(canaryAnalysisExecutionId=spell(execution))

    @router.get("/{execution}", summary="Kayenta: a standalone analysis")
    def kayenta_analysis(execution: Annotated[str, Path(max_length=2000)]) -> StandaloneOut:
        """`complete` once it is decided, or its lifetime is over."""
        asked = parse(execution)
        return _standalone_out(asked, judged(desk, asked), execution, now=desk.now())

    return router


def _standalone_out(execution: Execution, found: Judgement, spelled: str, *, now: float) -> StandaloneOut:
    complete = found.settled or (execution.until is not None and now >= execution.until)
    begun = moment(execution.at)
    return StandaloneOut(
        application=execution.application,
        user="anonymous",
        pipelineId=spelled,
        stageStatus=[],
        complete=complete,
        executionStatus="SUCCEEDED" if complete else "RUNNING",
        status="succeeded" if complete else "running",
        canaryAnalysisExecutionResult=_result(execution, found, spelled, now=now) if complete else None,
        canaryConfigId=execution.config,
        buildTimeIso=begun,
        startTimeIso=begun,
        endTimeIso=moment(now) if complete else None,
        storageAccountName=execution.basis.value,
        metricsAccountName=execution.basis.value,
    )


def _result(execution: Execution, found: Judgement, spelled: str, *, now: float) -> StandaloneResultOut:
    told = canary_result(execution, found)
    begun = moment(execution.at)
    return StandaloneResultOut(
        didPassThresholds=found.state is State.APPROVED,
        hasWarnings=found.state is State.INCONCLUSIVE,
        canaryScoreMessage=found.line,
        canaryScores=[told.judgeResult.score.score],
        canaryExecutionResults=[
            StandaloneRunOut(
                executionId=spelled,
                executionStatus="SUCCEEDED",
                result=told,
                warnings=[found.line] if found.state is State.INCONCLUSIVE else [],
            )
        ],
        buildTimeIso=begun,
        startTimeIso=begun,
        endTimeIso=moment(now),
    )
