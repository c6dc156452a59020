"""Kayenta's `RemoteJudge-v1.0`: our statistics on the metric sets that Kayenta collected (`metric_sets`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from fastapi import APIRouter

from service.approval.desk import Desk
from service.approval.dialects.judgement import one_sentence
from service.approval.dialects.kayenta_schemas import (
    GroupScoreOut,
    JudgeResultOut,
    JudgeScoreOut,
    MetricIn,
    MetricJudgedOut,
    MetricSetPairIn,
    RemoteJudgeBody,
)
from service.approval.errors import Problem, echo
from service.decision.metric_sets import MARGIN, MetricSet, SetFinding, Worse, compare_series
from service.decision.verdict import Decision

JUDGE = "RemoteJudge-v1.0"
UNGROUPED = "ungrouped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One metric set, what Kayenta's configuration says of it, and what it amounts to."""

    pair: MetricSetPairIn
    asked: MetricIn
    finding: SetFinding

    @property
    def groups(self) -> Sequence[str]:
        return self.asked.groups or (UNGROUPED,)

    @property
    def critical(self) -> bool:
        return self.asked.analysisConfigurations.canary.critical

    @property
    def lacking(self) -> bool:
        """Whether it has no step, and must have some."""
        return not self.finding.steps and self.asked.analysisConfigurations.canary.mustHaveData

    @property
    def failed(self) -> bool:
        return self.lacking or self.finding.decision is Decision.REJECT

    @property
    def passed(self) -> bool:
        return self.finding.decision is Decision.ACCEPT


def remote_judge_routes(desk: Desk) -> APIRouter:
    """What Kayenta posts to its remote judge."""
    router = APIRouter(prefix="/kayenta")

    @router.post("/judge", summary="Kayenta: RemoteJudge")
    def kayenta_judge(body: RemoteJudgeBody) -> JudgeResultOut:
        """Every metric passes, fails, or is undecided, which neither passes nor fails an analysis."""
        policy = desk.config.policy
        margin = body.canaryConfig.judge.judgeConfigurations.margin or MARGIN
        configured = {metric.name: metric for metric in body.canaryConfig.metrics}
        judged = [
            Judged(
                pair=pair,
                asked=_configured(configured, pair.name),
                finding=compare_series(
                    _series(pair, configured[pair.name]),
                    margin=margin,
                    alpha_accept=policy.alpha_accept,
                    alpha_harm=policy.alpha_harm / len(body.metricSetPairList),
                ),
            )
            for pair in body.metricSetPairList
        ]
        weights = body.canaryConfig.classifier.groupWeights
        thresholds = body.scoreThresholds
        return JudgeResultOut(
            judgeName=JUDGE,
            results=[_metric_out(each) for each in judged],
            groupScores=_group_scores(judged),
            score=score_out(judged, weights, least_to_pass=thresholds.pass_, marginal=thresholds.marginal),
        )

    return router


def score_out(
    judged: Sequence[Judged], weights: dict[str, float], *, least_to_pass: float, marginal: float
) -> JudgeScoreOut:
    """Kayenta's weighted share of metrics that pass, with its limits over what is undecided.

    A critical metric that fails makes it 0. It passes or fails only if it would, however the undecided ones
    turn out; between, it waits in the marginal band.
    """
    failed = [each.pair.name for each in judged if each.failed]
    critical = [each.pair.name for each in judged if each.failed and each.critical]
    undecided = [each.pair.name for each in judged if not each.failed and not each.passed]
    if critical:
        return _score(0, "Fail", f"critical: {', '.join(critical)}")
    least = _weighted(judged, weights, undecided_passes=False)
    most = _weighted(judged, weights, undecided_passes=True)
    told = (
        f"{len(judged)} metrics, worse: {', '.join(failed) or 'none'}; "
        f"undecided: {', '.join(undecided) or 'none'}"
    )
    if judged and least >= least_to_pass:
        return _score(math.floor(least), "Pass", told)
    if judged and most <= marginal:
        return _score(math.floor(most), "Fail", told)
    waiting = min(max((least + most) / 2, marginal + 1), max(least_to_pass - 1, 0))
    return _score(math.floor(waiting), "Marginal", told)


