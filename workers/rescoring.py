"""Kept answers judged again, after an evaluator was upgraded (statistics A5): into its new tally.

An answer belongs to what answered. So pairs move from an old epoch to the present one only where the two
differ in evaluators and in nothing else: recipe, engines, probe and policy are the same. In an epoch that has
stayed, an evaluator of another version that decides nothing judges them again as well. What is kept was
chosen by a hash of the request, so it counts, by the same claims as live traffic; with `units:
closed_conversations` it is shown and does not count, since only a sample of each conversation was kept.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evaluators.exchange import Request
from evaluators.score import Evaluator
from service.fleet import Ladder
from service.store.kept.kept_answers import mark_scored, to_score
from service.store.redis.capture import SealBroken
from service.store.scored.pairs import record_again
from service.store.scored.units import Arm, PairOutcome, PairRow, Unit
from service.store.sql.database import Database, StoreUnusable
from service.store.verdicts.current_epochs import known_epochs
from service.wire import NotARequest
from workers.kept import Compared, Kept, open_kept
from workers.probes import RECALL
from workers.replay import Bench
from workers.units import Scoring, judged_row, judged_under, questions_for

log = logging.getLogger("tiergate.worker")

AT_ONCE = 100
"""Captures of one model in one run: seconds of judging, so that replays wait no longer than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """What one run did."""

    captures: int = 0
    units: int = 0

    def plus(self, other: Rescored) -> Rescored:
        return Rescored(captures=self.captures + other.captures, units=self.units + other.units)


def rescore(bench: Bench, *, limit: int = AT_ONCE) -> Rescored:
    """Judge some of what is due, of every model; nothing is due when neither evaluators nor epochs changed.

    Safe at any time and in any number of workers: a unit is recorded once.
    """
    scoring, done = bench.terms.scoring(bench.db), Rescored()
    for model, ladder in bench.terms.ladders.items():
        tiers = [tier.name for tier in ladder.tiers]
        if any(scoring.unsettled_of(model, tier) for tier in tiers):
            continue  # who answers now is not known, so neither is what belongs to it
        under = judged_under(scoring, model, tiers)
        found = to_score(bench.db, model=model, scored=under, limit=limit, now=time.time())
        if not found:
            continue
        carried = carried_over(bench.db, ladder, scoring)
        if carried is None:
            continue  # the guard has not written the present epoch down yet
        units = 0
        for capture_id, blob in found.items():
            units += _again(bench, capture_id, blob, scoring, carried)
        mark_scored(bench.db, found, under)
        done = done.plus(Rescored(captures=len(found), units=units))
        log.info("%s: %d kept captures judged again, %d units", model, len(found), units)
    return done


Carried = Mapping[tuple[str, str], str]
"""The present epoch of (tier, old epoch), where pairs of the old one may count in it."""


def carried_over(db: Database, ladder: Ladder, scoring: Scoring) -> Carried | None:
    """Which old epochs differ from the present ones in evaluators alone; None while one is not known."""
    carried: dict[tuple[str, str], str] = {}
    for tier in ladder.tiers:
        present = scoring.epoch_of(ladder.model, tier.name)
        facts = {each.epoch: each.facts for each in known_epochs(db, ladder.model, tier.name)}
        if present not in facts:
            return None
        same = _apart_from_evaluators(facts[present])
        for epoch, told in facts.items():
            if _apart_from_evaluators(told) == same:
                carried[tier.name, epoch] = present
    return carried


def _apart_from_evaluators(facts: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in facts.items() if name != "evaluators"}


def _again(bench: Bench, capture_id: str, blob: bytes, scoring: Scoring, carried: Carried) -> int:
    try:
        kept = open_kept(capture_id, blob, bench.keyring, bench.terms.answer_rule)
        units = tuple(_units(capture_id, kept, scoring, carried))
        return record_again(bench.db, capture_id=capture_id, units=units, at=time.time())
    except (SealBroken, NotARequest) as error:
        log.error("the answers kept of capture %s cannot be judged again: %s", capture_id, error)
    except StoreUnusable:
        raise
    except Exception:
        log.exception("the answers kept of capture %s could not be judged again", capture_id)
    return 0


def _units(capture_id: str, kept: Kept, scoring: Scoring, carried: Carried) -> Iterator[Unit]:
    now = time.time()
    for compared in kept.compared:
        epoch = carried.get((compared.comparison.tier, compared.epoch))
        if epoch is None:
            continue
        for evaluator in scoring.evaluators:
            if evaluator.name == RECALL and not compared.comparison.probed:
                continue
            questions = questions_for(evaluator, kept.request, kept.questions)
            if not questions and evaluator.name in scoring.onlookers:
                continue
            rows = tuple(_rows(kept, compared, evaluator, questions, scoring))
            if not rows:
                continue
            yield Unit(
                capture_id=capture_id,
                model=kept.capture.model,
                tier=compared.comparison.tier,
                arm=compared.comparison.arm.value,
                evaluator=evaluator.name,
                version=evaluator.version,
                epoch=epoch,
                conversation=kept.conversation,
                stratum=kept.capture.stratum,
                tenant=kept.capture.tenant,
                digest=kept.digest,
                counted=not scoring.by_conversation,
                marginals=kept.marginals,
                rows=rows,
                at=now,
            )


def _rows(
    kept: Kept,
    compared: Compared,
    evaluator: Evaluator,
    questions: Mapping[int, Request],
    scoring: Scoring,
) -> Iterator[PairRow]:
    if not questions:
        yield PairRow(outcome=PairOutcome.NOT_APPLICABLE.value)
    for item, question in questions.items():
        baseline, candidate = compared.comparison.slots(kept.baseline, item)
        if baseline not in kept.outcomes or candidate not in kept.outcomes:
            continue
        pair = (kept.outcomes[baseline], kept.outcomes[candidate])
        origin = _origin(kept, compared, item)
        yield judged_row(evaluator, question, pair, item=item, origin=origin, scoring=scoring)


def _origin(kept: Kept, compared: Compared, item: int) -> str:
    """Where the first of the two outcomes comes from; of a candidate's own, what is kept does not say."""
    return "live" if item in kept.live and compared.comparison.arm is not Arm.REPEAT else "replay"
