"""Reports as texts: the first that is kept of a job stays."""

from __future__ import annotations

from service.store.database import Database
from service.store.reports import keep_report, read_report


def test_the_first_stays(database: Database) -> None:
    assert read_report(database, "j1") is None
    text = '{"a": "中文 ' + "x" * 100_000 + '"}'
    assert keep_report(database, "j1", model="m", ended_at=1.0, made_at=2.0, document=text)
    assert not keep_report(database, "j1", model="m", ended_at=1.0, made_at=3.0, document="{}")
    assert read_report(database, "j1") == text
    assert read_report(database, "j2") is None
