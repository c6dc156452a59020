"""The page of a tier stays small, however much it rests on: what is drawn and listed is bounded."""

from __future__ import annotations

from service.store.sql.database import Database
from tests.benchmarks.evidence_at_scale import Scale
from tests.benchmarks.tier_page import MOST_BYTES, furnish, site_over, view


def test_with_hundreds_of_strata_and_looks_it_has_less_than_300_kb(sqlite_database: Database) -> None:
    """As many rows as a million pairs leave; `tests.benchmarks.tier_page` has the million, and the time."""
    furnish(sqlite_database, Scale(pairs=40_000))
    with site_over(sqlite_database) as url:
        _, html = view(url)
    assert "stratum-001" in html
    assert 50_000 < len(html.encode()) < MOST_BYTES
