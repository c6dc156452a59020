"""A message that could not be acknowledged ends the connection it came by.

Celery logs that and goes on. To the transport the message is then under way for good: a worker that takes one
at a time takes no other ever again. Connected anew, none is under way, and the message comes back in time to
somebody who finds its captures held or settled.
"""

from __future__ import annotations

import logging
from typing import Any

from celery import Celery, bootsteps
from kombu.transport import virtual


class Insisting(virtual.Message):
    """Raises what went wrong when it is acknowledged or rejected, whatever Celery would pass over."""

    def ack_log_error(self, logger: logging.Logger, errors: object, multiple: bool = False) -> None:
        super().ack_log_error(logger, (), multiple=multiple)  # type: ignore[no-untyped-call]

    def reject_log_error(self, logger: logging.Logger, errors: object, requeue: bool = False) -> None:
        super().reject_log_error(logger, (), requeue=requeue)  # type: ignore[no-untyped-call]


class _Insist(bootsteps.StartStopStep):  # type: ignore[misc]
    """With every connection anew."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, parent: Any) -> None:
        parent.task_consumer.channel.Message = Insisting


def insist(app: Celery) -> None:
    """Let messages of the app's workers be of that kind."""
    app.steps["consumer"].add(_Insist)
