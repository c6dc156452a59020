"""A database as it is after a million pairs: units, pairs, and the counts that they amount to.

Drawn from a seed: rates of failure by evaluator, a tier that is worse on a few strata, conversations with
several needles under recall. Units and pairs are written in bulk, as no worker could; what is counted of them
is added by the code that workers use, so that `tiergate recount` proves it.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import Connection, Table, func, insert, select

from service.store.redis.capture import capture_id
from service.store.redis.counters import Count, ledger_key
from service.store.scored.counting import Counts, Part
from service.store.scored.leases import lease
from service.store.scored.pairs import add_counts
from service.store.sql.database import Database
from service.store.sql.schema import key_of, ledger_counters, pairs, units
from service.store.sql.tally_tables import takings
from service.strata import DIMENSIONS

MODEL = "m"
BASELINE = "bf16"
TIERS = ("fp8-kv", "w8a8", "w4a16", "w4a16-fp8kv")
EVALUATORS = ("structured_output", "long_context_recall", "refusal")
MARGINALS = tuple(f"{name}={bucket}" for name, buckets in DIMENSIONS.items() for bucket in buckets)
TENANTS = tuple(f"tenant{number}" for number in range(20))
NOW = 1_800_000_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much of everything."""

    pairs: int = 1_000_000
    """Of candidates; the control has as many as one of them."""
    strata: int = 200
    leased: int = 16
    """Captures still being replayed."""
    overtaking: int = 100
    """Units that were recorded although an older capture is still being replayed."""

    @property
    def crossed(self) -> tuple[str, ...]:
        return tuple(f"stratum-{number:03}" for number in range(self.strata - len(MARGINALS)))

    @property
    def universe(self) -> frozenset[str]:
        return frozenset((*self.crossed, *MARGINALS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Conversations that are alike, and how many there are of them."""

    part: Part
    times: int


@dataclass(slots=True, kw_only=True)
class Filled:
    """What was written."""

    pairs: int = 0
    units: int = 0
    counts: Counts = field(default_factory=Counts)


def settle(db: Database) -> None:
    """What comes in time, done at once: the database's own counts, and the collection of what filled it: that
    would stop a look in the middle for seconds."""
    with db.write() as connection:
        connection.exec_driver_sql("ANALYZE")
    gc.collect()
    gc.freeze()


def fill(db: Database, scale: Scale, *, seed: int = 1) -> Filled:
    """Write it all; `db` is empty before."""
    rng = np.random.default_rng(seed)
    filled, number = Filled(), itertools.count()
    places = [(tier, "candidate") for tier in TIERS] + [(BASELINE, "control")]
    each = scale.pairs // (len(TIERS) * len(EVALUATORS))
    with db.write() as connection:
        for (tier, arm), evaluator in itertools.product(places, EVALUATORS):
            kinds = list(_kinds(rng, scale, tier, arm, evaluator, each))
            for kind in kinds:
                filled.counts.add_conversation([kind.part], times=kind.times)
                filled.units += kind.times
                filled.pairs += kind.part.pairs * kind.times
            _write(connection, kinds, number)
        add_counts(db, connection, filled.counts)
        connection.execute(insert(takings), _taken(rng, filled.units))
        connection.execute(
            insert(ledger_counters),
            [
                {"instance": "i", "counter": ledger_key(Count.TRAFFIC, MODEL, stratum), "amount": 5_000}
                for stratum in scale.crossed
            ],
        )
    _let_overtake(db, scale)
    return filled


def _kinds(
    rng: np.random.Generator, scale: Scale, tier: str, arm: str, evaluator: str, amount: int
) -> Iterator[Kind]:
    """Conversations of one tier under one evaluator, so many pairs of them."""
    needles = 4 if evaluator == "long_context_recall" else 1
    harm = 0.01 if arm == "candidate" else 0.004
    strata = rng.multinomial(amount // needles, [1 / len(scale.crossed)] * len(scale.crossed))
    for number, (stratum, conversations) in enumerate(zip(scale.crossed, strata, strict=True)):
        broken = arm == "candidate" and number % 60 == 0
        for _ in range(4):
            marginals = tuple(f"{name}={rng.choice(buckets)}" for name, buckets in DIMENSIONS.items())
            worse = harm * (5 if broken else 1)
            chances = [worse, 0.01, 0.02, 0.97 - worse]
            found = rng.multinomial(int(conversations) // 4 * needles, chances)
            triples = _triples(rng, found, needles)
            for (more, less, both), times in sorted(triples.items()):
                yield Kind(
                    part=Part(
                        MODEL,
                        tier,
                        arm,
                        f"epoch of {tier}",
                        evaluator,
                        "1",
                        (stratum, *marginals),
                        str(rng.choice(TENANTS)),
                        needles,
                        more,
                        less,
                        both,
                    ),
                    times=times,
                )


def _triples(rng: np.random.Generator, found: Sequence[int], needles: int) -> dict[tuple[int, int, int], int]:
    """So many harms, benefits, failures of both and other pairs, dealt out to conversations."""
    outcomes = np.repeat(np.arange(4), found)
    rng.shuffle(outcomes)
    dealt = outcomes[: len(outcomes) // needles * needles].reshape(-1, needles)
    rows, times = np.unique(
        np.stack([(dealt == kind).sum(axis=1) for kind in range(3)], axis=1), axis=0, return_counts=True
    )
    return {(int(a), int(b), int(c)): int(n) for (a, b, c), n in zip(rows, times, strict=True)}


def _write(connection: Connection, kinds: Sequence[Kind], number: itertools.count[int]) -> None:
    """Units and pairs of conversations with one request each."""
    of_units: list[tuple[Any, ...]] = []
    of_pairs: list[tuple[Any, ...]] = []
    for kind in kinds:
        part = kind.part
        outcomes = (
            [(True, False)] * part.harm
            + [(False, True)] * part.benefit
            + [(False, False)] * part.both_failed
            + [(True, True)] * (part.pairs - part.harm - part.benefit - part.both_failed)
        )
        marginals, discordant = " ".join(part.strata[1:]), bool(part.harm or part.benefit)
        for _ in range(kind.times):
            name = f"c{next(number)}"
            unit = key_of(name)
            at = NOW - 1e6 + 1e-3 * len(of_units)
            place = (part.model, part.tier, part.arm, part.epoch, part.evaluator, part.version)
            where = (name, part.strata[0], marginals, part.tenant, name)
            of_units.append((unit, name, *place, *where, True, False, discordant, at, at))
            for item, (baseline, candidate) in enumerate(outcomes):
                labels = ("ok" if baseline else "not_json", "ok" if candidate else "not_json")
                of_pairs.append((unit, item, "scored", "", baseline, candidate, *labels, "", "", "live", ""))
    _insert(connection, units, of_units)
    _insert(connection, pairs, of_pairs)


def _insert(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """In the order of the table's columns, by the driver's own way for many rows."""
    raw = connection.connection.driver_connection
    assert raw is not None
    if connection.dialect.name == "sqlite":
        marks = ", ".join("?" * len(table.columns))
        raw.executemany(f"INSERT INTO {table.name} VALUES ({marks})", rows).close()
        return
    with raw.cursor() as cursor, cursor.copy(f"COPY {table.name} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def _taken(rng: np.random.Generator, captures: int) -> list[dict[str, Any]]:
    found = [(name, captures // 4) for name in MARGINALS]
    found += [(f"tenant={name}", int(rng.integers(1, captures // 10))) for name in TENANTS]
    return [{"model": MODEL, "stratum": stratum, "amount": amount} for stratum, amount in found]


def _let_overtake(db: Database, scale: Scale) -> None:
    """Some captures are at work, and some units are newer than they."""
    ids = [capture_id("p", number, MODEL) for number in range(scale.leased)]
    lease(db, ids, owner="worker", now=NOW, seconds=1e9)
    with db.write() as connection:
        some = select(units.c.unit_id).order_by(func.substr(units.c.unit_id, 5)).limit(scale.overtaking)
        connection.execute(
            units.update().where(units.c.unit_id.in_(some.scalar_subquery())).values(taken_at=NOW + 1)
        )
