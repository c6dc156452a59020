"""One batch of captures, from lease to evidence.

lease -> fetch -> open -> place -> replay -> judge -> record -> forget. Store calls are synchronous, before
and after the replays; the replays of a batch run concurrently on the child's one event loop. Only while
they run are the leases extended, from a thread: no other step can take as long as a lease.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from redis import RedisError

from evaluators.exchange import AnswerRule, Outcome
from evaluators.score import TimeLimit
from service.fleet import Ladder, Route
from service.store.redis.capture import Capture, Keyring, SealBroken, unseal
from service.store.redis.captures import Captures
from service.store.redis.redis_keys import probe_tokens
from service.store.redis.spending import Budget
from service.store.redis.worker_counts import WorkerCounts
from service.store.scored.leases import expire, heartbeat, lease, lose, release, settled
from service.store.scored.pairs import claim, conversation_of, record
from service.store.scored.units import Unit
from service.store.sql.database import Database, StoreUnusable
from service.store.traffic.closing import is_closed
from service.store.verdicts.standing import route_of
from service.wire import NotARequest, explicit_conversation, message_chain
from workers import metrics
from workers.answering import Answering, Inquiry
from workers.drawing import Drawing, Lots, draw_lots
from workers.judge import Alarm
from workers.keeping import NOTHING_KEPT, Keeping, drawn
from workers.opening import Opened, open_capture
from workers.plan import Slot, targets
from workers.probes import RECALL, Probing
from workers.units import Placed, Scoring, claims_of, units_of

log = logging.getLogger("tiergate.worker")

SECONDS_PER_CAPTURE = 10.0
"""Reading one capture and mining its probes takes milliseconds; only a hostile text comes near this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the configuration says about replaying."""

    ladders: Mapping[str, Ladder]
    probing: Callable[[str], Probing]
    """By model."""
    scoring: Callable[[Database], Scoring]
    """As it is now: what the engines are is in the database."""
    probes_per_day: Callable[[str], int | None] = lambda model: None
    """Tokens that the probes of a model may spend; None = only the budget of all shadow traffic."""
    answer_rule: Callable[[str], AnswerRule] = lambda model: AnswerRule()
    """By model."""
    keeping: Keeping = NOTHING_KEPT
    """Which pairs people are to judge."""
    drawing: Drawing | None = None
    """What is kept for the corpus, and whether requests that are sent again are counted."""
    repeats: float = 0.0
    """Share of captures of which candidates are asked twice, so that their own noise is known."""
    on_serving: bool = False
    """Whether tiers without shadow backends may be replayed on those that serve clients."""
    lease_seconds: float = 120.0
    seconds_per_capture: float = SECONDS_PER_CAPTURE


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What one worker child holds open, all of it made after the fork."""

    worker: str
    """Its name; with the delivery's id it makes the owner of a lease."""
    terms: Terms
    keyring: Keyring
    db: Database
    captures: Captures
    budget: Budget
    counts: WorkerCounts
    answering: Answering

    def close(self) -> None:
        self.answering.close()
        self.captures.close()
        self.db.close()


