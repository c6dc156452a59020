"""A change of the policy as a row of the decision log: the file is edited, and who starts with it says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from service.decision.epoch import epoch_id
from service.decision.policy import Policy
from service.store.decided.decisions import append_within, last_of
from service.store.sql.database import Database

ACTION = "policy"


def note_policy(db: Database, policy: Policy, *, at: float, actor: str) -> bool:
    """Log that this policy is in force, unless the last one logged is the same; whether it was logged.

    The row has the policy, the digest of the one before it, and each value that is another now.
    """
    whole = asdict(policy)
    digest, values = epoch_id(whole), dict(_leaves(whole))
    with db.write() as connection:
        db.lock(connection, "decisions")  # before the last one is read: of two that start, one logs it
        last = last_of(connection, ACTION)
        if last is not None and last.detail["digest"] == digest:
            return False
        before: Mapping[str, Any] = values if last is None else last.detail["policy"]
        append_within(
            db,
            connection,
            at=at,
            actor=actor,
            action=ACTION,
            model="",
            tier=None,
            detail={
                "digest": digest,
                "before": None if last is None else last.detail["digest"],
                "changed": {
                    key: [before.get(key), values.get(key)]
                    for key in sorted({*before, *values})
                    if before.get(key) != values.get(key)
                },
                "policy": values,
            },
        )
    return True


def _leaves(told: object, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value by its path; a criterion is named by its evaluator, so that another order is no change."""
    if isinstance(told, Mapping):
        for name, inner in told.items():
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(told, list | tuple):
        for position, inner in enumerate(told):
            name = inner.get("evaluator", position) if isinstance(inner, Mapping) else position
            yield from _leaves(inner, f"{path}.{name}")
    else:
        yield path, told
