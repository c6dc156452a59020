"""Names of the ledger's counters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.store.redis.counters import Count, Dropped, Skipped, ledger_key, split_ledger_key


@given(model=st.text(max_size=30), stratum=st.text(min_size=1, max_size=30))
def test_names_come_apart_as_they_were_put_together(model, stratum):
    for count, detail in [
        (Count.SEEN, ""),
        (Count.SKIPPED, Skipped.TOO_LARGE),
        (Count.DROPPED, Dropped.STORE_DOWN),
        (Count.TRAFFIC, stratum),
    ]:
        key = ledger_key(count, model, detail)
        assert split_ledger_key(key) == (count, model, detail)
        assert key.count("|") == (2 if detail else 1)


@pytest.mark.parametrize(
    ("count", "detail"),
    [
        (Count.SEEN, "too_large"),
        (Count.SKIPPED, ""),
        (Count.SKIPPED, "store_down"),
        (Count.DROPPED, "too_large"),
        (Count.TRAFFIC, ""),
    ],
)
def test_a_detail_that_is_missing_unknown_or_out_of_place_is_refused(count, detail):
    with pytest.raises(ValueError, match=r"detail|stratum|not a valid"):
        ledger_key(count, "m", detail)


@pytest.mark.parametrize("key", ["", "seen", "seen|m|x", "lost|m", "skipped|m", "skipped|m|x", "seen|a b"])
def test_what_is_not_a_counter_is_refused(key):
    with pytest.raises(ValueError, match=r"not a ledger counter|not a valid"):
        split_ledger_key(key)
