"""Shadow jobs in tests: engines of declared speed, a corpus, a configuration, and the pieces that run it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from service.settings import Settings, load
from service.settings.questions import job_terms_of
from service.store.kept.corpus import CorpusPlan, Drawn, Place, seal_request, take_in
from service.store.load.job_terms import begin
from service.store.load.jobs import Cause, Job, read_job
from service.store.scored.pairs import record
from service.store.scored.units import Arm, PairRow, Unit
from service.store.sql.database import Database
from tests.leash import Leashed
from tests.patience import PATIENCE
from tests.workers.celery_parts import configuration
from tests.workers.walk import KEYRING, MODEL
from workers.shadow_job import LoadRoom, run_load_block, turn

ENGINE = Path(__file__).with_name("load_engine.py")
CORPUS = "by-hand"
PATIENT = {"ttft": f"{PATIENCE:g}s", "tpot": "300ms"}
"""A first token is never late, and so a fiftieth of that is no lag of the generator's, on any machine."""
IMPATIENT = {"ttft": "1500ms", "tpot": "300ms"}


@contextmanager
def engine(**told: float) -> Iterator[str]:
    """URL of a server of declared speed, in a process of its own."""
    arguments = [part for name, value in told.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    process = Leashed(
        [sys.executable, str(ENGINE), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], PATIENCE)[0], "the engine does not start"
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.communicate()


@dataclass(kw_only=True)
class Engines:
    """Started one by one, ended together."""

    stack: ExitStack

    def __call__(self, **told: float) -> str:
        return self.stack.enter_context(engine(**told))


def fill_corpus(db: Database, *, requests: int = 12) -> None:
    """Requests as an import brings them."""
    place = Place(model=MODEL, name=CORPUS, stratum="short", tenant="t")
    drawn = []
    for number in range(requests):
        body = json.dumps(
            {"model": MODEL, "messages": [{"role": "user", "content": f"question {number}"}]}
        ).encode()
        digest = f"{number:064x}"
        drawn.append(
            Drawn(
                place=place,
                digest=digest,
                original=digest,
                rank=number / requests,
                blob=seal_request(
                    place,
                    digest=digest,
                    path="/v1/chat/completions",
                    body=body,
                    conversation=None,
                    at=0.0,
                    keyring=KEYRING,
                ),
            )
        )
    assert take_in(db, CorpusPlan(), drawn) == requests


def break_answers(
    db: Database, *, epoch: str, broken: int, of: int = 400, begun: float = 1_700_000_000.0
) -> None:
    """Pairs from mirrored traffic, of which the candidate w8a8 broke so many."""
    for number in range(of):
        name, at = f"c{number}", begun + number
        unit = Unit(
            capture_id=name,
            model=MODEL,
            tier="w8a8",
            arm=Arm.CANDIDATE,
            evaluator="structured_output",
            version="1",
            epoch=epoch,
            conversation=f"talk {number}",
            stratum="short",
            tenant="t",
            digest=f"digest {number}",
            counted=True,
            rows=(PairRow(outcome="scored", baseline_passed=True, candidate_passed=number >= broken),),
            at=at,
        )
        record(db, capture_id=name, owner="w", units=[unit], at=at)


def settings_of(
    directory: Path,
    *,
    redis_url: str,
    database_url: str,
    tiers: Sequence[tuple[str, str, float]],
    plan: dict[str, Any],
    slo: Mapping[str, str] = PATIENT,
    **more: Any,
) -> Settings:
    """A configuration whose baseline serves from nowhere; tiers are (name, URL for load, price)."""
    (baseline, url, price), *candidates = tiers
    ladder: list[dict[str, Any]] = [
        {
            "tier": baseline,
            "backends": ["http://127.0.0.1:9"],
            "shadow": [url],
            "price_per_hour": price,
        },
        *({"tier": name, "backends": [url], "price_per_hour": price} for name, url, price in candidates),
    ]
    path = configuration(
        directory,
        redis_url=redis_url,
        database_url=database_url,
        ladder=ladder,
        corpus={"use": CORPUS},
        policy={"load_runs": {"slo_margin": "20pp"}, **more.pop("policy", {})},
        shadow_job=plan,
        **more,
    )
    promised = f"slo: {{ttft: {slo['ttft']}, tpot: {slo['tpot']}}}"
    text = path.read_text().replace("ladder:", f"{promised}\n    ladder:", 1)
    path.write_text(text)
    return load(path, dict(os.environ))


def begin_by_hand(
    settings: Settings, db: Database, now: float, *, own_capacity: bool = False, **plan: Any
) -> Job:
    """A job as a person begins it; `plan` has what differs from the configuration."""
    configured = settings.shadow_job.plan
    changed = replace(configured, **plan)
    return begin(
        db,
        job_terms_of(settings, db),
        MODEL,
        cause=Cause.REQUEST,
        actor="ann",
        now=now,
        own_capacity=own_capacity,
        plan=changed,
    )


def run_all(room: LoadRoom, job: Job, *, most: int = 200) -> Job:
    """The job's blocks, one after the other in this process, until it is over."""
    turn(room, job.job_id)
    for number in range(most):
        if read_job(room.db, job.job_id).state.over:
            break
        run_load_block(room, job.job_id, number)
    return read_job(room.db, job.job_id)
