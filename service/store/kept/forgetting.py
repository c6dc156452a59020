"""Taking away what is kept of traffic: in time, or at once because somebody asks."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, select, update

from service.store.sql.adjudication_tables import adjudication_items, adjudication_texts
from service.store.sql.capacity_tables import prompt_prefixes
from service.store.sql.corpus_tables import corpus, corpus_strata, kept_answers
from service.store.sql.database import Database
from service.store.sql.schema import pairs, units


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """How much is gone."""

    requests: int = 0
    answers: int = 0
    """Captured requests with the answers kept beside them."""
    reasons: int = 0
    """Pairs whose one-sentence reasons, which quote answers, were taken away."""
    texts: int = 0
    """Pairs that people were to judge."""
    prefixes: int = 0
    """Prompts whose beginnings were kept as hashes."""

    def plus(self, other: Forgotten) -> Forgotten:
        return Forgotten(
            requests=self.requests + other.requests,
            answers=self.answers + other.answers,
            reasons=self.reasons + other.reasons,
            texts=self.texts + other.texts,
            prefixes=self.prefixes + other.prefixes,
        )


def expire_kept(db: Database, *, now: float) -> Forgotten:
    """Take away what has been kept for its time, of the corpus and of answers."""
    with db.write() as connection:
        requests = _delete(connection, corpus.c.expires_at <= now, corpus_strata.c.expires_at <= now)
        answers = connection.execute(delete(kept_answers).where(kept_answers.c.expires_at <= now)).rowcount
        old = delete(prompt_prefixes).where(prompt_prefixes.c.expires_at <= now)
        prefixes = connection.execute(old).rowcount
    return Forgotten(requests=requests, answers=answers, prefixes=prefixes)


def forget_corpus(db: Database, *, model: str, name: str) -> Forgotten:
    """Take all requests of one corpus away."""
    with db.write() as connection:
        return Forgotten(
            requests=_delete(
                connection,
                (corpus.c.model == model) & (corpus.c.name == name),
                (corpus_strata.c.model == model) & (corpus_strata.c.name == name),
            )
        )


def forget_tenant(db: Database, tenant: str) -> Forgotten:
    """Take away every text that is kept of one tenant (the keyed hash of its API key); counts stay.

    Captures that still wait in Redis are sealed, and nobody knows whose they are: what is not scored by then
    expires with `mirror.capture.ttl`, and what is scored may be drawn, so ask again after that time.
    """
    with db.write() as connection:
        db.lock(connection, "corpus")
        requests = _delete(connection, corpus.c.tenant == tenant, corpus_strata.c.tenant == tenant)
        answers = connection.execute(delete(kept_answers).where(kept_answers.c.tenant == tenant)).rowcount
        prefixes = connection.execute(
            delete(prompt_prefixes).where(prompt_prefixes.c.tenant == tenant)
        ).rowcount
        told = (pairs.c.baseline_reason != "") | (pairs.c.candidate_reason != "")
        theirs = pairs.c.unit_id.in_(select(units.c.unit_id).where(units.c.tenant == tenant))
        reasons = connection.execute(
            update(pairs).where(told, theirs).values(baseline_reason="", candidate_reason="")
        ).rowcount
        items = select(adjudication_items.c.item_id).where(
            adjudication_items.c.unit_id.in_(select(units.c.unit_id).where(units.c.tenant == tenant))
        )
        texts = connection.execute(
            delete(adjudication_texts).where(adjudication_texts.c.item_id.in_(items))
        ).rowcount
    return Forgotten(requests=requests, answers=answers, reasons=reasons, texts=texts, prefixes=prefixes)


def forget_answers(db: Database, model: str) -> Forgotten:
    """Take away the answers that are kept of one model, with their requests."""
    with db.write() as connection:
        amount = connection.execute(delete(kept_answers).where(kept_answers.c.model == model)).rowcount
    return Forgotten(answers=amount)


def _delete(connection: Connection, gone: ColumnElement[bool], strata: ColumnElement[bool]) -> int:
    """Take requests and what is counted of their strata away; how many requests."""
    amount = connection.execute(delete(corpus).where(gone)).rowcount
    connection.execute(delete(corpus_strata).where(strata))
    return amount
