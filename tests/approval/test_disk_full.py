"""An API whose database has no room left: what can be read is read, and a change is refused with 503."""

from __future__ import annotations

import pytest

from service.store.decided.decisions import read
from tests.approval.live import MODEL, LiveApi
from tests.conftest import FullDisk

APPROVAL = f"/api/v1/models/{MODEL}/tiers/w8a8/approval"


def test_a_change_without_room_is_refused_whole_and_possible_again_later(
    sqlite_api: LiveApi, full_disk: FullDisk, caplog: pytest.LogCaptureFixture
) -> None:
    api = sqlite_api
    api.accept("w8a8")
    client, reader = api.client("admin"), api.client()
    full_disk.is_full = True
    for _ in range(200):
        approved = client.put(APPROVAL, json={})
        if approved.status_code != 200:
            break
        revoked = client.delete(APPROVAL)
        if revoked.status_code != 200:
            approved = revoked
            break
    before = len(read(api.db, MODEL, limit=1000))
    assert approved.status_code == 503
    assert approved.json()["code"] == "store_down"
    assert approved.headers["retry-after"] == "5"
    assert "make room on its disk" in caplog.text
    for path in ("/api/v1/ledger", f"/api/v1/models/{MODEL}/tiers/w8a8/verdict", "/metrics"):
        assert reader.get(path).status_code == 200, path
    full_disk.is_full = False
    assert client.put(APPROVAL, json={}).status_code == 200
    assert len(read(api.db, MODEL, limit=1000)) >= before
