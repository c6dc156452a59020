"""What a corpus holds: its requests, opened one by one, and the manifest that names them.

The periods of the corpus drawn from traffic are put together here: of each stratum the requests with the
smallest ranks of all periods that have not expired.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby

from sqlalchemy import ColumnElement, func, or_, select

from service.store.kept.corpus import sealed_id
from service.store.kept.corpus_plan import TRAFFIC
from service.store.redis.capture import Keyring, SealBroken, unseal
from service.store.sql.corpus_tables import corpus, corpus_strata
from service.store.sql.database import Database

log = logging.getLogger("tiergate.corpus")

_CHUNK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One request of a corpus, without its text."""

    place: str
    digest: str
    original: str
    """Digest of the request as it came; where nothing was masked, the same."""
    stratum: str
    tenant: str
    rank: float
    label: str
    arrived_at: float | None
    """Unix seconds; of a trace, seconds from its start; None where nobody said."""
    size: int
    """Bytes, sealed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One request of a corpus, opened."""

    listed: Listed
    model: str
    path: str
    body: bytes
    """JSON, redacted."""
    conversation: str | None
    weight: float
    """Requests of the traffic that it stands for: those seen of its stratum, over those that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumOf:
    """One stratum of one tenant."""

    stratum: str
    tenant: str
    seen: int
    """Requests that there were to draw from."""
    members: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusManifest:
    """What a corpus is made of; the same requests give the same digest, in whatever order they came."""

    model: str
    name: str
    digest: str
    """sha256 over the sorted digests of its requests, each followed by a line end."""
    members: tuple[str, ...]
    """Their digests, sorted."""
    strata: tuple[StratumOf, ...]
    size: int
    """Bytes, sealed."""

    def document(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "model": self.model,
            "corpus": self.name,
            "digest": self.digest,
            "requests": len(self.members),
            "bytes": self.size,
            "strata": [
                {"stratum": each.stratum, "tenant": each.tenant, "seen": each.seen, "requests": each.members}
                for each in self.strata
            ],
            "members": list(self.members),
        }


def corpora(db: Database) -> list[tuple[str, str]]:
    """Every corpus there is, by model and name."""
    with db.read() as connection:
        rows = connection.execute(
            select(corpus.c.model, corpus.c.name).distinct().order_by(corpus.c.model, corpus.c.name)
        )
        return [(row.model, row.name) for row in rows]


def listed(db: Database, *, model: str, name: str, per_stratum: int, now: float) -> list[Listed]:
    """The requests of a corpus, by stratum, tenant and rank; an import has no limit per stratum."""
    with db.read() as connection:
        rows = connection.execute(
            select(
                corpus.c.place,
                corpus.c.digest,
                corpus.c.original,
                corpus.c.stratum,
                corpus.c.tenant,
                corpus.c.rank,
                corpus.c.label,
                corpus.c.arrived_at,
                corpus.c.bytes.label("size"),
            )
            .where(corpus.c.model == model, corpus.c.name == name, _in_time(now))
            .order_by(corpus.c.stratum, corpus.c.tenant, corpus.c.rank, corpus.c.digest, corpus.c.place)
        ).all()
    found: list[Listed] = []
    for _, group in groupby(rows, key=lambda row: (row.stratum, row.tenant)):
        chosen: dict[str, Listed] = {}
        for row in group:
            if row.digest not in chosen and (name != TRAFFIC or len(chosen) < per_stratum):
                chosen[row.digest] = Listed(**row._mapping)
        found += chosen.values()
    return found


def has_any(db: Database, *, model: str, name: str, per_stratum: int, now: float) -> bool:
    """Whether `listed` would list any; reads one row, however many there are."""
    if name == TRAFFIC and per_stratum < 1:
        return False
    one = select(corpus.c.place).where(corpus.c.model == model, corpus.c.name == name, _in_time(now)).limit(1)
    with db.read() as connection:
        return connection.execute(one).first() is not None


def manifest(db: Database, *, model: str, name: str, per_stratum: int, now: float) -> CorpusManifest:
    """What a corpus is made of at a moment; one that nobody made is empty."""
    with db.one_moment():
        requests = listed(db, model=model, name=name, per_stratum=per_stratum, now=now)
        seen = _seen(db, model, name, now)
    members: dict[tuple[str, str], int] = {}
    for each in requests:
        members[each.stratum, each.tenant] = members.get((each.stratum, each.tenant), 0) + 1
    digests = tuple(sorted({each.digest for each in requests}))
    return CorpusManifest(
        model=model,
        name=name,
        digest=digest_of(digests),
        members=digests,
        strata=tuple(
            StratumOf(stratum=stratum, tenant=tenant, seen=amount, members=members.get((stratum, tenant), 0))
            for (stratum, tenant), amount in sorted(seen.items())
        ),
        size=sum(each.size for each in requests),
    )


def digest_of(members: Sequence[str]) -> str:
    """Of a corpus, from the digests of its requests."""
    return sha256("".join(f"{each}\n" for each in sorted(set(members))).encode()).hexdigest()


def opened(
    db: Database, keyring: Keyring, *, model: str, name: str, per_stratum: int, now: float
) -> Iterator[Member]:
    """Every request of a corpus with its text, a few at a time in memory.

    One sealed with a key that is gone is left out, and an error in the log names that key: keys are to be
    kept for as long as the corpus keeps requests.
    """
    chosen = listed(db, model=model, name=name, per_stratum=per_stratum, now=now)
    seen = _seen(db, model, name, now)
    weights = _weights(chosen, seen)
    for start in range(0, len(chosen), _CHUNK):
        part = chosen[start : start + _CHUNK]
        blobs = _sealed(db, part)
        for each in part:
            blob = blobs.get((each.place, each.digest))
            if blob is None:
                continue  # forgotten meanwhile
            try:
                capture = unseal(sealed_id(each.place, each.digest), blob, keyring)
            except SealBroken as error:
                log.error("a request of the corpus %s/%s cannot be opened: %s", model, name, error)
                continue
            yield Member(
                listed=each,
                model=model,
                path=capture.path,
                body=capture.request_body,
                conversation=capture.conversation,
                weight=weights[each.stratum, each.tenant],
            )


def _weights(chosen: Sequence[Listed], seen: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], float]:
    amounts: dict[tuple[str, str], int] = {}
    for each in chosen:
        amounts[each.stratum, each.tenant] = amounts.get((each.stratum, each.tenant), 0) + 1
    return {key: max(1.0, seen.get(key, amount) / amount) for key, amount in amounts.items()}


def _seen(db: Database, model: str, name: str, now: float) -> dict[tuple[str, str], int]:
    in_time = or_(corpus_strata.c.expires_at.is_(None), corpus_strata.c.expires_at > now)
    with db.read() as connection:
        rows = connection.execute(
            select(
                corpus_strata.c.stratum, corpus_strata.c.tenant, func.sum(corpus_strata.c.seen).label("seen")
            )
            .where(corpus_strata.c.model == model, corpus_strata.c.name == name, in_time)
            .group_by(corpus_strata.c.stratum, corpus_strata.c.tenant)
        )
        return {(row.stratum, row.tenant): int(row.seen) for row in rows}


def _sealed(db: Database, part: Sequence[Listed]) -> dict[tuple[str, str], bytes]:
    places = sorted({each.place for each in part})
    digests = sorted({each.digest for each in part})
    with db.read() as connection:
        rows = connection.execute(
            select(corpus.c.place, corpus.c.digest, corpus.c.sealed).where(
                corpus.c.place.in_(places), corpus.c.digest.in_(digests)
            )
        )
        return {(row.place, row.digest): bytes(row.sealed) for row in rows}


def _in_time(now: float) -> ColumnElement[bool]:
    return or_(corpus.c.expires_at.is_(None), corpus.c.expires_at > now)
