"""Kept answers judged again by an upgraded evaluator: into the new epoch, once, of the same artifact."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import pytest

from evaluators.exchange import Answer, Fault, Format, Request
from evaluators.score import Score
from service.decision.policy import Units
from service.decision.tally import Tally
from service.store.kept.corpus_plan import CorpusPlan
from service.store.redis.capture import Keyring
from service.store.scored.breakdown import read_strata
from service.store.scored.evidence import read_tallies
from service.store.scored.recount import recount
from service.store.sql.database import Database
from service.store.sql.engine_tables import epoch_facts
from tests.conftest import ValkeyServer
from tests.workers.scripted import Reply, Script, ScriptedBackend
from tests.workers.walk import (
    BROKEN,
    GOOD,
    MODEL,
    SCORING,
    BenchMaker,
    always,
    exchange,
    orders,
    question,
    ship,
    tier,
)
from workers.drawing import Drawing
from workers.probes import RECALL, Probing
from workers.replay import Bench, replay_batch
from workers.rescoring import Rescored, rescore

Backends = Callable[[Script], ScriptedBackend]


class Lenient:
    """Structured output in a later version, which lets everything pass that begins with a brace."""

    name: ClassVar[str] = "structured_output"
    version: ClassVar[str] = "next"

    def applies(self, request: Request) -> bool:
        return request.format is not Format.TEXT

    def score(self, request: Request, answer: Answer) -> Score:
        return Score(passed=answer.text.startswith("{"), label="ok")

    def score_fault(self, request: Request, fault: Fault) -> Score:
        return Score(passed=False, label="fault")


UPGRADED = replace(
    SCORING,
    evaluators=(Lenient(), *(each for each in SCORING.evaluators if each.name != Lenient.name)),
    epoch_of=lambda model, tier: f"next epoch of {tier}",
)


def write_facts(db: Database, of: str, epoch: str, **changes: object) -> None:
    facts = {"model": MODEL, "tier": of, "policy": 1, "evaluators": epoch, **changes}
    with db.write() as connection:
        connection.execute(
            db.insert(epoch_facts)
            .values(model=MODEL, tier=of, epoch=epoch, facts=json.dumps(facts), first_seen=1.0)
            .on_conflict_do_nothing()
        )


@pytest.fixture
def scored(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> Callable[..., Callable[..., Bench]]:
    """Scores five captures of which every answer is kept; gives what makes a bench with another scoring."""

    def walk(candidate: Script = always(BROKEN)) -> Callable[..., Bench]:
        baseline, other = backend(always(GOOD)), backend(candidate)
        tiers = (tier("bf16", None, shadow=baseline.url), tier("w4a16", other.url))
        drawing = Drawing(plan=CorpusPlan(per_stratum=0), answers=1.0, salt=b"s")
        bench = bench_of(*tiers, drawing=drawing)
        replay_batch(bench, ship(valkey.url, orders(5)), delivery="1")
        for name in ("bf16", "w4a16"):
            write_facts(bench.db, name, f"epoch of {name}")
        return lambda scoring, **more: bench_of(*tiers, scoring=lambda db: scoring, **more)

    return walk


def found(db: Database, epoch: str, *, of: str = "w4a16", arm: str = "candidate") -> dict[str, Tally]:
    return dict(read_tallies(db, model=MODEL, tier=of, arm=arm, epoch=epoch))


def write_next(db: Database, **changes: object) -> None:
    for name in ("bf16", "w4a16"):
        write_facts(db, name, f"next epoch of {name}", **changes)


def test_they_count_in_the_new_epoch_as_the_new_version_judges_them(scored, db: Database) -> None:
    bench = scored()(UPGRADED)
    write_next(db)
    before = found(db, "epoch of w4a16")["structured_output"]
    assert (before.n, before.harm) == (5, 5)
    done = rescore(bench)
    assert done.captures == 5
    after = found(db, "next epoch of w4a16")
    assert (after["structured_output"].n, after["structured_output"].harm) == (5, 0)
    assert after["refusal"].n == 5
    assert found(db, "next epoch of bf16", of="bf16", arm="control")["structured_output"].n == 5
    assert found(db, "epoch of w4a16")["structured_output"] == before
    assert recount(db).equal


def test_recall_questions_are_in_the_strata_of_their_depth_again(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends, db: Database
) -> None:
    facts = {"access code of the blue room": "QX48213", "invoice number of the May delivery": "INV-20391"}
    between = " Nothing else happened that day." * 30
    prose = f"{between} ".join(f"The {key} is {value}." for key, value in facts.items())
    baseline, other = backend(always(" and ".join(facts.values()))), backend(always("I do not know."))
    tiers = (tier("bf16", None, shadow=baseline.url), tier("w4a16", other.url))
    drawing = Drawing(plan=CorpusPlan(per_stratum=0), answers=1.0, salt=b"s")
    bench = bench_of(*tiers, drawing=drawing, probing=Probing(per_capture=2, min_context_chars=50))
    captured = exchange(question(f"{prose}\n\nSum it up."))
    replay_batch(bench, ship(valkey.url, [captured]), delivery="1")
    for name in ("bf16", "w4a16"):
        write_facts(db, name, f"epoch of {name}")
    write_next(db)
    assert rescore(bench_of(*tiers, scoring=lambda db: UPGRADED)).captures == 1

    def depths(epoch: str) -> dict[str, int]:
        standing = read_strata(db, MODEL, "w4a16", epoch)
        recall = [each for each in standing if each.evaluator == RECALL and "depth=" in each.stratum]
        return {each.stratum: each.sums.harm for each in recall}

    before = depths("epoch of w4a16")
    assert before == {"depth=first-quarter": 1, "depth=last-quarter": 1}
    assert depths("next epoch of w4a16") == before
    assert recount(db).equal


def test_they_are_judged_again_once_and_some_at_a_time(scored, db: Database) -> None:
    bench = scored()(UPGRADED)
    write_next(db)
    assert [rescore(bench, limit=3).captures for _ in range(3)] == [3, 2, 0]
    assert found(db, "next epoch of w4a16")["structured_output"].n == 5


def test_nothing_is_due_while_evaluators_and_epochs_stay(scored, db: Database) -> None:
    assert rescore(scored()(SCORING)) == Rescored()


@pytest.mark.parametrize("change", [{"policy": 2}, {"tier": "another recipe"}, {"engines": {"tier": "new"}}])
def test_answers_of_another_artifact_or_under_another_policy_stay_behind(
    scored, db: Database, change: dict[str, object]
) -> None:
    bench = scored()(UPGRADED)
    write_next(db, **change)
    assert rescore(bench) == Rescored(captures=5, units=0)
    assert found(db, "next epoch of w4a16") == {}


def test_they_wait_until_the_present_epoch_is_written_down_and_settled(scored, db: Database) -> None:
    bench_of = scored()
    assert rescore(bench_of(UPGRADED)) == Rescored()
    write_next(db)
    unsettled = replace(UPGRADED, unsettled_of=lambda model, tier: "an engine changes")
    assert rescore(bench_of(unsettled)) == Rescored()
    assert rescore(bench_of(UPGRADED)).captures == 5


def test_an_evaluator_that_decides_nothing_is_judged_in_the_epoch_that_stayed(scored, db: Database) -> None:
    same_epoch = replace(UPGRADED, epoch_of=SCORING.epoch_of)
    assert rescore(scored()(same_epoch)).units == 10, "candidate and control, one evaluator"
    assert recount(db).equal


def test_a_live_request_that_came_first_keeps_its_claim(scored, db: Database, valkey: ValkeyServer) -> None:
    bench = scored()(UPGRADED)
    write_next(db)
    replay_batch(bench, ship(valkey.url, orders(5)), delivery="2")
    rescore(bench)
    tally = found(db, "next epoch of w4a16")["structured_output"]
    assert (tally.n, tally.not_counted) == (5, 5)


def test_where_conversations_count_whole_they_are_shown_and_do_not_count(scored, db: Database) -> None:
    bench = scored()(replace(UPGRADED, count=Units.CLOSED_CONVERSATIONS))
    write_next(db)
    rescore(bench)
    tally = found(db, "next epoch of w4a16")["structured_output"]
    assert (tally.n, tally.not_counted, tally.unscored) == (0, 5, {})


def test_a_fault_is_still_a_fault(scored, db: Database) -> None:
    bench = scored(lambda asked: Reply(cut_off=True))(UPGRADED)
    write_next(db)
    rescore(bench)
    tally = found(db, "next epoch of w4a16")["structured_output"]
    assert (tally.n, tally.harm) == (5, 5)


def test_what_cannot_be_opened_any_more_is_told_and_asked_for_no_longer(
    scored, db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    bench_of = scored()
    write_next(db)
    without = bench_of(UPGRADED, keyring=Keyring(current="new", keys={"new": bytes(32)}))
    assert rescore(without) == Rescored(captures=5, units=0)
    assert "cannot be judged again" in caplog.text
    assert rescore(without) == Rescored()
