"""A dashboard over the ladder that `tests.store.load.test_job_terms` begins jobs of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from service.approval.config import Schedule
from service.settings.cron import cron
from service.settings.due import next_due
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import LiveApi
from tests.dashboard.visiting import dashboard_over
from tests.store.load.test_job_terms import ladder, terms

MONDAYS = Schedule(
    cron="0 3 * * 1",
    timezone="Asia/Shanghai",
    next_after=partial(next_due, cron("0 3 * * 1"), "Asia/Shanghai"),
)


@contextmanager
def working_site(
    db: Database, captures: Captures, *, shadow: bool = True, **config: Any
) -> Iterator[LiveApi]:
    """Jobs of model `m` can begin; without `shadow` its load would go to backends that serve."""
    own = ladder(shadow=shadow)
    with dashboard_over(
        db, captures, **{"ladder": own, "jobs": terms(ladders={"m": own}), "schedule": MONDAYS, **config}
    ) as api:
        yield api
