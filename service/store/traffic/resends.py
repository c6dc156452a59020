"""Requests that a tenant sends again soon: what clients do when an answer was of no use.

Counted where captures are taken up. In Redis each prompt of a tenant is remembered for a while, by hash; in
SQL are the counts. The estimate of a tier's retry rate is resent / chances. Where requests are sampled one by
one, of two that belong together the earlier is seen with probability `share`, so that a request has a chance
of `share` to show what it is; where a conversation is sampled whole, it has a chance of 1.

What it cannot tell: a prompt that is sent again on purpose (several samples of one question, a test run every
minute) counts as a retry; a retry with other words, through another key or after the window does not; of
three attempts, which ones were seen is chance. So the rate is right on average, and noisy where the share is
small (its relative error is about 1/sqrt(resent)). Requests without a key have no tenant
and are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from redis import Redis
from sqlalchemy import Connection, select

from service.store.redis import redis_keys
from service.store.scored.pairs import increment
from service.store.sql.corpus_tables import resends
from service.store.sql.database import Database
from service.store.sql.schema import key_of

DAY = 86_400
LEAST_MEMORY = 600
"""Seconds that a prompt is remembered at least: captures are not taken up in the order of their requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One captured request, as far as sending again is concerned."""

    capture_id: str
    model: str
    tier: str
    """That served it."""
    tenant: str
    prompt: str
    """Hash of the messages."""
    at: float
    """Unix seconds."""
    together: bool
    """Whether it was sampled with its conversation."""


def earlier_tiers(redis: Redis, sent: Sequence[Sent], *, window: float) -> dict[str, str]:
    """By capture: the tier that answered the same prompt of the same tenant at most `window` seconds before.

    Remembers each prompt; one round trip for all. A capture that is delivered twice is not its own retry.
    """
    asked = [each for each in sent if each.tenant]
    if not asked or window <= 0:
        return {}
    keep = round(max(2 * window, LEAST_MEMORY))
    with redis.pipeline(transaction=False) as pipeline:
        for each in asked:
            remembered = json.dumps([each.capture_id, each.at, each.tier])
            key = redis_keys.prompt(key_of("prompt", each.model, each.tenant, each.prompt))
            pipeline.set(key, remembered, ex=keep, get=True)
        found = cast(list[bytes | None], pipeline.execute())
    tiers: dict[str, str] = {}
    for each, before in zip(asked, found, strict=True):
        if before is None:
            continue
        capture_id, at, tier = json.loads(before)
        if capture_id != each.capture_id and abs(each.at - at) <= window:
            tiers[each.capture_id] = tier if at <= each.at else each.tier
    return tiers


def count_within(
    db: Database, connection: Connection, sent: Sent, *, earlier: str | None, share: float
) -> None:
    """Count a request, and that an earlier one was sent again, for the tier that answered that."""
    if not sent.tenant:
        return
    place = {
        "model": sent.model,
        "day": int(sent.at // DAY),
        "together": sent.together,
        "share": f"{share:.9g}",
    }
    rows = [{**place, "tier": sent.tier, "total": 1, "resent": 0}]
    if earlier is not None:
        rows.append({**place, "tier": earlier, "total": 0, "resent": 1})
    increment(db, connection, resends, sorted(rows, key=lambda row: str(row["tier"])))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResendRate:
    """How often answers of a tier were followed by the same request."""

    total: int = 0
    """Captured requests."""
    resent: int = 0
    """Of these, seen to be sent again."""
    chances: float = 0.0
    """Of how many it would have been seen: `total`, thinned by sampling."""

    @property
    def rate(self) -> float | None:
        """Share of answers that were followed by the same request; None without a chance to see it."""
        return min(1.0, self.resent / self.chances) if self.chances else None

    @property
    def exposed(self) -> int:
        """`chances` as a whole number, never below `resent`: for limits of a binomial share."""
        return max(self.resent, round(self.chances))


def resend_rates(db: Database, model: str, *, since: float = 0.0) -> Mapping[str, ResendRate]:
    """By tier of a model, from the day of `since` (unix seconds) on."""
    with db.read() as connection:
        rows = connection.execute(
            select(resends).where(resends.c.model == model, resends.c.day >= int(since // DAY))
        ).all()
    found: dict[str, ResendRate] = {}
    for row in rows:
        before = found.get(row.tier, ResendRate())
        chance = 1.0 if row.together else float(row.share)
        found[row.tier] = ResendRate(
            total=before.total + int(row.total),
            resent=before.resent + int(row.resent),
            chances=before.chances + chance * int(row.total),
        )
    return found
