"""From our values to the JSON of `schemas`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache

from service.approval.measured_schemas import MeasuredOut, NoiseOut
from service.approval.production import is_as_strict, production_of, production_verdict
from service.approval.schemas import (
    ApprovalOut,
    CountersOut,
    EntryOut,
    LadderOut,
    LedgerOut,
    ModelOut,
    PairAccountOut,
    RouteOut,
    RungOut,
)
from service.approval.verdict_schemas import (
    AttributionOut,
    EvidenceOut,
    FindingOut,
    PairOut,
    PolicyOut,
    ProductionCriterionOut,
    ProductionOut,
    StratumOut,
    TallyOut,
    TenantOut,
    ThresholdsOut,
    VerdictOut,
)
from service.decision.decide import limits_of
from service.decision.energy import noise_of
from service.decision.epoch import epoch_id
from service.decision.evidence import Evidence
from service.decision.gates import in_force, is_stale
from service.decision.policy import Gate, Policy
from service.decision.tally import Tally
from service.decision.verdict import Finding
from service.fleet import Ladder, Route
from service.moments import moment
from service.store.decided.approvals import Approval
from service.store.decided.decisions import Entry
from service.store.scored.evidence import RecentPair
from service.store.traffic.account import LedgerAccount
from service.store.verdicts.rung import Rung
from service.store.verdicts.standing import Standing

PAIR_PLACE = ("capture_id", "evaluator", "version", "conversation", "stratum", "epoch", "counted")


@lru_cache(maxsize=16)
def policy_digest(policy: Policy) -> str:
    """sha256 over everything a policy says."""
    return epoch_id(asdict(policy))


def route_out(route: Route) -> RouteOut:
    return RouteOut(version=route.version, serving=route.serving, weights=dict(route.weights))


def model_out(ladder: Ladder, route: Route) -> ModelOut:
    return ModelOut(
        model=ladder.model,
        baseline=ladder.baseline.name,
        tiers=[tier.name for tier in ladder.tiers],
        serving=route.serving,
        route_version=route.version,
    )


def approval_out(approval: Approval, *, now: float) -> ApprovalOut:
    return ApprovalOut(
        by=approval.actor,
        at=moment(approval.at),
        expires_at=None if approval.expires_at is None else moment(approval.expires_at),
        expired=approval.expired(now),
        artifact=approval.artifact,
        override=approval.override,
        reason=approval.reason,
        decision=approval.verdict["decision"],
        epoch=approval.epoch,
        policy_digest=approval.policy_digest,
        evaluators=dict(approval.evaluators),
    )


def entry_out(entry: Entry) -> EntryOut:
    return EntryOut.model_validate({**asdict(entry), "at": moment(entry.at)})


def ledger_out(account: LedgerAccount) -> LedgerOut:
    return LedgerOut(
        model=account.model,
        balanced=account.balanced,
        problems=list(account.problems),
        counters=CountersOut.model_validate(account),
        traffic=dict(account.traffic),
        pairs=[PairAccountOut.model_validate(pair) for pair in account.pairs],
    )


def ladder_out(standing: Standing) -> LadderOut:
    return LadderOut(
        model=standing.ladder.model,
        baseline=standing.ladder.baseline.name,
        route=route_out(standing.route),
        rungs=[_rung_out(rung, now=standing.at) for rung in standing.rungs],
    )


def verdict_out(standing: Standing, rung: Rung, policy: Policy) -> VerdictOut:
    """The whole answer to `GET .../verdict`; `rung` is a candidate's."""
    verdict, evidence = rung.verdict, rung.evidence
    assert verdict is not None, "the baseline has no verdict"
    assert evidence is not None, "the baseline has no evidence"
    return VerdictOut(
        model=verdict.model,
        tier=verdict.tier,
        decision=verdict.decision,
        reasons=list(verdict.reasons),
        findings=[_finding_out(finding, evidence) for finding in verdict.findings],
        gates=dict(verdict.gates),
        epoch=verdict.epoch,
        attempt=verdict.attempt,
        alpha=verdict.alpha_accept,
        alpha_restored=evidence.restored,
        skipped=evidence.skipped,
        skipped_below=list(evidence.skipped_below),
        not_shown=verdict.not_shown,
        baseline_after_approval=verdict.baseline_after_approval,
        measured=_measured_out(policy, evidence, now=standing.at),
        measured_within_seconds=evidence.measured_within,
        thresholds=_thresholds_out(policy, evidence),
        age_seconds=evidence.age_seconds,
        policy=_policy_out(policy),
        production=_production_out(standing, rung, policy),
        evaluated_at=moment(standing.at),
    )


