"""The Kayenta facade: what Argo Rollouts' `kayenta` provider and orca's canary stage call.

Every candidate tier is a canary config, MODEL@TIER. An execution is complete at once, judged from stored
evidence at every GET; its id says all that was asked, so that no replica has to remember it. The score is put
where the caller's thresholds read the same three states.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from hashlib import sha256
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import ValidationError

from service.approval.answers import moment
from service.approval.desk import Desk
from service.approval.dialects.asking import judgement_of
from service.approval.dialects.judgement import Basis, Judgement, State
from service.approval.errors import Problem, echo
from service.approval.kayenta_schemas import (
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

ROOM = 2
"""Between the thresholds there must be a whole number for what is neither passed nor failed."""
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
        """One for each candidate tier, named MODEL@TIER."""
        return [
            ConfigOut(
                id=config_id(model, tier),
                name=f"{model}@{tier}",
                updatedTimestamp=0,
                updatedTimestampIso=moment(0),
                applications=[application] if application else [],
            )
            for model, tier in _candidates(desk)
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
        least, marginal = body.thresholds.pass_, body.thresholds.marginal
        if not has_room(marginal=marginal, least_to_pass=least):
            raise Problem(
                422,
                "invalid_request",
                f"thresholds: between marginal {marginal:g} and pass {least:g} is no room for inconclusive",
                hint="use marginal 75 and pass 90",
            )
        execution = Execution(
            config=config,
            least_to_pass=least,
            marginal=marginal,
            artifact=_artifact(body),
            basis=metricsAccountName or Basis.APPROVAL,
            application=application,
            at=desk.now(),
        )
        _judged(desk, execution)
        return StartedOut(canaryExecutionId=_spell(execution))

    @router.get("/canary/{execution}", summary="Kayenta: an execution")
    def kayenta_execution(execution: Annotated[str, Path(max_length=2000)]) -> CanaryOut:
        """Complete at once, judged from the evidence of this moment."""
        asked = _parse(execution)
        return _canary_out(asked, _judged(desk, asked), execution, now=desk.now())

    @router.put("/pipelines/{execution}/cancel", summary="Kayenta: cancel an execution")
    def kayenta_cancel(execution: Annotated[str, Path(max_length=2000)]) -> CancelledOut:
        """For orca, which calls it when a stage is cancelled."""
        _parse(execution)
        return CancelledOut(id=execution, status="canceled")

    return router


def config_id(model: str, tier: str) -> str:
    """Stable, and without slashes."""
    return sha256(f"{model}\0{tier}".encode()).hexdigest()[:32]


def has_room(*, marginal: float, least_to_pass: float) -> bool:
    """Whether a score can fail, another one pass, and a whole one between do neither."""
    return marginal >= 1 and least_to_pass - marginal >= ROOM


def score_between(found: Judgement, *, marginal: float, least_to_pass: float) -> int:
    """A whole score that these thresholds read as the judgement's state; `<= marginal` fails in orca."""
    if found.state is State.APPROVED:
        return 100
    if found.state is State.REJECTED:
        return 0
    return int(min(max(found.score, marginal + 1), least_to_pass - 1))


def _candidates(desk: Desk) -> Iterator[tuple[str, str]]:
    for model, ladder in desk.config.ladders.items():
        for tier in ladder.candidates:
            yield model, tier.name


def _artifact(body: ExecutionBody) -> str | None:
    """The one digest among the scopes; 422 for several."""
    scopes = {pair.experimentScope.scope for pair in body.scopes.values()}
    named = sorted(scope for scope in scopes if scope and scope.startswith("sha256:"))
    if len(named) > 1:
        raise Problem(422, "invalid_request", f"scopes: {len(named)} artifacts at once, there can be one")
    return named[0] if named else None


def _judged(desk: Desk, execution: Execution) -> Judgement:
    for model, tier in _candidates(desk):
        if config_id(model, tier) == execution.config:
            return judgement_of(desk, model, tier, artifact=execution.artifact, basis=execution.basis)
    raise Problem(
        404,
        "unknown_tier",
        f"no canary config has the id {echo(execution.config)}",
        hint="GET canaryConfig lists them; their names are MODEL@TIER",
    )


def _spell(execution: Execution) -> str:
    return base64.urlsafe_b64encode(execution.model_dump_json().encode()).decode().rstrip("=")


def _parse(spelled: str) -> Execution:
    try:
        text = base64.b64decode(spelled + "=" * (-len(spelled) % 4), altchars=b"-_", validate=True)
        execution = Execution.model_validate_json(text)
    except (binascii.Error, ValueError, ValidationError):
        execution = None
    if execution is None or not has_room(marginal=execution.marginal, least_to_pass=execution.least_to_pass):
        raise Problem(404, "unknown_execution", f"no execution has the id {echo(spelled)}")
    return execution


def _canary_out(execution: Execution, found: Judgement, spelled: str, *, now: float) -> CanaryOut:
    thresholds = {"pass": execution.least_to_pass, "marginal": execution.marginal}
    request = {"scopes": {}, "thresholds": thresholds}
    begun, ended = moment(execution.at), moment(now)
    return CanaryOut(
        application=execution.application,
        pipelineId=spelled,
        stageStatus={"judge": "succeeded"},
        complete=True,
        status="succeeded",
        result=CanaryResultOut(
            application=execution.application,
            judgeResult=_judge_result(execution, found),
            canaryExecutionRequest=request,
            canaryDuration=f"PT{int(found.evidence_age or 0)}S",
        ),
        canaryConfigId=execution.config,
        canaryExecutionRequest=request,
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


def _judge_result(execution: Execution, found: Judgement) -> JudgeResultOut:
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
