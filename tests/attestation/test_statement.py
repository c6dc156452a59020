"""The in-toto statement of a decision: what it names, and that it cannot disagree with the row inside."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from service.attestation.statement import (
    PREDICATE,
    STATEMENT,
    StatementUnusable,
    read_statement,
    statement_of,
)
from service.store.decided.chain import GENESIS, Head, Row, canonical

ARTIFACT = "ab" * 32


def row_of(**changes: Any) -> Row:
    detail = {
        "artifact": f"sha256:{ARTIFACT.upper()}",
        "expires_at": 2000.0,
        "override": False,
        "reason": "because, 因为",
        "epoch": "e1",
        "verdict": {"decision": "accept", "age_seconds": 86400.0},
        **changes.pop("detail", {}),
    }
    fields: dict[str, Any] = {
        "seq": 3,
        "at": 1000.5,
        "actor": "ci",
        "action": "approve",
        "model": "qwen3-32b",
        "tier": "w8a8",
        "detail": canonical(detail),
        "prev": GENESIS,
        "digest": "",
        **changes,
    }
    row = Row(**fields)
    return replace(row, digest=row.true_digest)


ROW = row_of()
HEAD = Head(seq=7, digest="cd" * 32)


def test_its_subjects_are_the_artifact_and_the_row_and_the_head_is_inside() -> None:
    document = json.loads(statement_of(ROW, HEAD, issued_at=1500.0))
    assert (document["_type"], document["predicateType"]) == (STATEMENT, PREDICATE)
    assert document["subject"] == [
        {"name": "qwen3-32b/w8a8", "digest": {"sha256": ARTIFACT}},
        {"name": "decision-log/3", "digest": {"sha256": ROW.digest}},
    ]
    predicate = document["predicate"]
    assert predicate["log_head"] == {"seq": 7, "digest": HEAD.digest}
    assert predicate["decision"]["reason"] == "because, 因为"
    assert predicate["evidence"] == {"age_seconds": 86400.0}


def test_what_it_says_is_read_back() -> None:
    attested = read_statement(statement_of(ROW, HEAD, issued_at=1500.0))
    assert (attested.row, attested.head, attested.issued_at) == (ROW, HEAD, 1500.0)
    assert (attested.artifact, attested.expires_at, attested.evidence_age) == (ARTIFACT, 2000.0, 86400.0)


def test_a_decision_without_an_artifact_has_its_row_as_subject() -> None:
    row = row_of(action="revoke", detail={"artifact": None, "verdict": None, "expires_at": None})
    payload = statement_of(row, Head(seq=3, digest=row.digest), issued_at=1.0)
    assert [each["name"] for each in json.loads(payload)["subject"]] == ["decision-log/3"]
    attested = read_statement(payload)
    assert (attested.artifact, attested.expires_at, attested.evidence_age) == (None, None, None)


def changed(change: Any) -> bytes:
    document = json.loads(statement_of(ROW, HEAD, issued_at=1500.0))
    change(document)
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "change",
    [
        lambda it: it["subject"][0]["digest"].update(sha256="00" * 32),
        lambda it: it["subject"].pop(0),
        lambda it: it["predicate"]["decision"].update(tier="w4a16"),
        lambda it: it["predicate"]["decision"].update(expires_at=None),
        lambda it: it["predicate"]["evidence"].update(age_seconds=1.0),
        lambda it: it["predicate"]["row"].update(actor="mallory"),
        lambda it: it["predicate"]["row"].update(asdict(row_of(seq=9))),
        lambda it: it["predicate"].update(log_head={"seq": 3, "digest": "00" * 32}),
        lambda it: it["predicate"].update(more=1),
        lambda it: it.update(predicateType="https://slsa.dev/provenance/v1"),
        lambda it: it.update(_type="https://in-toto.io/Statement/v0.1"),
        lambda it: it.pop("predicate"),
    ],
)
def test_a_statement_that_disagrees_with_itself_is_refused_though_its_signature_may_hold(change: Any) -> None:
    with pytest.raises(StatementUnusable):
        read_statement(changed(change))


@pytest.mark.parametrize("payload", [b"", b"[]", b"{}", b"\xff", b"[" * 5000])
def test_what_is_no_statement_is_told(payload: bytes) -> None:
    with pytest.raises(StatementUnusable, match="no statement of a decision"):
        read_statement(payload)
