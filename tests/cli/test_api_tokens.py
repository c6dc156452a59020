"""`tiergate api` takes the tokens of an issuer that its file names."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from service.cli.api import compose
from service.settings import load
from service.store.redis.captures import open_captures
from service.store.sql.database import open_database
from tests.approval.issuer import AUDIENCE, SUBJECT, Issuer
from tests.approval.live import serving
from tests.conftest import ValkeyServer


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    started = Issuer()
    yield started
    started.stop()


def test_a_file_that_names_an_issuer_is_enough(issuer: Issuer, valkey: ValkeyServer, tmp_path: Path) -> None:
    ladder = [{"tier": tier, "backends": ["http://127.0.0.1:9"]} for tier in ("bf16", "w8a8")]
    rule = {"claim": "sub", "equals": SUBJECT, "scope": "read", "models": ["qwen"]}
    taken = {"issuer": issuer.url, "audience": AUDIENCE, "scopes": [rule]}
    file = tmp_path / "tiergate.yaml"
    file.write_text(yaml.safe_dump({"models": {"qwen": {"ladder": ladder}}, "api": {"oidc": [taken]}}))
    settings = load(file, {"TIERGATE_REDIS_URL": valkey.url})
    database = open_database(settings.database_url)
    captures = open_captures(valkey.url, timeout=2)
    try:
        with serving(compose(settings, database, captures)) as url:
            bearer = {"Authorization": f"Bearer {issuer.token(time.time())}", "X-Forwarded-For": "10.0.0.1"}
            with httpx.Client(base_url=url, headers=bearer, trust_env=False, timeout=30) as client:
                assert client.get("/api/v1/models/qwen/ladder").status_code == 200
                assert client.get("/api/v1/models").json()["code"] == "model_not_allowed"
                answer = client.put("/api/v1/models/qwen/tiers/w8a8/approval", json={})
                assert answer.json()["code"] == "insufficient_scope"
    finally:
        captures.close()
        database.close()
