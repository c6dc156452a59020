"""`GET .../decisions` and `GET /ledger`: who decided what, and where every request went."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from service.approval.answers import entry_out, ledger_out
from service.approval.desk import Desk
from service.approval.names import find_ladder
from service.approval.schemas import DecisionsOut, LedgerOut, LogOut
from service.store.decided import decisions as log
from service.store.verdicts.standing import read_account

MOST_ENTRIES = 1000
LAST_SEQUENCE = 2**31 - 1


def log_routes(desk: Desk) -> APIRouter:
    """The two accounts."""
    router = APIRouter(tags=["accounts"])

    @router.get("/models/{model:path}/decisions", summary="Who decided what and when")
    def decisions(
        model: str,
        after: Annotated[int, Query(ge=0, le=LAST_SEQUENCE, description="A sequence number.")] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_ENTRIES)] = 100,
    ) -> DecisionsOut:
        """Every entry carries the digest of the one before it; the whole chain is checked at every call."""
        find_ladder(desk.config.ladders, model)
        entries = log.read(desk.db, model, after=after, limit=limit + 1)
        broken_at = log.verify(desk.db)
        return DecisionsOut(
            model=model,
            entries=[entry_out(entry) for entry in entries[:limit]],
            next_after=entries[limit - 1].seq if len(entries) > limit else None,
            chain="intact" if broken_at is None else "broken",
            broken_at=broken_at,
        )

    @router.get("/decisions", summary="The whole decision log")
    def every_decision(
        after: Annotated[int, Query(ge=0, le=LAST_SEQUENCE, description="A sequence number.")] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_ENTRIES)] = 100,
    ) -> LogOut:
        """Of all models, and of none: changes of the policy and of tokens."""
        entries = log.read(desk.db, after=after, limit=limit + 1)
        broken_at, head = log.verify(desk.db), log.head_of(desk.db)
        return LogOut(
            entries=[entry_out(entry) for entry in entries[:limit]],
            next_after=entries[limit - 1].seq if len(entries) > limit else None,
            chain="intact" if broken_at is None else "broken",
            broken_at=broken_at,
            head_seq=head.seq,
            head_digest=head.digest,
        )

    @router.get("/ledger", summary="Where every request went")
    def ledger(
        model: Annotated[str | None, Query(description="One model instead of all.")] = None,
    ) -> LedgerOut:
        """seen = skipped + sampled, and so on down to every pair; `balanced` says whether it adds up."""
        if model is not None:
            find_ladder(desk.config.ladders, model)
        return ledger_out(read_account(desk.db, desk.captures, model, now=desk.now()))

    return router
