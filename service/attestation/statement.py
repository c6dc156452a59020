"""One row of the decision log as an in-toto statement, and back. Pure.

Subjects are the artifact that was decided on, where the decision names one, and the row by its digest. The
row stands inside as it is stored, so its digest can be made again; so does the head of the log, and whoever
has an exported log can see that the row and this head are in it.
Source: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from service.engines.artifact import bare
from service.store.decided.chain import Head, Row, canonical

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:tiergate:decision:v1"
"""What this predicate is; another layout gets another name."""
_COPIED = ("override", "expires_at", "epoch", "policy_digest", "evaluators", "reason")


class StatementUnusable(ValueError):
    """The statement is none of ours, or contradicts itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attested:
    """What a statement says, once it was found to agree with itself."""

    row: Row
    head: Head
    """Of the log when the statement was made."""
    issued_at: float
    """Unix seconds."""
    artifact: str | None
    """64 hexadecimal digits."""
    expires_at: float | None
    """Unix seconds at which the approval ends; None: until revoked, or no approval."""
    evidence_age: float | None
    """Seconds that the evidence was old when it was decided; None where the decision rests on none."""


def statement_of(row: Row, head: Head, *, issued_at: float) -> bytes:
    """The statement as canonical JSON."""
    detail = json.loads(row.detail)
    artifact = _artifact(detail)
    subjects = [{"name": f"decision-log/{row.seq}", "digest": {"sha256": row.digest}}]
    if artifact is not None:
        subjects.insert(0, {"name": f"{row.model}/{row.tier}", "digest": {"sha256": artifact}})
    predicate = {
        "decision": {
            "action": row.action,
            "model": row.model or None,
            "tier": row.tier,
            "actor": row.actor,
            "at": row.at,
            **{name: detail[name] for name in _COPIED if name in detail},
        },
        "evidence": {"age_seconds": _age(detail)},
        "row": asdict(row),
        "log_head": asdict(head),
        "issued_at": issued_at,
    }
    document = {
        "_type": STATEMENT,
        "subject": subjects,
        "predicateType": PREDICATE,
        "predicate": predicate,
    }
    return canonical(document).encode()


def read_statement(payload: bytes) -> Attested:
    """What it says. StatementUnusable unless it is exactly what `statement_of` makes of the row inside."""
    try:
        document = json.loads(payload)
        if document["_type"] != STATEMENT or document["predicateType"] != PREDICATE:
            raise StatementUnusable(
                f"it is {document['predicateType']!r} in {document['_type']!r}, no decision of Tiergate"
            )
        predicate = document["predicate"]
        row, head = Row(**predicate["row"]), Head(**predicate["log_head"])
        issued_at = float(predicate["issued_at"])
        detail = json.loads(row.detail)
        made_again = statement_of(row, head, issued_at=issued_at)
        fits = row.digest == row.true_digest and (
            row.seq < head.seq or (row.seq, row.digest) == (head.seq, head.digest)
        )
    except StatementUnusable:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StatementUnusable(f"it is no statement of a decision: {error}") from error
    if not fits:
        raise StatementUnusable("the row inside has not the digest of what it says, or is past the head")
    if json.loads(made_again) != document:
        raise StatementUnusable("its subject or its predicate is not what the row inside says")
    return Attested(
        row=row,
        head=head,
        issued_at=issued_at,
        artifact=_artifact(detail),
        expires_at=detail.get("expires_at"),
        evidence_age=_age(detail),
    )


def _artifact(detail: Mapping[str, Any]) -> str | None:
    named = detail.get("artifact")
    return bare(named) if named else None


def _age(detail: Mapping[str, Any]) -> float | None:
    verdict = detail.get("verdict")
    age = verdict.get("age_seconds") if isinstance(verdict, Mapping) else None
    return None if age is None else float(age)