def replay_batch(bench: Bench, ids: Sequence[str], *, delivery: str) -> None:
    """Take the captures of one message that nobody else holds, and make evidence of them.

    A second delivery finds them held or settled and leaves. Captures that could not be finished are
    released, and the sweeper enqueues them again.
    """
    owner = f"{bench.worker}/{delivery}"
    held = lease(bench.db, ids, owner=owner, now=time.time(), seconds=bench.terms.lease_seconds)
    scoring = bench.terms.scoring(bench.db)
    batch = _Batch(bench=bench, owner=owner, scoring=scoring, unsettled=set(held))
    ending = "failed"
    try:
        if others := set(ids) - set(held):
            # Settled, perhaps, by somebody who died before the captures were forgotten.
            bench.captures.forget(settled(bench.db, others))
        batch.work(held)
        ending = "recorded" if held else "idle"
    finally:
        batch.counts[metrics.series(metrics.BATCHES, ending=ending)] += 1
        # Should one of these fail, nothing is lost: leases run out, and the sweeper forgets what is settled.
        if batch.unsettled:
            release(bench.db, batch.unsettled, owner=owner)
        bench.captures.forget(batch.done)
        bench.counts.add(batch.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """One delivery on its way."""

    bench: Bench
    owner: str
    scoring: Scoring
    """As it was when the batch began: epochs do not change within it."""
    unsettled: set[str]
    """Leased and neither settled nor left to run out; shrinks."""
    done: set[str] = field(default_factory=set)
    """In SQL, and still to be forgotten; grows."""
    counts: Counter[str] = field(default_factory=Counter)
    """Series of `metrics`."""

    def work(self, held: Sequence[str]) -> None:
        placed = self._place_all(self._open(held))
        bench = self.bench
        lots = draw_lots(bench.terms.drawing, bench.db, bench.captures.redis, bench.keyring, placed)
        answers = self.bench.answering.run(
            [self._inquiry(each.opened) for each in placed if each.is_asked],
            every=self.bench.terms.lease_seconds / 3,
            beat=self._extend,
        )
        self.counts.update(answers.counts)
        scoring = self._when_judged()
        for each in placed:
            capture_id = each.opened.capture.id
            if each.late:
                self._record(each, {}, scoring, lots)
                continue
            spent = answers.spent[capture_id]
            self.counts[metrics.series(metrics.TOKENS, model=each.opened.capture.model)] += spent
            if each.over_budget:
                self._record(each, {}, scoring, lots)
                continue
            self._give_back(each.opened, spent)
            if capture_id in answers.outcomes:
                self._record(each, answers.outcomes[capture_id], scoring, lots)

    def _when_judged(self) -> Scoring:
        """With tiers of which an engine has changed meanwhile: whoever answered, it may have been either."""
        before, now = self.scoring.unsettled_of, self.bench.terms.scoring(self.bench.db).unsettled_of
        return replace(self.scoring, unsettled_of=lambda model, tier: before(model, tier) or now(model, tier))

    def _open(self, held: Sequence[str]) -> list[Opened]:
        """Those that can be replayed, oldest first: who claims a conversation first counts for it."""
        found = self.bench.captures.fetch(held)
        self._settle_missing([each for each, blob in found.items() if blob is None])
        captures = [self._unseal(each, blob) for each, blob in found.items() if blob is not None]
        routes: dict[str, Route] = {}
        opened: list[Opened] = []
        for capture in sorted((each for each in captures if each), key=lambda each: each.started_at):
            ladder = self.bench.terms.ladders.get(capture.model)
            if ladder is None:
                log.error("capture %s: the configuration has no model %r", capture.id, capture.model)
                self._leave(capture.id)
                continue
            if capture.model not in routes:
                routes[capture.model] = route_of(self.bench.db, ladder)
            try:
                opened.append(self._read(capture, ladder, routes[capture.model]))
            except (NotARequest, TimeLimit) as error:
                log.info("capture %s cannot be put to another backend: %s", capture.id, error)
                self._settle(capture.id, (), "not_replayable")
            except Exception:
                # Our own fault, whatever it is, and of this capture alone: the others of the batch go on.
                log.exception("capture %s could not be read", capture.id)
                self._leave(capture.id)
        return opened

    def _unseal(self, capture_id: str, blob: bytes) -> Capture | None:
        try:
            return unseal(capture_id, blob, self.bench.keyring)
        except SealBroken as error:
            # Perhaps a key is missing here and will be added; until it expires the capture is tried again.
            log.error("%s", error)
            self._leave(capture_id)
            return None

    def _read(self, capture: Capture, ladder: Ladder, route: Route) -> Opened:
        terms = self.bench.terms
        backends = {tier.name: targets(tier, route, on_serving=terms.on_serving) for tier in ladder.tiers}
        probing, rule = terms.probing(capture.model), terms.answer_rule(capture.model)
        try:
            with Alarm(terms.seconds_per_capture):
                return open_capture(capture, ladder, backends, probing, rule, repeats=terms.repeats)
        except TimeLimit:
            # Mostly its text is too much to mine; without probes it counts for the other evaluators.
            with Alarm(terms.seconds_per_capture):
                without = replace(probing, per_capture=0)
                return open_capture(capture, ladder, backends, without, rule, repeats=terms.repeats)

    def _place_all(self, opened: Sequence[Opened]) -> list[Placed]:
        placed: list[Placed] = []
        for each in opened:
            try:
                placed.append(self._place(each))
            except (StoreUnusable, RedisError):
                raise  # nobody's fault here: the whole batch waits
            except Exception:
                log.exception("capture %s could not be placed", each.capture.id)
                self._leave(each.capture.id)
        return placed

    def _place(self, opened: Opened) -> Placed:
        """Find its conversation and claim it before any replay: no answer has a say in what counts."""
        capture = opened.capture
        conversation = conversation_of(
            self.bench.db,
            model=capture.model,
            tenant=capture.tenant,
            explicit=capture.conversation or explicit_conversation(opened.request),
            chain=message_chain(opened.request),
        )
        if self.scoring.by_conversation and is_closed(self.bench.db, conversation):
            return Placed(opened=opened, conversation=conversation, late=True)
        probed = opened.plan.probe_tokens
        probes = self._probe_budget(capture.model)
        no_probes = probed > 0 and not probes.take(probed, now=time.time())
        if no_probes:
            opened = replace(opened, plan=opened.plan.without_probes())
        if opened.plan.tokens and not self.bench.budget.take(opened.plan.tokens, now=time.time()):
            probes.give_back(opened.plan.probe_tokens)
            return Placed(opened=opened, conversation=conversation, over_budget=True)
        claims = claims_of(opened, conversation, self.scoring)
        if no_probes:
            claims = [each for each in claims if each.evaluator != RECALL]
        held = claim(self.bench.db, claims, capture_id=capture.id)
        return Placed(
            opened=opened, conversation=conversation, held=frozenset(held), probes_over_budget=no_probes
        )

    def _probe_budget(self, model: str) -> Budget:
        """The bucket of a model's recall questions."""
        per_day = self.bench.terms.probes_per_day(model)
        return Budget(self.bench.captures.redis, tokens_per_day=per_day, key=probe_tokens(model))

    def _give_back(self, opened: Opened, spent: int) -> None:
        """Correct what was taken by what the engines say; of that, probes are taken to have their share."""
        plan = opened.plan
        self.bench.budget.give_back(plan.tokens - spent)
        if plan.probe_tokens:
            share = spent * plan.probe_tokens // plan.tokens
            self._probe_budget(opened.capture.model).give_back(plan.probe_tokens - share)

    def _inquiry(self, opened: Opened) -> Inquiry:
        ladder = self.bench.terms.ladders[opened.capture.model]
        return Inquiry(
            capture_id=opened.capture.id,
            model=opened.capture.model,
            plan=opened.plan,
            tiers={name: (ladder.tier(name), opened.backends[name]) for name in opened.plan.asks},
        )

    def _extend(self) -> None:
        heartbeat(
            self.bench.db,
            list(self.unsettled),
            owner=self.owner,
            now=time.time(),
            seconds=self.bench.terms.lease_seconds,
        )

    def _record(self, placed: Placed, outcomes: Mapping[Slot, Outcome], scoring: Scoring, lots: Lots) -> None:
        capture = placed.opened.capture
        try:
            now = time.time()
            units = units_of(placed, outcomes, scoring, at=now)
            queued = drawn(self.bench.terms.keeping, self.bench.keyring, placed, units, outcomes, now=now)
            writing = lots.writing(placed, units, outcomes, scoring)
            first = self._settle(capture.id, units, "processed", drawn=queued, alongside=writing)
        except (StoreUnusable, RedisError):
            raise
        except Exception:
            log.exception("capture %s could not be judged and recorded", capture.id)
            self._leave(capture.id)
            return
        if not first:
            return
        for unit in units:
            for row in unit.rows:
                self.counts[
                    metrics.series(
                        metrics.PAIRS,
                        model=unit.model,
                        tier=unit.tier,
                        arm=unit.arm,
                        evaluator=unit.evaluator,
                        outcome=row.outcome,
                    )
                ] += 1

    def _settle(self, capture_id: str, units: Sequence[Unit], ending: str, **beside: Any) -> bool:
        """Record it, with what `pairs.record` takes beside it; False when somebody else had recorded it."""
        first = record(
            self.bench.db, capture_id=capture_id, owner=self.owner, units=units, at=time.time(), **beside
        )
        self.unsettled.discard(capture_id)
        self.done.add(capture_id)
        self._count(ending if first else "recorded_elsewhere", 1)
        return first

    def _settle_missing(self, ids: Sequence[str]) -> None:
        """Redis has them no longer: expired if the index still knows them, else lost with Redis's memory."""
        if not ids:
            return
        indexed = self.bench.captures.indexed(ids)
        lost = set(ids) - indexed
        self._count("expired", expire(self.bench.db, indexed, at=time.time()))
        self._count("lost", lose(self.bench.db, lost, at=time.time()))
        self.unsettled.difference_update(ids)
        self.done.update(ids)

    def _leave(self, capture_id: str) -> None:
        """Not now: when its lease has run out it is tried again, until it expires."""
        self.unsettled.discard(capture_id)
        self._count("left", 1)

    def _count(self, ending: str, amount: int) -> None:
        if amount:
            self.counts[metrics.series(metrics.CAPTURES, ending=ending)] += amount
