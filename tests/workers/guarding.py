"""What the guard's tests share: a ladder of three tiers, evidence on them, approvals, and what came of it."""

from __future__ import annotations

from collections.abc import Callable

import redis

from service.decision.evidence import Attribution
from service.decision.policy import Asked, Criterion, Gate, OnHarm, Policy
from service.decision.ramp import AT_ONCE, Promotion, with_share
from service.fleet import Backend, Ladder, Limits, Route, Tier
from service.store.decided.approvals import Approval, put_approval
from service.store.decided.decisions import Entry, read
from service.store.decided.routes import current_route
from service.store.redis.captures import Captures
from service.store.scored.pairs import record
from service.store.scored.units import PairRow, Unit
from service.store.sql.database import Database
from service.store.verdicts.standing import Question
from tests.workers.scripted import Script, ScriptedBackend
from workers.watching import Guard

Backends = Callable[[Script], ScriptedBackend]
GuardMaker = Callable[..., Guard]
NOW = 1_000_000.0
DOWN = "http://127.0.0.1:9"


def epoch_of(model: str, tier: str) -> str:
    return f"epoch of {tier}"


def policy(
    on_harm: OnHarm = OnHarm.ROLL_BACK, *, margin: float = 0.2, gates: tuple[Gate, ...] = ()
) -> Policy:
    """Quality alone, and the gates named."""
    asked = dict.fromkeys(Gate, Asked.OFF) | dict.fromkeys((Gate.QUALITY, *gates), Asked.REQUIRED)
    return Policy(
        criteria=(Criterion(evaluator="structured_output", margin=margin, min_pairs=20),),
        gates=asked,
        on_harm=on_harm,
    )


def guard_over(
    db: Database,
    client: redis.Redis,
    *urls: str,
    on_harm: OnHarm = OnHarm.ROLL_BACK,
    margin: float = 0.2,
    gates: tuple[Gate, ...] = (),
    promotion: Promotion = AT_ONCE,
    rooms: tuple[int | None, ...] = (None, None, None),
    limits: Limits = Limits(),
    epoch_of: Callable[[str, str], str] = epoch_of,
    attribution: Attribution | None = None,
) -> Guard:
    """A guard over bf16, w8a8 and w4a16 at these addresses."""
    tiers = tuple(
        Tier(name=name, model=name, backends=(Backend(url=url, max_concurrency=room),))
        for name, url, room in zip(("bf16", "w8a8", "w4a16"), urls, rooms, strict=True)
    )
    return Guard(
        ladders={"m": Ladder(model="m", tiers=tiers, limits=limits)},
        question=Question(
            policy=policy(on_harm, margin=margin, gates=gates),
            epoch_of=epoch_of,
            attribution_of=lambda model, tier: attribution,
        ),
        db=db,
        captures=Captures(client),
        promotion=promotion,
        health_seconds=20.0,
    )


def judged(
    db: Database,
    tier: str,
    *,
    harm: bool,
    benefit: bool = False,
    count: int = 20,
    at: float = NOW,
    epoch: str | None = None,
    criterion: str = "structured_output",
) -> None:
    """As many independent pairs, all of them harm, or benefit, or fine, taken up at that moment."""
    for number in range(count):
        capture_id = f"p-{tier}-{number}-{harm}-{benefit}-{at}-{epoch}"
        row = PairRow(
            outcome="scored",
            baseline_passed=not benefit,
            candidate_passed=not harm,
            baseline_label="not_json" if benefit else "ok",
            candidate_label="not_json" if harm else "ok",
        )
        unit = Unit(
            capture_id=capture_id,
            model="m",
            tier=tier,
            arm="candidate",
            evaluator=criterion,
            version="1",
            epoch=epoch or epoch_of("m", tier),
            conversation=capture_id,
            stratum="s",
            tenant="t",
            digest="",
            counted=True,
            rows=(row,),
            at=at,
        )
        record(db, capture_id=capture_id, owner="w", units=(unit,), at=at)


def approve(
    db: Database,
    tier: str,
    *,
    override: bool = False,
    decision: str = "accept",
    at: float = NOW,
    weight: int = 100,
    warned: tuple[str, ...] = (),
    epoch: str | None = None,
) -> None:
    """As the API does: the approval, and the tier's share of the clients taken from those that serve."""
    approval = Approval(
        model="m",
        tier=tier,
        actor="somebody",
        at=at,
        override=override,
        reason="we know" if override else None,
        epoch=epoch or epoch_of("m", tier),
        policy_digest="d",
        verdict={
            "decision": decision,
            "findings": [{"criterion": criterion, "warn": True} for criterion in warned],
        },
    )
    known = current_route(db, "m")
    before = {"bf16": 100} if known is None else dict(known.weights)
    share = max(weight, before.get(tier, 0))
    put_approval(db, approval, route=Route(model="m", weights=with_share(before, tier, share)))


def serving(guard: Guard) -> dict[str, int]:
    route = current_route(guard.db, "m")
    assert route is not None
    return {name: weight for name, weight in route.weights.items() if weight}


def actions(guard: Guard) -> list[tuple[str, str]]:
    return [(entry.actor, entry.action) for entry in read(guard.db, "m")]


def log_of(guard: Guard, action: str) -> list[Entry]:
    return [entry for entry in read(guard.db, "m") if entry.action == action]
