"""Advice about capacity of a whole job: from its own blocks, whatever later jobs say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from service.report.document import from_json, to_json
from service.report.gathering.advice import advised
from service.report.gathering.kept import report_of
from service.store.load.load_blocks import read_blocks
from service.store.sql.database import Database, open_database
from tests.report.gathering.jobs import NOW, job_over, run, sources


@pytest.fixture
def db(sqlite_url: str) -> Iterator[Database]:
    opened = open_database(sqlite_url)
    yield opened
    opened.close()


def test_a_job_is_advised_about_by_its_own_curve(db: Database) -> None:
    job = job_over(db, *run())
    report = report_of(sources(db), job.job_id, now=NOW + 90_000)
    found = {each.name: each.capacity for each in report.tiers}
    for told in found.values():
        assert told is not None
        assert told.batch is not None
        assert told.batch.start.reason
        assert told.batch.cheapest is not None, "its tiers have prices"
        assert told.prefix is None, "no engine told counters"
        assert [each.pattern for each in told.patterns] == ["idle cache", "empty batch", "blunt weights"]
        assert "memory" in told.not_judged
    assert from_json(to_json(report)).tiers == report.tiers


def test_a_tier_that_is_gone_or_was_not_measured_is_not_advised_about(db: Database) -> None:
    job = job_over(db, *run())
    ladder = sources(db, names=("bf16",)).ladders["m"]
    blocks = read_blocks(db, job.job_id, columns=True)
    assert advised(db, ladder, job, blocks, "w8a8", verdict=None, now=NOW) is None
    assert advised(db, ladder, job, blocks, "int2", verdict=None, now=NOW) is None
    assert advised(db, ladder, job, [], "bf16", verdict=None, now=NOW) is None
