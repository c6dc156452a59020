"""What the page of a tier shows, read once: the same standing as the API's, looks, strata, log, load runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.approval.desk import Desk
from service.approval.names import find_ladder, find_tier
from service.dashboard.tier.load import LoadRuns, Runs
from service.decision.evidence import Evidence
from service.decision.policy import Policy
from service.decision.verdict import Verdict
from service.report.document import VerdictFigures
from service.report.gathering.judged import judged
from service.store.decided.decisions import Entry, latest
from service.store.scored.breakdown import StratumStanding, read_strata
from service.store.scored.units import Arm
from service.store.verdicts.looks import LookTaken, read_looks
from service.store.verdicts.rung import Rung
from service.store.verdicts.standing import Standing

MOST_ENTRIES = 20
"""Of the decision log, the latest that are about the tier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierReading:
    """A candidate and all that is known of it."""

    policy: Policy
    standing: Standing
    rung: Rung
    verdict: Verdict
    evidence: Evidence
    figures: VerdictFigures
    """The verdict with what a single look would say, as a report has it."""
    looks: Sequence[LookTaken]
    strata: Sequence[StratumStanding]
    control_strata: Sequence[StratumStanding]
    """Of the baseline against itself."""
    entries: Sequence[Entry]
    """Of the decision log, the oldest first."""
    runs: LoadRuns
    now: float

    @property
    def model(self) -> str:
        return self.standing.ladder.model

    @property
    def tier(self) -> str:
        return self.rung.tier.name

    @property
    def baseline(self) -> str:
        return self.standing.ladder.baseline.name


def read_tier(desk: Desk, runs: Runs, model: str, tier: str, *, now: float) -> TierReading | Standing:
    """A candidate; of the baseline, which has no verdict, where its ladder stands. 404 and 403 as the API."""
    ladder = find_ladder(desk.config.ladders, model)
    found = find_tier(ladder, tier)
    standing = desk.standing(model)
    rung, policy = standing.rung(tier), desk.config.policy
    if found is ladder.baseline:
        return standing
    verdict, evidence, figures = rung.verdict, rung.evidence, judged(rung, policy)
    assert verdict is not None, "a candidate has a verdict"
    assert evidence is not None, "a candidate has evidence"
    assert figures is not None, "a candidate's verdict has figures"
    present, baseline = desk.question.present, ladder.baseline.name
    control = desk.config.epoch_of(model, baseline)
    return TierReading(
        policy=policy,
        standing=standing,
        rung=rung,
        verdict=verdict,
        evidence=evidence,
        figures=figures,
        looks=read_looks(desk.db, model, tier, evidence.epoch),
        strata=read_strata(desk.db, model, tier, evidence.epoch, present=present),
        control_strata=read_strata(desk.db, model, baseline, control, Arm.CONTROL, present),
        entries=latest(desk.db, model=model, tier=tier, limit=MOST_ENTRIES),
        runs=runs.of(model, baseline, tier, now=now),
        now=now,
    )
