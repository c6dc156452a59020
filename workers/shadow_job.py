"""Running shadow jobs: a block of load, or those of a round at once; then the turn that says what is next.

A block belongs to whoever holds its lease; a turn to whoever takes it first. So a worker that dies loses
neither: its block is begun anew when the lease runs out, and its turn is taken by the guard.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from evaluators.exchange import Request
from service.fleet import Ladder, Slo
from service.load.block import Aborted, Load, Watch, run_together
from service.load.block import Block as Run
from service.load.figures import BlockFigures
from service.load.plan import BlockPlan, Part
from service.store.load.job_terms import unlike
from service.store.load.jobs import Job, JobState, end_job, read_job
from service.store.load.load_blocks import (
    LEASE_SECONDS,
    Block,
    Outcome,
    break_off,
    finish_blocks,
    give_back,
    lease_block,
    read_blocks,
)
from service.store.load.turns import Ending, Turn, take_turn
from service.store.sql.database import Database
from service.store.verdicts.serving import in_service, targets_of
from workers.load_counts import counted, ended
from workers.load_findings import (
    Court,
    concurrency_findings,
    cost_findings,
    last_end,
    no_slo_findings,
    slo_findings,
    sweep_findings,
)
from workers.load_heart import Clients, Heart, Unwatchable
from workers.load_opening import open_up
from workers.load_plan import Next, Opening, Spent, next_block

log = logging.getLogger("tiergate.load")

MOST_ATTEMPTS = 3
"""Times a block may be begun: one that ends its workers must not go on for ever."""
REST_SECONDS = 30.0
"""At most, that engines get before a block to end what the last one left them."""
DONE = "done"
UNEQUAL_SHARE = 0.01
"""Of the load's requests, that clients may have sent meanwhile without being part of it."""


Together = Callable[[Sequence[tuple[BlockPlan, Load]], Watch], tuple[Run, ...]]
"""Runs the blocks of several arms at the same time, until the watch objects: `run_together`."""


def _together(arms: Sequence[tuple[BlockPlan, Load]], watch: Watch) -> tuple[Run, ...]:
    return run_together(arms, watch=watch)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRoom:
    """What running blocks and taking turns needs."""

    worker: str
    db: Database
    ladders: Mapping[str, Ladder]
    slo: Mapping[str, Slo]
    court: Court
    requests_of: Callable[[str], tuple[Sequence[Request], Sequence[float]]]
    """What a model's load is made of, and when each request came, where that is known."""
    together: Together = _together
    """By the clock; a simulation may have another."""
    stopping: Callable[[], bool] = lambda: False
    watch: Sequence[str] = ()
    """Admin addresses of proxies."""
    request_seconds: float = 300.0
    lease_seconds: float = LEASE_SECONDS
    count: Callable[[Mapping[str, int]], None] = lambda counts: None
    """Takes what is to be added to each series of metrics."""
    closing: Callable[[], None] = lambda: None
    """Gives up what `count` holds open."""

    def close(self) -> None:
        self.closing()
        self.db.close()


def run_load_block(room: LoadRoom, job_id: str, number: int) -> str:
    """Run a block and those beside it, and take the turn after them; in a word what became of them."""
    owner = f"{room.worker}/{uuid4().hex[:8]}"
    block = lease_block(room.db, job_id, number, owner=owner, now=time.time(), seconds=room.lease_seconds)
    if block is None:
        log.info("block %d of job %s is settled, or somebody is at it", number, job_id)
        return "not_ours"
    job = read_job(room.db, job_id)
    ending = _run(room, job, block)
    room.count(ended(job.model, block.together, ending))
    if ending == DONE:
        turn(room, job_id)
    return ending


