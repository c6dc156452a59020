"""Builders for the worker's tests: exchanges as a proxy ships them, a bench as a worker child has it."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import evaluators
from service.decision.policy import DECISIVE_BY_DEFAULT
from service.decision.tally import Tally
from service.fleet import Backend, Ladder, Tier
from service.store.redis.capture import Capture, Ending, Keyring, capture_id, seal_all
from service.store.redis.captures import open_captures
from service.store.redis.intake import Shipment
from service.store.redis.shipping import CaptureStore
from service.store.redis.spending import Budget
from service.store.redis.worker_counts import WorkerCounts
from service.store.scored.evidence import read_tallies
from service.store.sql.database import Database
from service.store.traffic.account import PairAccount
from service.store.traffic.ledger import account
from tests.workers.scripted import Reply, Script, completion
from workers.answering import Answering
from workers.backends import Limits, Shadow
from workers.drawing import Drawing
from workers.probes import Probing
from workers.replay import Bench, Terms
from workers.units import Scoring

MODEL = "m"
QUEUE = "replay"
KEYRING = Keyring(current="630dcd29", keys={"630dcd29": bytes(range(32))})
"""The id is what `service.settings` makes of this key."""
SCORING = Scoring(
    evaluators=evaluators.ALL,
    onlookers=frozenset(each.name for each in evaluators.ALL) - {*DECISIVE_BY_DEFAULT},
    epoch_of=lambda model, tier: f"epoch of {tier}",
    seconds_per_answer=2.0,
)
"""As under a policy that names no criteria."""
_sequence = itertools.count(1)

SCHEMA = {
    "type": "object",
    "properties": {"order": {"type": "integer"}},
    "required": ["order"],
    "additionalProperties": False,
}


def question(text: str, *, structured: bool = False, **more: Any) -> dict[str, Any]:
    """Body of a chat completion request with one user message."""
    body: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": text}], **more}
    if structured:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "order", "schema": SCHEMA},
        }
    return body


def exchange(
    body: Mapping[str, Any],
    answer: str | None = "Fine.",
    *,
    tier: str = "bf16",
    ending: Ending = Ending.COMPLETE,
    status: int | None = 200,
    started_at: float | None = None,
    **more: Any,
) -> Capture:
    """A captured exchange whose client got `answer`."""
    response = b"" if answer is None else completion(answer)
    if status is not None and status >= 400:
        response = b'{"error": {"message": "no"}}'
    return Capture(
        id=capture_id("proxy", next(_sequence), MODEL),
        model=MODEL,
        tier=tier,
        path="/v1/chat/completions",
        request_body=json.dumps(body).encode(),
        status=status,
        response_type="application/json",
        response_body=response,
        ending=ending,
        started_at=time.time() if started_at is None else started_at,
        tenant="t",
        stratum="short",
        **more,
    )


def ship(
    redis_url: str, captures: Sequence[Capture], *, ttl_seconds: int = 600, batch: int = 16
) -> list[str]:
    """Put captures where a proxy puts them, with one message for each batch; their ids."""

    async def go() -> None:
        store = CaptureStore.open(redis_url, redis_url, timeout=60)
        for start in range(0, len(captures), batch):
            part = captures[start : start + batch]
            await store.ship(
                [
                    Shipment(id=each.id, blob=blob)
                    for each, blob in zip(part, seal_all(part, KEYRING), strict=True)
                ],
                ttl_seconds=ttl_seconds,
                max_bytes=2**30,
                queue=QUEUE,
            )
        await store.aclose()

    asyncio.run(go())
    return [each.id for each in captures]


def tier(name: str, url: str | None, *, shadow: str | None = None, api_key: str | None = None) -> Tier:
    """A tier behind one backend."""
    return Tier(
        name=name,
        model=f"{MODEL}-{name}",
        backends=(Backend(url=url or "http://127.0.0.1:9", api_key=api_key),),
        shadow=() if shadow is None else (Backend(url=shadow, api_key=api_key),),
    )


@dataclass(kw_only=True)
class BenchMaker:
    """Makes benches over one Valkey and one database, and closes them."""

    redis_url: str
    db: Database
    made: list[Bench] = field(default_factory=list)

    def __call__(
        self,
        *tiers: Tier,
        limits: Limits | None = None,
        probing: Probing | None = None,
        tokens_per_day: int | None = None,
        probes_per_day: int | None = None,
        lease_seconds: float = 120.0,
        on_serving: bool = False,
        stopping: Callable[[], bool] = lambda: False,
        drain_seconds: float = 10.0,
        keyring: Keyring = KEYRING,
        scoring: Callable[[Database], Scoring] | None = None,
        drawing: Drawing | None = None,
        repeats: float = 0.0,
    ) -> Bench:
        captures = open_captures(self.redis_url)
        chosen = limits or Limits(timeout_seconds=5, pause_seconds=0.01)
        bench = Bench(
            worker="replay@test",
            terms=Terms(
                ladders={MODEL: Ladder(model=MODEL, tiers=tiers)},
                probing=lambda model: probing or Probing(per_capture=0),
                scoring=scoring or (lambda db: SCORING),
                probes_per_day=lambda model: probes_per_day,
                on_serving=on_serving,
                drawing=drawing,
                repeats=repeats,
                lease_seconds=lease_seconds,
            ),
            keyring=keyring,
            db=self.db,
            captures=captures,
            budget=Budget(captures.redis, tokens_per_day=tokens_per_day),
            counts=WorkerCounts(captures.redis, worker="replay@test"),
            answering=Answering(lambda: Shadow(chosen), stopping=stopping, drain_seconds=drain_seconds),
        )
        self.made.append(bench)
        return bench

    def close(self) -> None:
        for bench in self.made:
            bench.answering.close()
            bench.captures.close()


GOOD, BROKEN = '{"order": 1}', '{"order": 1'
"""Answers to a structured `question`: one that satisfies `SCHEMA`, one that does not parse."""


def always(text: str) -> Script:
    """A backend that says the same to everybody."""
    return lambda asked: Reply(text=text)


def orders(count: int) -> list[Capture]:
    """As many conversations, each asking for JSON that the serving tier gave."""
    return [exchange(question(f"order number {n}", structured=True), GOOD) for n in range(count)]


def tally(bench: Bench, of: str, evaluator: str, arm: str = "candidate") -> Tally | None:
    """What is counted so far about a tier."""
    found = read_tallies(bench.db, model=MODEL, tier=of, arm=arm, epoch=f"epoch of {of}")
    return found.get(evaluator)


def pairs_due(bench: Bench) -> dict[tuple[str, str, str], PairAccount]:
    """The pair ledger, by tier, arm and evaluator."""
    return {(each.tier, each.arm, each.evaluator): each for each in account(bench.db).pairs}
