"""What gates hear of a job: from blocks whose figures are arithmetic to measurements in a real database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from service.decision.evidence import Evidence, Shown
from service.decision.policy import Criterion, Gate, Policy
from service.decision.tally import Triple
from service.load.figures import BlockFigures, Columns
from service.load.plan import Part
from service.store.load.jobs import Cause, Job, begin_job
from service.store.load.manifest import JobPlan, Manifest
from service.store.sql.database import Database
from service.store.verdicts.measurements import Measurement, latest_measurement
from tests.workers.load_tiers import ModelTier, manifest_of, tiers
from tests.workers.load_walk import break_answers
from tests.workers.test_load_plan import PLAN, whole
from workers.load_findings import (
    Court,
    concurrency_findings,
    cost_findings,
    no_slo_findings,
    paired,
    slo_findings,
    sweep_findings,
)
from workers.load_plan import Opening
from workers.load_reading import of_part, rounds_of

NOW = 1_800_000_000.0
BUSY = replace(PLAN, window_seconds=4000.0, rate=4.0)
"""2,000 requests to a block, so that a gate has its power in eight."""


def court(db: Database, *, epoch: str = "epoch of {}", unsettled: str = "") -> Court:
    return Court(
        db=db,
        policy=Policy(criteria=(Criterion(evaluator="structured_output"),)),
        evidence_of=lambda model, tier: Evidence(model=model, tier=tier, epoch=epoch.format(tier)),
        unsettled_of=lambda model, tier: unsettled if tier != "bf16" else "",
        operations=0.0,
    )


def job_of(db: Database, manifest: Manifest) -> Job:
    return begin_job(db, manifest=manifest, cause=Cause.SCHEDULE, actor="schedule", now=NOW)


def blocks_of(
    known: Mapping[str, ModelTier], plan: JobPlan = BUSY
) -> tuple[Manifest, Sequence[BlockFigures]]:
    manifest, blocks, _ = whole(known, plan, Opening(slo_block_seconds=plan.block_seconds))
    return manifest, blocks


def slo(db: Database, known: Mapping[str, ModelTier], **more: Any) -> tuple[Job, dict[str, Any]]:
    manifest, blocks = blocks_of(known, replace(BUSY, parts=("slo",)))
    job = job_of(db, manifest)
    return job, slo_findings(court(db, **more), job, blocks, at=NOW, unequal="")


def kept(db: Database, gate: Gate, tier: str = "w8a8") -> Measurement | None:
    return latest_measurement(db, "m", tier, gate, f"epoch of {tier}", since=0.0)


def test_an_equal_tier_passes_the_slo_gate_and_the_baseline_has_a_measurement_too(db: Database) -> None:
    _, found = slo(db, tiers(bf16=ModelTier(misses=0.002), w8a8=ModelTier(misses=0.002)))
    passed = kept(db, Gate.SLO)
    assert passed is not None
    assert (passed.shown, passed.run, passed.at) == (Shown.PASSED, 1, NOW)
    baseline = kept(db, Gate.SLO, "bf16")
    assert baseline is not None
    assert baseline.shown is Shown.PASSED
    assert [gate["tier"] for gate in found["gates"]] == ["bf16", "w8a8"]
    assert found["slo"]["rounds"] == 8
    assert found["slo"]["correlation"] < 0.01
    assert found["slo"]["arms"][0]["offered"] == 16_000


@pytest.mark.parametrize("slow", [ModelTier(misses=0.06), ModelTier(capacity=3.0)])
def test_a_slower_tier_fails_it_also_where_it_cannot_keep_up_at_all(slow: ModelTier, db: Database) -> None:
    slo(db, tiers(bf16=ModelTier(misses=0.002), w8a8=slow))
    failed = kept(db, Gate.SLO)
    assert failed is not None
    assert failed.shown is Shown.FAILED
    assert "above 0.01" in failed.reason


def test_the_second_run_of_an_epoch_is_held_to_less_and_the_same_run_asked_again_is_the_same(
    db: Database,
) -> None:
    manifest, blocks = blocks_of(tiers(bf16=ModelTier(), w8a8=ModelTier()), replace(BUSY, parts=("slo",)))
    job = job_of(db, manifest)
    alphas = []
    for at in (NOW, NOW, NOW + 7 * 86_400):
        found = slo_findings(court(db), job, blocks, at=at, unequal="")
        alphas.append((found["gates"][1]["run"], found["gates"][1]["numbers"]["alpha"]))
    assert alphas[0] == alphas[1] == (1, pytest.approx(alphas[0][1]))
    assert alphas[2][0] == 2
    assert alphas[2][1] == pytest.approx(alphas[0][1] / 4)


def test_what_the_epoch_did_not_last_for_counts_nowhere(db: Database) -> None:
    known = tiers(bf16=ModelTier(), w8a8=ModelTier())
    _, found = slo(db, known, epoch="another epoch of {}")
    assert "its epoch changed during the job" in found["gates"][1]["reason"]
    assert kept(db, Gate.SLO) is None
    manifest, blocks = blocks_of(known, replace(BUSY, parts=("slo",)))
    other = job_of(db, Manifest.of({**manifest.document, "model": "n"}))
    found = slo_findings(court(db, unsettled="replicas disagree"), other, blocks, at=NOW, unequal="")
    assert "unsettled, so that it counts nowhere: replicas disagree" in found["gates"][1]["reason"]
    assert (found["gates"][1]["shown"], found["gates"][1]["run"]) == ("undecided", None)


def test_a_load_that_was_not_equal_decides_nothing(db: Database) -> None:
    manifest, blocks = blocks_of(tiers(bf16=ModelTier(), w8a8=ModelTier()), replace(BUSY, parts=("slo",)))
    found = slo_findings(
        court(db), job_of(db, manifest), blocks, at=NOW, unequal="clients had 900 answers beside it"
    )
    assert {gate["shown"] for gate in found["gates"]} == {"undecided"}
    assert kept(db, Gate.SLO) is None


def test_a_run_not_worth_its_load_says_so_in_place_of_a_finding(db: Database) -> None:
    job = job_of(db, manifest_of(("bf16", "w8a8"), PLAN))
    no_slo_findings(court(db), job, "slo_power: affordable requests (9) < 1,500", at=NOW)
    found = kept(db, Gate.SLO)
    assert found is not None
    assert (found.shown, found.run) == (Shown.UNDECIDED, None)
    assert found.reason.startswith("slo_power: ")


def test_pairs_are_of_the_same_request_at_the_same_time_and_a_round_is_a_triple() -> None:
    plan = of_part(blocks_of(tiers(bf16=ModelTier(), w8a8=ModelTier()))[1], Part.SLO)[0].plan

    def block(scheduled: Sequence[float], met: Sequence[bool]) -> BlockFigures:
        columns = Columns(scheduled=tuple(scheduled), request=tuple(range(len(scheduled))), met=tuple(met))
        return BlockFigures(plan=plan, offered=len(met), passed=sum(met), columns=columns)

    one = {
        "bf16": block([1.0, 2.0, 3.0, 4.0], [True, True, False, False]),
        "w8a8": block([1.0, 2.0000001, 3.0, 4.0], [True, False, True, False]),
    }
    other = {"bf16": block([1.0, 2.0], [True, True]), "w8a8": block([1.0], [True])}
    tally = paired([one, other], "bf16", "w8a8")
    assert dict(tally.units) == {Triple(4, 1, 1): 1, Triple(1, 0, 0): 1}
    assert tally.both_failed == 1


def failures(db: Database, *, broken: int) -> None:
    break_answers(db, epoch="epoch of w8a8", broken=broken, begun=NOW - 1000)


def cost(db: Database, known: Mapping[str, ModelTier], **changes: Any) -> dict[str, Any]:
    manifest, blocks = blocks_of(known, PLAN)
    if changes:
        told = [{**each, **changes.get(each["tier"], {})} for each in manifest.document["tiers"]]
        manifest = Manifest.of({**manifest.document, "tiers": told})
    return cost_findings(court(db), job_of(db, manifest), blocks, at=NOW, unequal="")


def test_a_tier_twice_as_fast_at_the_same_price_costs_about_half(db: Database) -> None:
    failures(db, broken=0)
    found = cost(db, tiers(bf16=ModelTier(capacity=10.0), w8a8=ModelTier(capacity=20.0)))
    numbers = found["gates"][0]["numbers"]
    ratio = numbers["candidate per 1M tokens"] / numbers["baseline per 1M tokens"]
    assert ratio == pytest.approx(0.5, abs=0.06)
    passed = kept(db, Gate.MONEY)
    assert passed is not None
    assert passed.shown is Shown.PASSED
    assert [arm["tier"] for arm in found["cost"]] == ["bf16", "w8a8"]
    assert len(found["cost"][0]["goodputs"]) == 8


@pytest.mark.parametrize("told", [4.2 / 7, 4.2 * 7])
def test_tokens_that_the_text_does_not_bear_out_leave_slo_and_money_undecided(
    told: float, db: Database
) -> None:
    failures(db, broken=0)
    known = tiers(
        bf16=ModelTier(capacity=10.0, bytes_per_token=4.2),
        w8a8=ModelTier(capacity=20.0, bytes_per_token=told),
    )
    cost(db, known)
    manifest, blocks = blocks_of(known, replace(BUSY, parts=("slo",)))
    other = job_of(db, Manifest.of({**manifest.document, "model": "n"}))
    found = slo_findings(court(db), other, blocks, at=NOW, unequal="")
    money = kept(db, Gate.MONEY)
    assert money is not None
    for shown, run, reason in (
        (money.shown, money.run, money.reason),
        (Shown(found["gates"][1]["shown"]), found["gates"][1]["run"], found["gates"][1]["reason"]),
    ):
        assert (shown, run) == (Shown.UNDECIDED, None)
        assert "tokens of w8a8 are not credible" in reason
    assert found["gates"][0]["shown"] == "passed", "the baseline's own is not weighed against another"


def test_one_tokenizer_over_other_words_is_credible(db: Database) -> None:
    failures(db, broken=0)
    known = tiers(
        bf16=ModelTier(capacity=10.0, bytes_per_token=4.2),
        w8a8=ModelTier(capacity=20.0, bytes_per_token=3.1),
    )
    assert cost(db, known)["gates"][0]["shown"] == "passed"


def test_a_tier_that_is_fast_and_breaks_its_answers_has_a_negative_net_benefit(db: Database) -> None:
    failures(db, broken=120)
    found = cost(db, tiers(bf16=ModelTier(capacity=10.0), w8a8=ModelTier(capacity=20.0)))
    numbers = found["gates"][0]["numbers"]
    assert numbers["candidate per 1M tokens"] < numbers["baseline per 1M tokens"], "it is cheaper by itself"
    assert numbers["net benefit per request"] < 0
    failed = kept(db, Gate.MONEY)
    assert failed is not None
    assert failed.shown is Shown.FAILED


def test_the_price_is_that_of_all_backends_that_were_loaded(db: Database) -> None:
    failures(db, broken=0)
    known = tiers(bf16=ModelTier(capacity=10.0), w8a8=ModelTier(capacity=20.0))
    found = cost(db, known, w8a8={"backends": ["http://a:1", "http://b:1"]})
    assert found["cost"][1]["price_per_hour"] == 120.0
    numbers = found["gates"][0]["numbers"]
    assert numbers["candidate per 1M tokens"] == pytest.approx(numbers["baseline per 1M tokens"], rel=0.12)


@pytest.mark.parametrize(
    ("known", "changes", "words"),
    [
        (tiers(bf16=ModelTier(), w8a8=ModelTier(capacity=1e9)), {}, "best rate of w8a8 was not reached"),
        (
            tiers(bf16=ModelTier(), w8a8=ModelTier()),
            {"bf16": {"price_per_hour": None}},
            "bf16 has no price_per_hour",
        ),
    ],
)
def test_a_cost_that_cannot_be_told_is_said_and_is_no_look(
    known: Mapping[str, ModelTier], changes: dict[str, Any], words: str, db: Database
) -> None:
    cost(db, known, **changes)
    found = kept(db, Gate.MONEY)
    assert found is not None
    assert (found.shown, found.run) == (Shown.UNDECIDED, None)
    assert words in found.reason


def test_best_rates_and_the_curve_of_concurrency_are_kept_for_the_report(db: Database) -> None:
    manifest, blocks = blocks_of(tiers(bf16=ModelTier(), w8a8=ModelTier(at_once=8)), PLAN)
    job = job_of(db, manifest)
    best = {each["tier"]: each for each in sweep_findings(job, blocks)["best"]}
    assert best["bf16"]["reached"]
    most = {each["tier"]: each for each in concurrency_findings(job, blocks)["concurrency"]}
    assert (most["w8a8"]["concurrency"], most["w8a8"]["reached"]) == (8, True)
    assert most["w8a8"]["limit_seconds"] == pytest.approx(0.04)
    assert [step["concurrency"] for step in most["w8a8"]["curve"]][:4] == [1, 2, 4, 8]
    assert len(rounds_of(manifest, blocks)) == 8
