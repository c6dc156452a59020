"""How old the evidence of each tier is."""

from __future__ import annotations

from service.store.scored.latest import latest_pairs
from service.store.sql.database import Database
from tests.approval.live import MODEL, add_pairs


def test_it_is_the_time_of_the_latest_pair_of_each_tier(database: Database) -> None:
    add_pairs(database, "w8a8", epoch="e1", clean=3)
    add_pairs(database, "w8a8", epoch="e0", clean=5, criteria=("refusal",))
    add_pairs(database, "bf16", epoch="e1", clean=9, arm="control")
    found = latest_pairs(database, MODEL, ["bf16", "w8a8", "w4a16"])
    assert found == {"w8a8": 1_700_000_004.0}, "controls are no pairs of a candidate, w4a16 has none"
    assert latest_pairs(database, "another", ["w8a8"]) == {}
