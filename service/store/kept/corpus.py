"""The corpus: a sample of captured requests by stratum, and whatever was imported, to be replayed later.

Of each stratum of each period the requests with the smallest ranks stay. A rank is a keyed hash of the
request, so which stay depends on no worker, no order and no answer: samples drawn apart and put together are
the sample of all (a bottom-k sketch; Cohen and Kaplan 2007, "Summarizing data using bottom-k sketches").
Where requests leave before their time, for the limit in bytes or because somebody is forgotten, that holds of
the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from heapq import heapify, heappop, heapreplace

from sqlalchemy import Connection, Executable, delete, func, select
from sqlalchemy.dialects import postgresql, sqlite

from service.store.kept.corpus_plan import TRAFFIC, CorpusPlan
from service.store.redis.capture import Capture, Ending, Keyring, seal_all
from service.store.sql.corpus_tables import corpus, corpus_strata
from service.store.sql.database import Database
from service.store.sql.schema import key_of

_CHUNK = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a request may be kept: a stratum, within a corpus, of one period."""

    model: str
    name: str
    stratum: str
    tenant: str
    period: float = 0.0
    """Unix seconds of its beginning; 0 for what was imported."""
    expires_at: float | None = None

    @property
    def key(self) -> str:
        return key_of(self.model, self.name, self.stratum, self.tenant, f"{self.period:.3f}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A request on its way into the corpus: redacted, sealed, and so nothing that can be read."""

    place: Place
    digest: str
    """sha256 of the request as it is kept."""
    original: str
    """sha256 of the request as it came."""
    rank: float
    label: str = ""
    arrived_at: float | None = None
    blob: bytes


class CorpusFull(ValueError):
    """An import does not fit into the limit in bytes."""


def rank_of(salt: bytes, digest: str) -> float:
    """A uniform number in [0, 1) that nobody without the salt can aim at."""
    drawn = blake2b(digest.encode(), digest_size=8, key=salt[:64], person=b"corpus").digest()
    return (int.from_bytes(drawn, "big") >> 11) / 2**53


def place_of(plan: CorpusPlan, *, model: str, stratum: str, tenant: str, at: float) -> Place:
    """Where a request captured at a time (unix seconds) belongs."""
    start, expires_at = plan.period_of(at)
    return Place(
        model=model, name=TRAFFIC, stratum=stratum, tenant=tenant, period=start, expires_at=expires_at
    )


def seal_request(
    place: Place,
    *,
    digest: str,
    path: str,
    body: bytes,
    conversation: str | None,
    at: float,
    keyring: Keyring,
) -> bytes:
    """A request sealed as captures are, bound to its place and digest."""
    [blob] = seal_all(
        [
            Capture(
                id=sealed_id(place.key, digest),
                model=place.model,
                tier="",
                path=path,
                request_body=body,
                ending=Ending.COMPLETE,
                started_at=at,
                tenant=place.tenant,
                conversation=conversation,
                stratum=place.stratum,
            )
        ],
        keyring,
    )
    return blob


def sealed_id(place: str, digest: str) -> str:
    """What the seal of a request is bound to."""
    return f"corpus-{place}-{digest}"


def rooms(db: Database, plan: CorpusPlan, places: Iterable[Place]) -> dict[str, float]:
    """By place: the rank from which on a request has no chance. Others may lower it meanwhile."""
    keys = sorted({place.key for place in places})
    found = dict.fromkeys(keys, 1.0 if plan.per_stratum else 0.0)
    if not plan.per_stratum:
        return found
    with db.read() as connection:
        for start in range(0, len(keys), _CHUNK):
            rows = connection.execute(
                select(corpus.c.place, func.count().label("members"), func.max(corpus.c.rank).label("last"))
                .where(corpus.c.place.in_(keys[start : start + _CHUNK]))
                .group_by(corpus.c.place)
            )
            for row in rows:
                if row.members >= plan.per_stratum:
                    found[row.place] = float(row.last)
    return found


def draw_within(
    db: Database, connection: Connection, plan: CorpusPlan, place: Place, drawn: Drawn | None
) -> None:
    """Count a request that could have been drawn, and take it in if it was.

    To be called at the end of its transaction: nothing that others wait for is locked after the corpus.
    """
    _see(db, connection, place)
    if drawn is None:
        return
    db.lock(connection, "corpus")
    connection.execute(db.insert(corpus).values(_row(drawn)).on_conflict_do_nothing())
    _trim(connection, place.key, plan.per_stratum)
    _fit(connection, plan.max_bytes)


def take_in(db: Database, plan: CorpusPlan, imported: Sequence[Drawn]) -> int:
    """Keep requests of an import, all or none; how many were not there yet. Raises `CorpusFull`."""
    with db.write() as connection:
        db.lock(connection, "corpus")
        keys = sorted({each.place.key for each in imported})
        known: set[tuple[str, str]] = set()
        for start in range(0, len(keys), _CHUNK):
            rows = connection.execute(
                select(corpus.c.place, corpus.c.digest).where(
                    corpus.c.place.in_(keys[start : start + _CHUNK])
                )
            )
            known |= {(row.place, row.digest) for row in rows}
        fresh: dict[tuple[str, str], Drawn] = {}
        for each in imported:
            key = (each.place.key, each.digest)
            if key not in known:
                fresh.setdefault(key, each)
        size, used = sum(len(each.blob) for each in fresh.values()), bytes_used(connection)
        if used + size > plan.max_bytes:
            raise CorpusFull(
                f"{size:,} bytes more than the {used:,} that are kept exceed corpus.max_bytes "
                f"({plan.max_bytes:,}): raise it, import less, or forget another corpus"
            )
        for each in fresh.values():
            _see(db, connection, each.place)
        if fresh:
            connection.execute(corpus.insert(), [_row(each) for each in fresh.values()])
    return len(fresh)


def bytes_used(connection: Connection) -> int:
    """Of all sealed requests."""
    return int(connection.execute(select(func.coalesce(func.sum(corpus.c.bytes), 0))).scalar_one())


def _see(db: Database, connection: Connection, place: Place) -> None:
    connection.execute(_seeing(db.is_sqlite), {**_place_row(place), "seen": 1})


@lru_cache(maxsize=2)
def _seeing(is_sqlite: bool) -> Executable:
    """The statement that counts one: made once, since making it costs more than sending it."""
    insert = sqlite.insert(corpus_strata) if is_sqlite else postgresql.insert(corpus_strata)
    return insert.on_conflict_do_update(
        index_elements=[corpus_strata.c.place], set_={"seen": corpus_strata.c.seen + insert.excluded.seen}
    )


def _trim(connection: Connection, place: str, most: int) -> None:
    beyond = list(
        connection.execute(
            select(corpus.c.digest)
            .where(corpus.c.place == place)
            .order_by(corpus.c.rank, corpus.c.digest)
            .offset(most)
        ).scalars()
    )
    if beyond:
        connection.execute(delete(corpus).where(corpus.c.place == place, corpus.c.digest.in_(beyond)))


def _fit(connection: Connection, max_bytes: int) -> None:
    """What was imported is not given up for what is drawn. Each place that gives up any is read once."""
    over = bytes_used(connection) - max_bytes
    if over <= 0:
        return
    sizes = select(corpus.c.place, func.count().label("members")).where(corpus.c.name == TRAFFIC)
    fullest = [(-row.members, row.place) for row in connection.execute(sizes.group_by(corpus.c.place))]
    heapify(fullest)
    ranked: dict[str, list[tuple[str, int]]] = {}
    gone: dict[str, list[str]] = {}
    while over > 0 and fullest:
        members, place = fullest[0]
        if place not in ranked:
            ranked[place] = _by_rank(connection, place)
        digest, size = ranked[place].pop()
        gone.setdefault(place, []).append(digest)
        over -= size
        if ranked[place]:
            heapreplace(fullest, (members + 1, place))
        else:
            heappop(fullest)
    for place, digests in gone.items():
        for start in range(0, len(digests), _CHUNK):
            some = corpus.c.digest.in_(digests[start : start + _CHUNK])
            connection.execute(delete(corpus).where(corpus.c.place == place, some))


def _by_rank(connection: Connection, place: str) -> list[tuple[str, int]]:
    """Digest and bytes of each of its requests; who would leave first stands last."""
    rows = connection.execute(
        select(corpus.c.digest, corpus.c.bytes)
        .where(corpus.c.place == place)
        .order_by(corpus.c.rank, corpus.c.digest)
    )
    return [(row.digest, row.bytes) for row in rows]


def _place_row(place: Place) -> dict[str, object]:
    return {
        "place": place.key,
        "model": place.model,
        "name": place.name,
        "stratum": place.stratum,
        "tenant": place.tenant,
        "expires_at": place.expires_at,
    }


def _row(drawn: Drawn) -> dict[str, object]:
    return {
        **_place_row(drawn.place),
        "digest": drawn.digest,
        "rank": drawn.rank,
        "original": drawn.original,
        "label": drawn.label,
        "arrived_at": drawn.arrived_at,
        "bytes": len(drawn.blob),
        "sealed": drawn.blob,
    }
