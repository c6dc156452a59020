"""`tiergate api` tells people when the schedule of its file begins the next shadow job."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
import yaml

from service.cli.api import compose
from service.settings import load
from service.store.redis.captures import open_captures
from service.store.sql.database import open_database
from tests.approval.live import serving
from tests.conftest import ValkeyServer
from tests.dashboard.visiting import words_of


@pytest.mark.parametrize(
    ("planned", "words"),
    [
        ({"cron": "0 3 * * 1", "timezone": "Asia/Shanghai"}, "0 3 * * 1 Asia/Shanghai"),
        ({}, "No schedule is set"),
    ],
)
def test_the_page_of_jobs_has_it(
    planned: dict[str, str], words: str, valkey: ValkeyServer, tmp_path: Path
) -> None:
    ladder = [{"tier": tier, "backends": ["http://127.0.0.1:9"]} for tier in ("bf16", "w8a8")]
    file = tmp_path / "tiergate.yaml"
    file.write_text(yaml.safe_dump({"models": {"qwen": {"ladder": ladder}}, "shadow_job": planned}))
    settings = load(file, {"TIERGATE_REDIS_URL": valkey.url})
    database = open_database(settings.database_url)
    captures = open_captures(valkey.url, timeout=2)
    try:
        with serving(compose(settings, database, captures)) as url:
            page = httpx.get(f"{url}/jobs", headers={"Accept": "text/html"}, trust_env=False, timeout=30)
    finally:
        captures.close()
        database.close()
    assert page.status_code == 200
    assert words in words_of(page.text)
    assert ("03:00 Asia/Shanghai" in words_of(page.text)) is bool(planned)