def _run(room: LoadRoom, job: Job, block: Block) -> str:
    if block.leases > MOST_ATTEMPTS:
        reason = f"block {block.number} was begun {MOST_ATTEMPTS} times and never ended"
        return _end(room, block, JobState.FAILED, reason)
    if (ending := _objection(room, job)) is not None:
        return _end(room, block, ending.state, ending.reason)
    try:
        with ExitStack() as stack:
            clients = _clients(room, job)
            heart = stack.enter_context(
                Heart(
                    room.db,
                    block,
                    stopping=room.stopping,
                    objecting=lambda: _objection(room, job),
                    clients=clients,
                    lease_seconds=room.lease_seconds,
                )
            )
            runs = _measure(room, job, block, heart)
    except Unwatchable as error:
        return _end(room, block, JobState.ABORTED, str(error))
    except ValueError as error:
        return _end(room, block, JobState.FAILED, f"block {block.number} cannot be run: {error}")
    if runs is None:
        return _broken_off(room, block, heart)
    # A last look: a short block may be over before the first.
    if clients is not None and (broken := clients.follow()):
        return _end(room, block, JobState.ABORTED, broken)
    # Clients answered meanwhile are told once, whatever else ran beside it.
    answers = 0 if clients is None else clients.answers
    outcomes = [
        Outcome(
            block=each,
            figures=run.figures.document(),
            tokens=run.figures.spent_prompt_tokens + run.figures.spent_output_tokens,
            clients=answers if each is block else 0,
        )
        for each, run in zip(block.together, runs, strict=True)
    ]
    if not finish_blocks(room.db, outcomes, now=time.time()):
        log.error(
            "block %d of job %s was finished too late: somebody else holds it", block.number, job.job_id
        )
        return "lost"
    for each, run in zip(block.together, runs, strict=True):
        room.count(counted(job.model, run))
        log.info("job %s: block %d (%s of %s) done", job.job_id, each.number, each.part, each.tier)
    return DONE


def turn(room: LoadRoom, job_id: str) -> bool:
    """Decide and write down what a job does next, if nobody has; whether it was this call that did."""
    now = time.time()
    job = read_job(room.db, job_id)
    if job.state.over:
        return False
    blocks = read_blocks(room.db, job_id)
    if (ending := _gone(room, job)) is not None:
        return take_turn(
            room.db,
            job_id,
            len(blocks),
            Turn(then=ending, outlook=job.outlook, remarks=job.remarks, findings=job.findings),
            now=now,
        )
    figures = [_figures(block) for block in blocks]
    told: dict[str, Any] = dict(job.findings or {})
    if "opening" not in told:
        told["opening"] = open_up(room.court, job, now=now).document()
    opening = Opening.of(told["opening"])
    spent = Spent(seconds=job.seconds_spent, tokens=job.tokens_spent)
    following = next_block(job.manifest, opening, figures, spent)
    told = _concluded(room, job, blocks, figures, opening, following, told, now=now)
    return take_turn(
        room.db,
        job_id,
        len(blocks),
        Turn(
            then=_then(following),
            beside=[plan.document() for plan in following.beside],
            outlook=following.outlook,
            remarks=following.remarks,
            findings=told,
        ),
        now=now,
    )


def _then(following: Next) -> Mapping[str, Any] | Ending:
    if following.plan is not None:
        return following.plan.document()
    if following.failed:
        return Ending(state=JobState.FAILED, reason=following.failed)
    return Ending(state=JobState.DONE)


def _concluded(
    room: LoadRoom,
    job: Job,
    blocks: Sequence[Block],
    figures: Sequence[BlockFigures],
    opening: Opening,
    following: Next,
    told: dict[str, Any],
    *,
    now: float,
) -> dict[str, Any]:
    """The findings with those of every part that is over by now. A job that failed concludes nothing more."""
    if following.failed:
        return told
    ends = [(block.part, block.ended_at) for block in blocks]
    unequal = _unequal(job, blocks, figures)
    gates = list(told.get("gates", ()))

    def due(part: Part, key: str) -> bool:
        return part.value in job.manifest.plan.parts and following.over(part) and key not in told

    if due(Part.SLO, "slo"):
        at = last_end(ends, Part.SLO)
        if at is None:
            found = no_slo_findings(room.court, job, opening.without_power or "no block was run", at=now)
        else:
            whole = [_figures(each) for each in read_blocks(room.db, job.job_id, columns=True)]
            found = slo_findings(room.court, job, whole, at=at, unequal=unequal)
        gates += found.pop("gates")
        told |= found
    if due(Part.SWEEP, "best"):
        told |= sweep_findings(job, figures)
    if due(Part.COST, "cost"):
        at = last_end(ends, Part.COST) or last_end(ends, Part.SWEEP) or now
        found = cost_findings(room.court, job, figures, at=at, unequal=unequal)
        gates += found.pop("gates")
        told |= found
    if due(Part.CONCURRENCY, "concurrency"):
        told |= concurrency_findings(job, figures)
    return {**told, "gates": gates}


