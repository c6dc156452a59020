"""What is taken of a batch beyond its scores: requests for the corpus, answers to keep, what was sent again.

Who is drawn is decided by a keyed hash of the request, before any answer; the texts are masked and sealed
before the transaction that settles the capture, and written in it. Where masking fails, nothing is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from redis import Redis
from sqlalchemy import Connection

from evaluators.exchange import Json, Outcome
from service.redaction import Mask, mask_personal, redacted
from service.store.kept.corpus import (
    Drawn,
    Place,
    draw_within,
    place_of,
    rank_of,
    rooms,
    seal_request,
)
from service.store.kept.corpus_plan import CorpusPlan
from service.store.kept.kept_answers import KeptAnswers, keep_within
from service.store.kept.prompt_prefixes import PromptPrefix, keep_prefix_within
from service.store.redis.capture import Keyring
from service.store.scored.units import Unit
from service.store.sql.database import Database
from service.store.traffic.resends import Sent, count_within, earlier_tiers
from service.wire import message_chain, write_body
from service.wire.prompt_blocks import prompt_blocks
from service.wire.replay import without_traces
from workers.judge import Alarm
from workers.kept import sealed_answers
from workers.plan import Slot
from workers.units import Placed, Scoring, judged_under

log = logging.getLogger("tiergate.worker")

Writing = Callable[[Connection], None]
"""Done at the end of the transaction that settles a capture."""


NOTHING = CorpusPlan(per_stratum=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What the configuration says of keeping."""

    plan: CorpusPlan = NOTHING
    answers: float = 0.0
    """Share of captures whose answers are kept, to be judged again."""
    mask: Mask = mask_personal
    salt: bytes = field(default=b"", repr=False)
    """Keys the hash that draws."""
    share: float = 1.0
    """Of requests that are captured."""
    resend_seconds: float = 300.0
    """Within which the same prompt of the same tenant is a retry; 0 = not counted."""
    prefixes: int = 0
    """Prompts of one model whose beginnings are kept as hashes under `salt`; 0 = none."""
    seconds_per_capture: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lot:
    """What is decided of one capture before it is asked anything."""

    place: Place
    rank: float
    last: float
    """The rank from which on there is no room in its place."""
    sent: Sent
    earlier: str | None
    """The tier whose answer it seems to have been of no use, if it is a retry."""
    prefix: PromptPrefix | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lots:
    """Those of one batch."""

    drawing: Drawing
    db: Database
    keyring: Keyring
    by_capture: Mapping[str, Lot]

    def writing(
        self, placed: Placed, units: Sequence[Unit], outcomes: Mapping[Slot, Outcome], scoring: Scoring
    ) -> Writing | None:
        """What to write of a capture with its settlement; None when nothing was decided of it."""
        lot = self.by_capture.get(placed.opened.capture.id)
        if lot is None:
            return None
        drawn, kept = self._texts(lot, placed, tuple(units), outcomes, scoring)
        drawing, db = self.drawing, self.db

        def write(connection: Connection) -> None:
            if drawing.resend_seconds:
                count_within(db, connection, lot.sent, earlier=lot.earlier, share=drawing.share)
            if lot.prefix is not None:
                gone_at = lot.sent.at + drawing.plan.retention_seconds
                keep_prefix_within(db, connection, lot.prefix, expires_at=gone_at)
            if drawing.plan.per_stratum and not placed.opened.plan.rejected:
                draw_within(db, connection, drawing.plan, lot.place, drawn)
            if kept is not None:
                keep_within(db, connection, kept, max_bytes=drawing.plan.max_bytes)

        return write

    def _texts(
        self,
        lot: Lot,
        placed: Placed,
        units: tuple[Unit, ...],
        outcomes: Mapping[Slot, Outcome],
        scoring: Scoring,
    ) -> tuple[Drawn | None, KeptAnswers | None]:
        """The texts that are kept of it, masked and sealed: mostly none."""
        drawing = self.drawing
        is_drawn = lot.rank < lot.last
        is_kept = lot.rank < drawing.answers and placed.is_asked and bool(outcomes) and bool(units)
        if placed.opened.plan.rejected or not (is_drawn or is_kept):
            return None, None
        try:
            with Alarm(drawing.seconds_per_capture):
                body = redacted(_asked(placed), drawing.mask)
                drawn = self._drawn(lot, placed, body) if is_drawn else None
                kept = self._kept(lot, placed, units, outcomes, body, scoring) if is_kept else None
                return drawn, kept
        except Exception:
            # A mask may be a user's own code. What could not be masked is not kept.
            log.exception("capture %s is not kept: it could not be masked", lot.sent.capture_id)
            return None, None

    def _drawn(self, lot: Lot, placed: Placed, body: Mapping[str, Json]) -> Drawn:
        opened = placed.opened
        written = write_body(body)
        digest = sha256(written).hexdigest()
        return Drawn(
            place=lot.place,
            digest=digest,
            original=opened.digest,
            rank=lot.rank,
            arrived_at=opened.capture.started_at,
            blob=seal_request(
                lot.place,
                digest=digest,
                path=opened.request.endpoint.value,
                body=written,
                conversation=placed.conversation,
                at=opened.capture.started_at,
                keyring=self.keyring,
            ),
        )

    def _kept(
        self,
        lot: Lot,
        placed: Placed,
        units: tuple[Unit, ...],
        outcomes: Mapping[Slot, Outcome],
        body: Mapping[str, Json],
        scoring: Scoring,
    ) -> KeptAnswers | None:
        blob = sealed_answers(
            placed, units, outcomes, body=body, mask=self.drawing.mask, keyring=self.keyring
        )
        if blob is None:
            return None
        opened = placed.opened
        return KeptAnswers(
            capture_id=opened.capture.id,
            model=opened.capture.model,
            tenant=opened.capture.tenant,
            scored=judged_under(scoring, opened.capture.model, opened.backends),
            expires_at=lot.sent.at + self.drawing.plan.retention_seconds,
            blob=blob,
        )


