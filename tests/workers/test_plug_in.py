"""An evaluator of another package in a real worker: its pairs are evidence like any other's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from service.store.sql.database import Database
from service.store.traffic.ledger import account
from tests.conftest import ValkeyServer
from tests.plug_in import documented, install_example
from tests.workers.celery_parts import CeleryParts, configuration, until
from tests.workers.scripted import Reply, Script, ScriptedBackend
from tests.workers.walk import exchange, question, ship

pytestmark = pytest.mark.acceptance


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[CeleryParts]:
    environ = {"TIERGATE_CONFIG": str(tmp_path / "tiergate.yaml"), "PYTHONPATH": str(tmp_path / "site")}
    made = CeleryParts(directory=tmp_path, environ=environ)
    yield made
    made.close()


def test_a_worker_scores_by_an_installed_evaluator(
    tmp_path: Path,
    valkey: ValkeyServer,
    db: Database,
    sqlite_url: str,
    parts: CeleryParts,
    backend: Callable[[Script], ScriptedBackend],
) -> None:
    install_example(tmp_path / "site")
    baseline = backend(lambda asked: Reply(text="Dear guests, welcome."))
    candidate = backend(lambda asked: Reply(text="Dear [Your Name], welcome."))
    configuration(
        tmp_path,
        redis_url=valkey.url,
        database_url=sqlite_url,
        ladder=[
            {"tier": "bf16", "backends": ["http://127.0.0.1:9"], "shadow": [baseline.url]},
            {"tier": "w4a16", "backends": [candidate.url]},
        ],
        **yaml.safe_load(documented("yaml")),
    )
    ship(
        valkey.url,
        [exchange(question(f"Write to guest {n}."), "Dear guests, welcome.") for n in range(4)],
    )
    worker = parts.worker()
    until(lambda: account(db).processed == 4, told=lambda: worker.log)
    scored = {(each.arm, each.scored) for each in account(db).pairs if each.evaluator == "no_placeholders"}
    assert scored == {("candidate", 4), ("control", 4)}
    with db.read() as connection:
        labels = connection.exec_driver_sql(
            "SELECT DISTINCT arm, baseline_label, candidate_label FROM units JOIN pairs USING (unit_id) "
            "WHERE evaluator = 'no_placeholders' ORDER BY arm"
        ).all()
    assert [tuple(row) for row in labels] == [
        ("candidate", "complete", "left_open"),
        ("control", "complete", "complete"),
    ]
