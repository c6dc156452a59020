"""The texts of one pair with the names of their sides, for people who look at it; every look is written down.

They lie sealed in one of two places: in the queue of pairs to judge, or with the answers that are kept of a
share of captures. Whoever was shown them cannot judge this pair blind any more, nor any other of the same
capture, since its baseline is the same: the log says so of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from service.store.kept.kept_answers import OpenedAnswers, open_answers
from service.store.labels.access_log import LOOK, note
from service.store.labels.kept_text import PairText, open_text
from service.store.redis.capture import Keyring
from service.store.scored.pair_listing import ListedPair
from service.store.sql.adjudication_tables import adjudication_items, adjudication_texts
from service.store.sql.corpus_tables import kept_answers
from service.store.sql.database import Database
from service.store.sql.schema import units


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """One of the two, or neither: then the texts are gone, or were never kept."""

    queued: PairText | None = None
    answers: OpenedAnswers | None = None


def open_pair(db: Database, keyring: Keyring, pair: ListedPair, *, now: float) -> Opened:
    """The texts of a pair; whoever shows them calls `note_look`. SealBroken when they do not open."""
    with db.read() as connection:
        queued = connection.execute(
            select(adjudication_texts.c.sealed).where(
                adjudication_texts.c.item_id == pair.item_id, adjudication_texts.c.expires_at > now
            )
        ).scalar_one_or_none()
        kept = connection.execute(
            select(kept_answers.c.sealed).where(
                kept_answers.c.capture_id == pair.capture_id, kept_answers.c.expires_at > now
            )
        ).scalar_one_or_none()
    if queued is not None:
        return Opened(queued=open_text(pair.item_id, bytes(queued), keyring))
    if kept is not None:
        return Opened(answers=open_answers(pair.capture_id, bytes(kept), keyring))
    return Opened()


def note_look(db: Database, pair: ListedPair, *, actor: str, now: float, detail: str) -> None:
    """Write down that somebody is shown this pair with the names of its sides."""
    with db.write() as connection:
        together = connection.execute(
            select(adjudication_items.c.item_id)
            .join(units, units.c.unit_id == adjudication_items.c.unit_id)
            .where(units.c.conversation == pair.conversation, units.c.capture_id == pair.capture_id)
        ).scalars()
        note(connection, sorted({pair.item_id, *together}), actor=actor, action=LOOK, at=now, detail=detail)