def evidence_out(
    rung: Rung,
    pairs: Sequence[RecentPair],
    *,
    strata: Sequence[StratumOut],
    tenants: Sequence[TenantOut],
) -> EvidenceOut:
    """Tallies, control and coverage of a candidate's rung, taken apart, and some of its pairs."""
    evidence = rung.evidence
    assert evidence is not None, "the baseline has no evidence against itself but the control"
    coverage, attribution = evidence.coverage, evidence.attribution
    return EvidenceOut.model_validate(
        {
            "model": evidence.model,
            "tier": evidence.tier,
            "epoch": evidence.epoch,
            "attempt": evidence.attempt,
            "tallies": _tallies_out(evidence.tallies),
            "control": None if evidence.control is None else _tallies_out(evidence.control),
            "coverage": {
                "traffic": dict(coverage.traffic) if coverage else {},
                "evidence": dict(coverage.evidence) if coverage else {},
            },
            "attribution": attribution and AttributionOut.model_validate(asdict(attribution)),
            "strata": strata,
            "tenants": tenants,
            "max_pairs": dict(evidence.max_pairs),
            "age_seconds": evidence.age_seconds,
            "pairs": [pair_out(pair) for pair in pairs],
        }
    )


def _finding_out(finding: Finding, evidence: Evidence) -> FindingOut:
    name = finding.criterion
    noise = noise_of(
        (evidence.control or {}).get(name, Tally()),
        evidence.tallies.get(name, Tally()),
        evidence.energy.get(name),
    )
    told = {**asdict(finding), "max_pairs": evidence.max_pairs.get(name)}
    return FindingOut.model_validate({**told, "noise": noise and NoiseOut.model_validate(noise)})


def _measured_out(policy: Policy, evidence: Evidence, *, now: float) -> dict[Gate, MeasuredOut]:
    found = {gate: in_force(policy, evidence, gate) for gate in (Gate.SLO, Gate.MONEY)}
    return {
        gate: MeasuredOut(
            shown=measured.shown,
            reason=measured.reason,
            counts=not is_stale(measured, evidence.measured_within),
            age_seconds=measured.age_seconds,
            ended_at=None if measured.age_seconds is None else moment(now - measured.age_seconds),
            run=measured.run,
            numbers=dict(measured.numbers),
        )
        for gate, measured in found.items()
        if measured is not None
    }


def _thresholds_out(policy: Policy, evidence: Evidence) -> ThresholdsOut:
    limits = limits_of(policy, evidence)
    return ThresholdsOut(
        accept=limits.accept if limits.accept < math.inf else None,
        harm=limits.harm,
        strata=limits.strata,
        warn=limits.warn,
        tiers_under_test=evidence.tiers_under_test,
        strata_under_test=evidence.strata_under_test,
    )


def pair_out(recent: RecentPair) -> PairOut:
    fields = {name: getattr(recent, name) for name in PAIR_PLACE}
    pair = asdict(recent.pair)
    del pair["details"]  # added up, not kept with a pair
    return PairOut(**fields, **pair, at=moment(recent.at))


def _rung_out(rung: Rung, *, now: float) -> RungOut:
    return RungOut(
        tier=rung.tier.name,
        rung=rung.position,
        state=rung.state.value,
        weight=rung.weight,
        decision=None if rung.verdict is None else rung.verdict.decision,
        summary=rung.sentence,
        approval=None if rung.approval is None else approval_out(rung.approval, now=now),
        declares=dict(rung.tier.declares),
        price_per_hour=rung.tier.price_per_hour,
        backends=len(rung.tier.backends),
    )


@lru_cache(maxsize=16)
def _policy_out(policy: Policy) -> PolicyOut:
    criteria = [{**asdict(criterion), "criterion": criterion.evaluator} for criterion in policy.criteria]
    return PolicyOut.model_validate({**asdict(policy), "digest": policy_digest(policy), "criteria": criteria})


def _production_out(standing: Standing, rung: Rung, policy: Policy) -> ProductionOut:
    verdict = production_verdict(policy, standing, rung.tier.name)
    asked = {criterion.evaluator: criterion for criterion in production_of(policy).criteria}
    return ProductionOut(
        in_force=is_as_strict(policy),
        decision=verdict.decision,
        criteria=[
            ProductionCriterionOut(
                criterion=finding.criterion,
                margin=finding.margin,
                min_pairs=asked[finding.criterion].min_pairs,
                decision=finding.decision,
                reason=finding.reason,
                more_pairs=finding.more_pairs,
            )
            for finding in verdict.findings
        ],
        gates=dict(verdict.gates),
    )


def _tallies_out(tallies: Mapping[str, Tally]) -> list[TallyOut]:
    return [
        TallyOut(
            evaluator=evaluator,
            n=tally.n,
            conversations=tally.conversations,
            harm=tally.harm,
            benefit=tally.benefit,
            both_failed=tally.both_failed,
            baseline_failures=tally.baseline_failures,
            candidate_failures=tally.candidate_failures,
            not_counted=tally.not_counted,
            unscored=dict(tally.unscored),
            due=tally.due,
        )
        for evaluator, tally in sorted(tallies.items())
    ]
