"""What verdicts are asked under, from settings and a database: the same for whoever asks on this machine.

Apart from `service.settings`, which the proxy loads: the store comes with it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from service.decision.epoch import epoch_id
from service.settings.values import Settings
from service.store.kept import corpus_members
from service.store.load.job_terms import JobTerms
from service.store.load.manifest import MOST_BLOCKS
from service.store.sql.database import Database
from service.store.verdicts.current_epochs import CurrentEpochs, live_epochs
from service.store.verdicts.standing import Question


def epochs_of(settings: Settings, db: Database) -> CurrentEpochs:
    """The epochs that count, as of every time that they are asked for."""
    return live_epochs(db, settings.ladders, settings.declared)


def question_of(settings: Settings, db: Database) -> Question:
    """What verdicts are asked under."""
    epochs = epochs_of(settings, db)
    return Question(
        policy=settings.policy,
        epoch_of=epochs.epoch_of,
        attribution_of=epochs.attribution_of,
        control_on_serving=settings.shadow.on_serving,
        measured_seconds=settings.promotion.measured_seconds,
        versions={evaluator.name: evaluator.version for evaluator in settings.evaluators},
    )


def job_terms_of(settings: Settings, db: Database) -> JobTerms:
    """What shadow jobs are held to."""
    epochs = epochs_of(settings, db)

    def corpus_of(model: str) -> Mapping[str, Any]:
        found = corpus_members.manifest(
            db,
            model=model,
            name=settings.corpus.use,
            per_stratum=settings.corpus.plan.per_stratum,
            now=time.time(),
        )
        strata: dict[str, dict[str, int]] = {}
        for each in found.strata:
            known = strata.setdefault(each.stratum, {"seen": 0, "requests": 0})
            known["seen"] += each.seen
            known["requests"] += each.members
        # One digest tells whether thousands of members are the same, and tenants are nobody's business.
        return {
            "corpus": found.name,
            "digest": found.digest,
            "requests": len(found.members),
            "bytes": found.size,
            "strata": strata,
        }

    def has_requests(model: str) -> bool:
        plan = settings.corpus.plan
        return corpus_members.has_any(
            db, model=model, name=settings.corpus.use, per_stratum=plan.per_stratum, now=time.time()
        )

    return JobTerms(
        ladders=settings.ladders,
        plan=replace(
            settings.shadow_job.plan,
            blocks=max(
                settings.shadow_job.plan.blocks, min(MOST_BLOCKS, settings.policy.load_runs.least_blocks)
            ),
        ),
        slo=settings.slo,
        money=asdict(settings.money),
        policy_digest=epoch_id(asdict(settings.policy)),
        evaluators={evaluator.name: evaluator.version for evaluator in settings.evaluators},
        epoch_of=epochs.epoch_of,
        corpus_of=corpus_of,
        has_requests=has_requests,
    )
