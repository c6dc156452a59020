"""What a model's load is made of: its corpus in the mix of its traffic, or a trace in its own order."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from service.settings.questions import job_terms_of
from service.store.kept.corpus import CorpusPlan, Drawn, Place, seal_request, take_in
from service.store.sql.corpus_tables import corpus_strata
from service.store.sql.database import Database
from tests.workers.load_walk import settings_of
from tests.workers.walk import KEYRING, MODEL
from workers.load_room import requests_of

PLACE = Place(model=MODEL, name="kept", stratum="short", tenant="t")


def drawn(
    text: str, place: Place = PLACE, *, at: float | None = None, path: str = "/v1/chat/completions"
) -> Drawn:
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": text}]}).encode()
    digest = f"{text}-digest"
    blob = seal_request(
        place, digest=digest, path=path, body=body, conversation=None, at=0.0, keyring=KEYRING
    )
    return Drawn(place=place, digest=digest, original=digest, rank=len(text) / 100, arrived_at=at, blob=blob)


def texts(db: Database) -> tuple[list[str], list[float]]:
    requests, times = requests_of(db, KEYRING, MODEL, "kept", 20)
    return [str(request.body["messages"][0]["content"]) for request in requests], list(times)  # type: ignore[index,call-overload]


def test_a_request_stands_there_as_often_as_it_weighs(db: Database) -> None:
    rare, common = PLACE, replace(PLACE, stratum="long")
    take_in(db, CorpusPlan(), [drawn("rare", rare), drawn("common", common), drawn("usual", common)])
    with db.write() as connection:
        connection.execute(update(corpus_strata).where(corpus_strata.c.stratum == "long").values(seen=10))
    found, times = texts(db)
    assert Counter(found) == {"rare": 1, "common": 5, "usual": 5}
    assert times == []


def test_a_trace_goes_in_its_own_order_with_its_own_times(db: Database) -> None:
    take_in(db, CorpusPlan(), [drawn("third", at=9.5), drawn("first", at=0.0), drawn("second", at=2.0)])
    assert texts(db) == (["first", "second", "third"], [0.0, 2.0, 9.5])


def test_what_is_no_request_is_left_out_and_told(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    take_in(db, CorpusPlan(), [drawn("good"), drawn("odd", path="/v1/embeddings")])
    assert texts(db)[0] == ["good"]
    assert "a request of the corpus cannot be sent" in caplog.text


def test_an_empty_corpus_is_no_load(db: Database) -> None:
    assert texts(db) == ([], [])


def test_a_manifest_tells_strata_with_what_was_seen_of_them_and_no_tenant(
    db: Database, tmp_path: Path, sqlite_url: str
) -> None:
    settings = settings_of(
        tmp_path,
        redis_url="redis://127.0.0.1:9/0",
        database_url=sqlite_url,
        tiers=[("bf16", "http://127.0.0.1:9", 1.0), ("w8a8", "http://127.0.0.1:10", 1.0)],
        plan={},
        policy={"load_runs": {"blocks": 12}},
    )
    place = replace(PLACE, name=settings.corpus.use)
    take_in(db, CorpusPlan(), [drawn("one", place), drawn("other", replace(place, tenant="secret-tenant"))])
    terms = job_terms_of(settings, db)
    assert [terms.has_requests(model) for model in (MODEL, "another")] == [True, False]
    assert terms.plan.blocks == 12, "as many as the policy asks of a load run"
    told = terms.corpus_of(MODEL)
    assert told["requests"] == 2
    assert told["strata"] == {"short": {"seen": 2, "requests": 2}}
    assert "secret-tenant" not in json.dumps(told)
    assert "members" not in told
