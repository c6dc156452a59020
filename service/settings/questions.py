"""What verdicts are asked under, from settings and a database: the same for whoever asks on this machine.

Apart from `service.settings`, which the proxy loads: the store comes with it.
"""

from __future__ import annotations

from service.settings.values import Settings
from service.store.current_epochs import CurrentEpochs, live_epochs
from service.store.database import Database
from service.store.standing import Question


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
