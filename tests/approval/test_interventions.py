"""Skipping a rejected tier and restoring alpha: who may, when, what it changes, what is logged."""

from __future__ import annotations

from typing import Any

import httpx

from service.approval.kept import SECONDS
from service.decision.multiplicity import attempt_alpha
from service.store.decided.decisions import read, verify
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from tests.approval.live import ENOUGH, MODEL, WIDE, LiveApi, add_pairs, live_api

TIERS = "/api/v1/models/org%2Fmodel/tiers"


def verdict(api: LiveApi, tier: str) -> dict[str, Any]:
    answer: dict[str, Any] = api.client().get(f"{TIERS}/{tier}/verdict").json()
    return answer


def why(api: LiveApi, tier: str) -> str:
    steps = api.client().get(f"{TIERS}/{tier}/verdict/why").json()["steps"]
    return " ".join(step["sentence"] for step in steps)


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_a_reason_with_what_no_database_holds_is_kept_without_it(api: LiveApi) -> None:
    api.record("w8a8", harm=60)
    admin = api.client("admin")
    for path in (f"{TIERS}/w8a8/skip", f"{TIERS}/w8a8/reject"):
        answer = admin.post(path, json={"reason": "a\0b 😀 \u202e"})
        assert answer.status_code == 200, answer.text
    assert [entry.detail["reason"] for entry in read(api.db, MODEL)] == ["a\ufffdb 😀 \u202e"] * 2
    half = admin.post(
        f"{TIERS}/w8a8/skip", content=b'{"reason": "\\ud800"}', headers={"Content-Type": "application/json"}
    )
    assert half.status_code == 422
    assert verify(api.db) is None


def test_a_rejected_tier_is_skipped_by_an_admin_and_the_tiers_above_share_alpha(api: LiveApi) -> None:
    api.record("w8a8", harm=60)
    api.record("w4a16", clean=3 * ENOUGH)
    assert verdict(api, "w4a16")["reasons"] == ["rung_below_not_accepted"]
    said = {"reason": "its kernel is at fault, not the precision"}
    assert code(api.client("approve").post(f"{TIERS}/w8a8/skip", json=said)) == (403, "insufficient_scope")
    assert api.client("admin").post(f"{TIERS}/w8a8/skip", json={}).status_code == 422
    admin = api.client("admin")
    answer = admin.post(f"{TIERS}/w8a8/skip", json=said)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["changed"], answer.json()["skipped"]) == (True, True)
    assert admin.post(f"{TIERS}/w8a8/skip", json=said).json()["changed"] is False
    above = verdict(api, "w4a16")
    assert above["decision"] == "accept"
    assert above["skipped_below"] == ["w8a8"]
    assert above["alpha"] == attempt_alpha(WIDE.alpha_accept / 2, 1)
    assert above["reasons"][-1] == "after_skipped: w8a8, so alpha_accept is shared by 2 tiers"
    assert "An admin decided to skip w8a8" in why(api, "w4a16")
    skipped = verdict(api, "w8a8")
    assert skipped["decision"] == "reject"
    assert "by test-admin at 2023-" in skipped["skipped"]
    assert skipped["reasons"][-1].endswith(said["reason"])
    assert admin.delete(f"{TIERS}/w8a8/skip", params={"reason": "no"}).json()["changed"] is True
    assert admin.delete(f"{TIERS}/w8a8/skip").json()["changed"] is False
    assert verdict(api, "w4a16")["reasons"] == ["rung_below_not_accepted"]
    assert [(entry.action, entry.tier, entry.detail["reason"]) for entry in read(api.db, MODEL)] == [
        ("skip", "w8a8", said["reason"]),
        ("skip_undone", "w8a8", "no"),
    ]
    assert verify(api.db) is None


def test_only_a_tier_that_was_given_up_and_that_others_wait_for_is_skipped(sqlite_api: LiveApi) -> None:
    admin = sqlite_api.client("admin")
    said = {"reason": "impatience"}
    assert code(admin.post(f"{TIERS}/w8a8/skip", json=said)) == (409, "not_rejected")
    sqlite_api.record("w4a16", harm=60)
    assert code(admin.post(f"{TIERS}/w4a16/skip", json=said)) == (409, "nothing_to_skip")
    assert code(admin.post(f"{TIERS}/bf16/skip", json=said)) == (409, "baseline")
    assert read(sqlite_api.db, MODEL) == []


def test_a_skip_ends_with_the_epoch_and_restored_alpha_is_shown(
    database: Database, captures: Captures
) -> None:
    epochs = {"bf16": "e0", "w8a8": "e1", "w4a16": "f1"}
    with live_api(database, captures, epoch_of=lambda model, tier: epochs[tier]) as api:
        admin = api.client("admin")
        add_pairs(database, "w8a8", epoch="e1", harm=60)
        add_pairs(database, "w4a16", epoch="f1", clean=3 * ENOUGH)
        assert admin.post(f"{TIERS}/w8a8/skip", json={"reason": "r"}).status_code == 200
        assert verdict(api, "w4a16")["decision"] == "accept"
        epochs["w8a8"] = "e2"
        api.clock.at += SECONDS  # in production an epoch changes by a row that is committed
        assert verdict(api, "w4a16")["reasons"] == ["rung_below_not_accepted"]
        assert verdict(api, "w8a8")["skipped"] is None

        before = verdict(api, "w8a8")
        assert (before["attempt"], before["alpha"]) == (2, attempt_alpha(WIDE.alpha_accept, 2))
        said = {"reason": "the baseline's engine was upgraded"}
        url = f"{TIERS}/w8a8/restore-alpha"
        assert code(api.client("approve").post(url, json=said)) == (403, "insufficient_scope")
        answer = admin.post(url, json=said).json()
        assert (answer["changed"], answer["attempt"]) == (True, 1)
        assert admin.post(url, json=said).json()["changed"] is False
        after = verdict(api, "w8a8")
        assert (after["attempt"], after["alpha"]) == (1, attempt_alpha(WIDE.alpha_accept, 1))
        assert after["alpha_restored"].endswith(said["reason"])
        assert said["reason"] in why(api, "w8a8")
        assert [entry.action for entry in read(database, MODEL)] == ["skip", "restore_alpha"]