def _measure(room: LoadRoom, job: Job, block: Block, heart: Heart) -> tuple[Run, ...] | None:
    """What the block and those beside it showed; None when they were broken off."""
    requests, trace = room.requests_of(job.model)
    slo = Slo(ttft_seconds=job.manifest.ttft_seconds, tpot_seconds=job.manifest.tpot_seconds)
    arms = []
    for each in block.together:
        tier = room.ladders[job.model].tier(each.tier)
        load = Load(
            backends=targets_of(tier),
            model=tier.model,
            requests=requests,
            slo=slo,
            trace=trace,
            request_seconds=room.request_seconds,
            # Who serves clients as well never rests.
            rest_seconds=0.0 if job.own_capacity else REST_SECONDS,
        )
        arms.append((BlockPlan.of(each.plan), load))
    try:
        return room.together(arms, heart.objection)
    except Aborted:
        return None


def _broken_off(room: LoadRoom, block: Block, heart: Heart) -> str:
    why = heart.why
    assert why is not None, "nothing else breaks a block off"
    if why.lost:
        log.error("block %d of job %s is somebody else's by now", block.number, block.job_id)
        return "lost"
    if why.ending is None:
        give_back(room.db, block)
        return "given_back"
    return _end(room, block, why.ending.state, why.ending.reason)


def _end(room: LoadRoom, block: Block, state: JobState, reason: str) -> str:
    log.warning("job %s ends: %s: %s", block.job_id, state, reason)
    break_off(room.db, block, Ending(state=state, reason=reason), now=time.time())
    return state.value


def give_up(room: LoadRoom, job_id: str, why: str) -> None:
    """End a job of which nobody can say what is next, so that it holds up no other."""
    end_job(room.db, job_id, JobState.FAILED, reason=f"what is next cannot be told: {why}", now=time.time())


def _objection(room: LoadRoom, job: Job) -> Ending | None:
    """Why the job may not go on: the configuration changed under it, or a backend came into service."""
    if (gone := _gone(room, job)) is not None:
        return gone
    if not job.own_capacity and (serving := in_service(room.db, room.ladders, job.model)):
        return Ending(state=JobState.ABORTED, reason=f"a backend came into service: {'; '.join(serving)}")
    return None


def _gone(room: LoadRoom, job: Job) -> Ending | None:
    """Why the configuration has no place for the job any more."""
    ladder = room.ladders.get(job.model)
    if ladder is None:
        return Ending(state=JobState.FAILED, reason=f"no model is called {job.model!r} any more")
    if changed := unlike(job.manifest, ladder):
        return Ending(state=JobState.FAILED, reason=changed)
    return None


def _clients(room: LoadRoom, job: Job) -> Clients | None:
    """Those to be watched, looked at for the first time; raises Unwatchable."""
    if not job.own_capacity:
        return None
    promises = {model: slo.ttft_seconds for model, slo in room.slo.items()}
    clients = Clients(addresses=room.watch, promises=promises)
    clients.begin()
    return clients


def _unequal(job: Job, blocks: Sequence[Block], figures: Sequence[BlockFigures]) -> str:
    """Why the arms were not under equal load: clients used their backends meanwhile."""
    if not job.own_capacity:
        return ""
    clients = sum(block.clients for block in blocks)
    offered = sum(each.offered for each in figures)
    if clients <= UNEQUAL_SHARE * offered:
        return ""
    return f"clients had {clients:,} answers beside {offered:,} requests of load, so that it was not equal"


def _figures(block: Block) -> BlockFigures:
    assert block.figures is not None, "it is done"
    return BlockFigures.of(block.figures)
