"""The guard's schedule: kept in memory, quiet, and never ahead of a guard that is away."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from celery.beat import ScheduleEntry, Scheduler

from workers import metrics

log = logging.getLogger("tiergate.beat")

MOST_WAITING = 8
"""Messages in the queue; beyond, an entry is left out: a guard that comes back needs each task once."""


class QuietScheduler(Scheduler):  # type: ignore[misc]
    """Celery's own, without a file (no entry is rarer than an hour) and without a log line every second."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.counts: Counter[str] = Counter()
        """Series of `metrics`, of this process."""
        super().__init__(*args, **options)

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        # Not by the producer that Celery hands over: once its channel has failed it never works again.
        try:
            if self._waiting(entry.options["queue"]) < MOST_WAITING:
                self.apply_async(entry, advance=False)
                ending = "sent"
            else:
                log.debug("%s left out: its queue is long", entry.task)
                ending = "left_out"
        except Exception as error:
            # Beat must outlive the broker; the entry is due again soon.
            log.error("%s could not be enqueued: %s", entry.task, error)
            ending = "failed"
        self.counts[metrics.series(metrics.BEAT_MESSAGES, task=entry.task, ending=ending)] += 1

    def _waiting(self, queue: str) -> int:
        with self.app.connection_or_acquire() as connection:
            return int(connection.default_channel.queue_declare(queue).message_count)
