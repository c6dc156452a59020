"""What the alerts on the ladder ask for is on the page of an API or of a guard, labels included."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families

from service.store.decided.holds import HoldKind, begin_hold
from service.store.outgoing.callbacks import CallbackState, ask, due, end
from service.store.sql.database import Database
from tests.approval.live import MODEL, LiveApi
from workers.metrics import GUARD_ACTIONS, GUARD_RUNS
from workers.tasks import WATCH_ROUTES
from workers.watching import ACTIONS

RULES = Path(__file__).parents[2] / "deploy/prometheus/ladder.yaml"
METRIC = re.compile(r"\b(tiergate_[a-z_]+)(?:\{([^}]*)\})?")
OF_THE_GUARD = {GUARD_RUNS: {"task", "ending"}, GUARD_ACTIONS: {"action", "model"}}


def asked() -> list[tuple[str, dict[str, str]]]:
    """Metrics with the labels they are selected by."""
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    return [
        (name, dict(re.findall(r'(\w+)=~?"([^"]*)"', selector)))
        for rule in rules
        for name, selector in METRIC.findall(rule["expr"])
    ]


def give_up_a_message(db: Database) -> None:
    ask(
        db,
        tool="webhook:chat",
        key=("k",),
        delivery="",
        model=MODEL,
        tier="w8a8",
        basis="quality",
        place={},
        now=1.0,
        reopens=frozenset(),
    )
    [callback] = due(db, 1.0, limit=1, tools=("webhook:chat",))
    end(db, callback, state=CallbackState.GIVEN_UP, at=1.0, problem="nobody answers")


def test_every_series_it_asks_for_exists(sqlite_api: LiveApi) -> None:
    sqlite_api.accept("w8a8")
    place = {"model": MODEL, "tier": "w8a8", "epoch": "epoch-w8a8"}
    begin_hold(sqlite_api.db, **place, kind=HoldKind.FROZEN, reason="why", at=1.0, actor="guard")
    give_up_a_message(sqlite_api.db)
    page = sqlite_api.client().get("/metrics").text
    samples = [s for family in text_string_to_metric_families(page) for s in family.samples]
    for name, labels in asked():
        if name in OF_THE_GUARD:
            assert set(labels) <= OF_THE_GUARD[name]
            assert set(labels.get("action", ACTIONS[0]).split("|")) <= set(ACTIONS)
            assert labels.get("task", WATCH_ROUTES) == WATCH_ROUTES
        else:
            assert any(s.name == name and labels.items() <= s.labels.items() for s in samples), (name, labels)


def test_messages_that_were_given_up_are_told_by_their_receiver(sqlite_api: LiveApi) -> None:
    assert ("tiergate_callbacks", {"state": "given_up"}) in asked()
    give_up_a_message(sqlite_api.db)
    page = sqlite_api.client().get("/metrics").text
    assert 'tiergate_callbacks{state="given_up",tool="webhook:chat"} 1.0' in page


def test_what_holds_a_tier_is_a_gauge(sqlite_api: LiveApi) -> None:
    place = {"model": MODEL, "tier": "w8a8", "epoch": "epoch-w8a8"}
    begin_hold(sqlite_api.db, **place, kind=HoldKind.FROZEN, reason="why", at=1.0, actor="guard")
    page = sqlite_api.client().get("/metrics").text
    held = {
        (s.labels["tier"], s.labels["kind"]): s.value
        for family in text_string_to_metric_families(page)
        for s in family.samples
        if s.name == "tiergate_rung_held"
    }
    assert held["w8a8", "frozen"] == 1
    assert held["w8a8", "rolled_back"] == held["w4a16", "frozen"] == 0
    assert ("bf16", "frozen") not in held