def draw_lots(
    drawing: Drawing | None, db: Database, redis: Redis, keyring: Keyring, batch: Sequence[Placed]
) -> Lots:
    """Decide for a batch, with one question to the database and one to Redis; nothing without a `drawing`."""
    if drawing is None:
        return Lots(drawing=Drawing(), db=db, keyring=keyring, by_capture={})
    sent = {placed.opened.capture.id: _sent(placed) for placed in batch}
    places = {
        placed.opened.capture.id: place_of(
            drawing.plan,
            model=placed.opened.capture.model,
            stratum=stratum_of(placed),
            tenant=placed.opened.capture.tenant,
            at=placed.opened.capture.started_at,
        )
        for placed in batch
    }
    last = rooms(db, drawing.plan, places.values())
    earlier = earlier_tiers(redis, list(sent.values()), window=drawing.resend_seconds)
    return Lots(
        drawing=drawing,
        db=db,
        keyring=keyring,
        by_capture={
            capture_id: Lot(
                place=places[capture_id],
                rank=rank_of(drawing.salt, placed.opened.digest),
                last=last[places[capture_id].key],
                sent=sent[capture_id],
                earlier=earlier.get(capture_id),
                prefix=_prefix(drawing, placed),
            )
            for placed in batch
            for capture_id in [placed.opened.capture.id]
        },
    )


def stratum_of(placed: Placed) -> str:
    """Length, structure, streaming and language: `8k-32k/structured/stream/zh`."""
    told = dict(each.split("=", 1) for each in placed.opened.marginals)
    return f"{placed.opened.capture.stratum}/{told.get('language', 'other')}"


def _prefix(drawing: Drawing, placed: Placed) -> PromptPrefix | None:
    """The beginnings of its prompt; None where they are not kept, or there is no key to hash them under."""
    if not drawing.prefixes or not drawing.salt or not drawing.share:
        return None
    capture = placed.opened.capture
    blocks = prompt_blocks(placed.opened.request, key=drawing.salt)
    return PromptPrefix(
        capture_id=capture.id,
        model=capture.model,
        tenant=capture.tenant,
        at=capture.started_at,
        tokens=blocks.tokens,
        named=blocks.named,
        share=drawing.share,
        together=capture.conversation is not None,
    )


def _asked(placed: Placed) -> dict[str, Json]:
    """The request as it is put to a tier, under the name that clients send."""
    return {**without_traces(placed.opened.request), "model": placed.opened.capture.model}


def _sent(placed: Placed) -> Sent:
    capture, chain = placed.opened.capture, message_chain(placed.opened.request)
    return Sent(
        capture_id=capture.id,
        model=capture.model,
        tier=capture.tier,
        tenant=capture.tenant,
        prompt=chain[-1] if chain else placed.opened.digest,  # a prompt of token ids has no messages
        at=capture.started_at,
        together=capture.conversation is not None,
    )
