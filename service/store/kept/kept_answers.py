"""Answers that are kept to be judged again: after an evaluator was improved, its old pairs count anew.

Kept is a share of captures with every answer of every arm, chosen by a hash of the request alone. So what is
judged again is a sample of the traffic, whatever was answered. Kept pairs that were chosen because the arms
differed could be looked at again and never be counted (`adjudication` keeps those, for people).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, func, select, update

from evaluators.exchange import Answer, Fault, FaultKind, Json, Outcome, ToolCall
from service.store.redis.capture import Capture, Keyring, unseal
from service.store.sql.corpus_tables import kept_answers
from service.store.sql.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswers:
    """One capture with its answers: redacted, sealed."""

    capture_id: str
    model: str
    tenant: str
    scored: str
    """Names the evaluators and epochs that it was judged under."""
    expires_at: float
    """Unix seconds."""
    blob: bytes


def keep_within(db: Database, connection: Connection, kept: KeptAnswers, *, max_bytes: int) -> bool:
    """Keep it unless the limit is reached; False when it is.

    Whether it is kept does not depend on its own size, which an arm that runs away makes large: the limit may
    be exceeded by one for each worker.
    """
    used = connection.execute(select(func.coalesce(func.sum(kept_answers.c.bytes), 0))).scalar_one()
    if used >= max_bytes:
        return False
    connection.execute(
        db.insert(kept_answers)
        .values(
            capture_id=kept.capture_id,
            model=kept.model,
            tenant=kept.tenant,
            scored=kept.scored,
            expires_at=kept.expires_at,
            bytes=len(kept.blob),
            sealed=kept.blob,
        )
        .on_conflict_do_nothing()
    )
    return True


def to_score(db: Database, *, model: str, scored: str, limit: int, now: float) -> dict[str, bytes]:
    """Sealed captures that were last judged otherwise, by id."""
    with db.read() as connection:
        rows = connection.execute(
            select(kept_answers.c.capture_id, kept_answers.c.sealed)
            .where(
                kept_answers.c.model == model,
                kept_answers.c.scored != scored,
                kept_answers.c.expires_at > now,
            )
            .order_by(kept_answers.c.capture_id)
            .limit(limit)
        )
        return {row.capture_id: bytes(row.sealed) for row in rows}


def mark_scored(db: Database, capture_ids: Collection[str], scored: str) -> None:
    """They need no more judging until evaluators or epochs change."""
    if capture_ids:
        with db.write() as connection:
            connection.execute(
                update(kept_answers)
                .where(kept_answers.c.capture_id.in_(sorted(capture_ids)))
                .values(scored=scored)
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCount:
    """How much is kept of a model's answers."""

    captures: int
    size: int
    """Bytes, sealed."""


def kept_counts(db: Database) -> dict[str, KeptCount]:
    """By model."""
    with db.read() as connection:
        rows = connection.execute(
            select(
                kept_answers.c.model,
                func.count().label("captures"),
                func.sum(kept_answers.c.bytes).label("size"),
            )
            .group_by(kept_answers.c.model)
            .order_by(kept_answers.c.model)
        )
        return {row.model: KeptCount(captures=int(row.captures), size=int(row.size)) for row in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedAnswers:
    """A capture that was kept, opened."""

    capture: Capture
    """Its request body is the redacted one; its response body is what `told` was read from."""
    told: Mapping[str, Json]
    """Where its pairs belong, recall questions, and every outcome, as the worker wrote them."""

    @property
    def outcomes(self) -> dict[tuple[str, int, bool], Outcome]:
        """By tier, item (0 = the request itself, then its recall questions), and whether asked again."""
        return {(tier, item, again): _outcome(told) for tier, item, again, told in self.told["outcomes"]}


def kept_id(capture_id: str) -> str:
    """What the seal is bound to: a capture cannot stand in for what is kept of it."""
    return f"kept-{capture_id}"


def open_answers(capture_id: str, blob: bytes, keyring: Keyring) -> OpenedAnswers:
    """What was kept of a capture; SealBroken says why it does not open."""
    capture = unseal(kept_id(capture_id), blob, keyring)
    return OpenedAnswers(capture=capture, told=json.loads(capture.response_body))


def _outcome(written: Mapping[str, Json]) -> Outcome:
    if "kind" in written:
        return Fault(**{**written, "kind": FaultKind(written["kind"])})
    calls = tuple(ToolCall(**call) for call in written["tool_calls"])
    return Answer(**{**written, "tool_calls": calls})
