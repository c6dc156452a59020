"""What a tier's evidence belongs to, and what it belonged to before."""

from __future__ import annotations

import json
from dataclasses import replace

from service.store.sql.engine_tables import epoch_facts
from service.store.sql.schema import epochs
from service.store.verdicts.observations import record_look
from tests.approval.live import MODEL, LiveApi
from tests.engines.test_pages import vllm_facts

FACTS = vllm_facts("auto", 46592)
PATH = f"/api/v1/models/{MODEL}/tiers/w8a8/epochs"


def add_epoch(api: LiveApi, epoch: str, facts: object, *, at: float, attempt: int | None = None) -> None:
    place = {"model": MODEL, "tier": "w8a8", "epoch": epoch}
    with api.db.write() as connection:
        connection.execute(epoch_facts.insert(), [{**place, "facts": json.dumps(facts), "first_seen": at}])
        if attempt is not None:
            connection.execute(epochs.insert(), [{**place, "attempt": attempt}])


def test_every_epoch_is_told_with_what_it_was_and_its_number(api: LiveApi) -> None:
    add_epoch(api, "old", {"engines": {"tier": {"version": "0.31.0"}}}, at=1_700_000_000.0, attempt=1)
    add_epoch(api, "epoch-w8a8", {"engines": {"tier": {"version": "0.32.0"}}}, at=1_700_000_600.0)
    told = api.client().get(PATH).json()
    assert (told["model"], told["tier"], told["epoch"]) == (MODEL, "w8a8", "epoch-w8a8")
    assert told["unsettled"] is None
    assert told["epochs"] == [
        {
            "epoch": "epoch-w8a8",
            "current": True,
            "attempt": None,
            "first_seen": "2023-11-14T22:23:20Z",
            "facts": {"engines": {"tier": {"version": "0.32.0"}}},
        },
        {
            "epoch": "old",
            "current": False,
            "attempt": 1,
            "first_seen": "2023-11-14T22:13:20Z",
            "facts": {"engines": {"tier": {"version": "0.31.0"}}},
        },
    ]


def test_a_tier_that_is_unsettled_says_why(api: LiveApi) -> None:
    told = {(MODEL, "w8a8"): {"http://b:1": FACTS, "http://c:1": replace(FACTS, version="0.33.0")}}
    record_look(api.db, told, now=1_700_000_000.0)
    assert "vllm 0.33.0" in api.client().get(PATH).json()["unsettled"]


def test_the_baseline_has_epochs_of_its_control_and_an_unknown_tier_none(sqlite_api: LiveApi) -> None:
    assert sqlite_api.client().get(PATH.replace("w8a8", "bf16")).json()["epochs"] == []
    assert sqlite_api.client().get(PATH.replace("w8a8", "w8a9")).status_code == 404