def _score(score: int, classification: str, reason: str) -> JudgeScoreOut:
    told = {"score": score, "classification": classification, "classificationReason": one_sentence(reason)}
    return JudgeScoreOut.model_validate(told)


def _weighted(judged: Sequence[Judged], weights: dict[str, float], *, undecided_passes: bool) -> float:
    """0 to 100. Groups without a weight share what the others leave of 100."""
    shares = _shares(judged, undecided_passes=undecided_passes)
    known = {group: weights[group] for group in shares if group in weights}
    others = len(shares) - len(known)
    rest = max(0.0, 100.0 - math.fsum(known.values())) / others if others else 0.0
    total = math.fsum(known.get(group, rest) for group in shares)
    if not total:
        return 0.0
    return 100 * math.fsum(known.get(group, rest) * share for group, share in shares.items()) / total


def _shares(judged: Sequence[Judged], *, undecided_passes: bool) -> dict[str, float]:
    """What passes of each group."""
    passes: dict[str, list[bool]] = {}
    for each in judged:
        for group in each.groups:
            passes.setdefault(group, []).append(each.passed or (undecided_passes and not each.failed))
    return {group: sum(found) / len(found) for group, found in passes.items()}


def _group_scores(judged: Sequence[Judged]) -> list[GroupScoreOut]:
    return [
        GroupScoreOut(name=group, score=100 * share, classification="", classificationReason="")
        for group, share in _shares(judged, undecided_passes=False).items()
    ]


def _configured(configured: dict[str, MetricIn], name: str) -> MetricIn:
    if name not in configured:
        raise Problem(422, "invalid_request", f"metricSetPairList: canaryConfig has no metric {echo(name)}")
    return configured[name]


def _series(pair: MetricSetPairIn, asked: MetricIn) -> MetricSet:
    told = asked.analysisConfigurations.canary
    if len(pair.values.control) != len(pair.values.experiment):
        raise Problem(
            422,
            "invalid_request",
            f"metricSetPairList: {echo(pair.name)} has {len(pair.values.control)} steps of the control and "
            f"{len(pair.values.experiment)} of the experiment",
            hint="give both scopes the same start, end and step",
        )
    return MetricSet(
        control=pair.values.control,
        experiment=pair.values.experiment,
        worse=Worse(told.direction),
        rise=told.effectSize.allowedIncrease - 1,
        fall=1 - told.effectSize.allowedDecrease,
    )


def _metric_out(judged: Judged) -> MetricJudgedOut:
    finding, values = judged.finding, judged.pair.values
    if judged.lacking:
        classification = "NodataFailMetric"
    elif finding.decision is Decision.REJECT:
        classification = "High" if finding.upwards else "Low"
    else:
        classification = "Pass" if judged.passed else "Nodata"
    control, experiment = _stats(values.control), _stats(values.experiment)
    ratio = experiment["mean"] / control["mean"] if control["mean"] else 1.0
    return MetricJudgedOut.model_validate(
        {
            "name": judged.pair.name,
            "tags": judged.pair.tags,
            "id": judged.pair.id,
            "classification": classification,
            "classificationReason": one_sentence(finding.reason),
            "groups": list(judged.groups),
            "experimentMetadata": {"stats": experiment},
            "controlMetadata": {"stats": control},
            "resultMetadata": {"ratio": ratio if math.isfinite(ratio) else 1.0},
            "critical": judged.critical,
        }
    )


def _stats(values: Sequence[float | None]) -> dict[str, float]:
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if not known.size:
        return {"count": 0, "mean": 0.0, "min": 0.0, "max": 0.0, "std": 0.0}
    return {
        "count": known.size,
        "mean": float(known.mean()),
        "min": float(known.min()),
        "max": float(known.max()),
        "std": float(known.std()),
    }
