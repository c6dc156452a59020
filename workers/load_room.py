"""What a load worker's child, or the guard's for its turns, works with: from settings to a `LoadRoom`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from redis import RedisError

from evaluators.exchange import Request
from service.decision.evidence import Evidence
from service.settings import Settings
from service.settings.questions import epochs_of, question_of
from service.store.kept.corpus_members import Member, opened
from service.store.redis.capture import Keyring
from service.store.redis.captures import open_captures
from service.store.redis.worker_counts import WorkerCounts
from service.store.sql.database import Database, open_database
from service.store.verdicts.standing import read_standing
from service.wire import parse_request
from service.wire.shapes import NotARequest
from workers.load_findings import Court
from workers.shadow_job import LoadRoom

log = logging.getLogger("tiergate.load")

MOST_REQUESTS = 4096
"""That a block draws from."""


def open_load_room(
    settings: Settings, *, worker: str, stopping: Callable[[], bool], lease_seconds: float
) -> LoadRoom:
    """Opens the database; raises StoreUnusable."""
    db = open_database(settings.database_url, part="load worker")
    question, epochs = question_of(settings, db), epochs_of(settings, db)
    captures = open_captures(settings.redis_url)

    def evidence_of(model: str, tier: str) -> Evidence:
        ladder = settings.ladders[model]
        if tier == ladder.baseline.name:
            return Evidence(
                model=model,
                tier=tier,
                epoch=epochs.epoch_of(model, tier),
                tiers_under_test=max(1, len(ladder.candidates)),
            )
        known = read_standing(db, ladder, question, now=time.time(), up_to=tier).rung(tier).evidence
        assert known is not None, "a candidate has evidence"
        return known

    return LoadRoom(
        worker=worker,
        db=db,
        ladders=settings.ladders,
        slo=settings.slo,
        court=Court(
            db=db,
            policy=settings.policy,
            evidence_of=evidence_of,
            unsettled_of=epochs.unsettled_of,
            operations=settings.money.operations_per_request,
        ),
        requests_of=lambda model: requests_of(
            db, settings.keyring, model, settings.corpus.use, settings.corpus.plan.per_stratum
        ),
        stopping=stopping,
        watch=settings.shadow_job.watch,
        request_seconds=settings.shadow.timeout_seconds,
        lease_seconds=lease_seconds,
        count=_counting(WorkerCounts(captures.redis, worker=worker)),
        closing=captures.close,
    )


def _counting(counts: WorkerCounts) -> Callable[[Mapping[str, int]], None]:
    """Without Redis something stays uncounted, and the job goes on."""

    def count(added: Mapping[str, int]) -> None:
        try:
            counts.add(added)
        except RedisError as error:
            log.warning("what a block showed is missing in the metrics: %s", error)

    return count


def requests_of(
    db: Database, keyring: Keyring, model: str, corpus: str, per_stratum: int
) -> tuple[Sequence[Request], Sequence[float]]:
    """A model's corpus as load: requests in the mix of the traffic, and their times where all are known.

    Strata are kept in equal numbers, whatever their share of the traffic, so each request stands there as
    often as it weighs; one that a trace brings its own time stands there once, in its order.
    """
    members = list(opened(db, keyring, model=model, name=corpus, per_stratum=per_stratum, now=time.time()))
    times = [each.listed.arrived_at for each in members]
    if members and None not in times:
        members.sort(key=lambda each: (each.listed.arrived_at or 0.0, each.listed.digest))
        if len({each.weight for each in members}) == 1:
            read = list(_read(members))
            return [request for request, _ in read], [each.listed.arrived_at or 0.0 for _, each in read]
    lightest = min((each.weight for each in members), default=1.0)
    total = sum(each.weight for each in members)
    scale = min(1 / lightest, MOST_REQUESTS / total) if members else 1.0
    mixed: list[Request] = []
    for request, each in _read(members):
        mixed += [request] * max(1, round(each.weight * scale))
    return mixed, sorted(each for each in times if each is not None)


def _read(members: Sequence[Member]) -> Iterator[tuple[Request, Member]]:
    """Those that are requests, in order."""
    for each in members:
        try:
            yield parse_request(each.path, each.body), each
        except NotARequest as error:
            log.error("a request of the corpus cannot be sent: %s", error)
