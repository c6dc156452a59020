"""A house that people look at: two models whose tiers are in every state, with all that a page can show.

`CHAT` has a ladder of four: fp8-kv is approved and serves a fifth, w8a8 could be approved, w4a16 does harm.
`CODE` has four: w8a8 serves a tenth although it does harm by now, fp8-kv's approval has expired, w4a16 has
no pair. Texts of discordant pairs wait for people; one job is over, one failed, one runs; proxies lost some;
a webhook was given up. It is filled once a session and copied: see `furnished` in conftest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import httpx

from evaluators.rubrics import Rubric
from service.approval.answers import policy_digest, verdict_out
from service.approval.app import create_app
from service.approval.config import Adjudicating, ApiConfig
from service.dashboard.rooms import front_of
from service.decision.policy import Asked, Criterion, Gate, Hypothesis, Policy
from service.decision.verdict import Decision, Verdict
from service.fleet import Backend, Ladder, Route, Tier
from service.report.forms import Form, Written, written
from service.report.gathering.composing import Sources
from service.report.gathering.kept import report_of
from service.report.words import Language
from service.store.access import tokens
from service.store.decided.approvals import Approval, put_approval
from service.store.decided.routes import set_route
from service.store.labels.adjudication import Drawn, item_id
from service.store.labels.kept_text import AnswerText, Call, PairText, Turn, seal_text
from service.store.load.jobs import JobState
from service.store.load.manifest import Manifest
from service.store.outgoing.callbacks import CallbackState
from service.store.redis.capture import capture_id
from service.store.redis.captures import Captures
from service.store.redis.counters import Count, Dropped, Skipped, ledger_key
from service.store.scored.leases import expire, lose
from service.store.scored.pairs import record
from service.store.scored.units import PairRow, Unit
from service.store.sql.callback_tables import gate_callbacks
from service.store.sql.database import Database
from service.store.sql.schema import ledger_counters, ledger_instances
from service.store.verdicts.looks import keep_looks
from service.store.verdicts.standing import Question, read_standing
from tests.adjudicating import KEYRING
from tests.approval.live import Clock, LiveApi, Upstream, serving
from tests.report.gathering.jobs import job_over, run
from tests.workers.load_tiers import ModelTier, tiers

NOW = Clock().at
DAY = timedelta(days=1).total_seconds()
CHAT, CODE = "acme/chat-32b", "acme/code-7b"
STRUCTURED, RECALL, REFUSAL = "structured_output", "long_context_recall", "refusal"
EVALUATORS = (STRUCTURED, RECALL, REFUSAL)
PAIRS = 120
"""Of each tier under each evaluator."""
STRATA = (
    "under-2k/free/stream",
    "under-2k/structured/whole",
    "2k-8k/free/stream",
    "8k-32k/structured/stream",
)
UNCOVERED = "32k-128k/free/stream"
"""In the traffic, and in no evidence."""
HARMS: Mapping[tuple[str, str], Mapping[str, tuple[int, int]]] = {
    (CHAT, "fp8-kv"): {STRUCTURED: (1, 1)},
    (CHAT, "w8a8"): {STRUCTURED: (2, 1), REFUSAL: (1, 0)},
    (CHAT, "w4a16"): {STRUCTURED: (52, 3), RECALL: (20, 2), REFUSAL: (6, 2)},
    (CODE, "fp8-kv"): {STRUCTURED: (0, 1)},
    (CODE, "w8a8"): {STRUCTURED: (48, 2)},
}
"""Harms and benefits by model and tier; a tier that is not here has no pairs."""
NAMES = {CHAT: ("bf16", "fp8-kv", "w8a8", "w4a16"), CODE: ("bf16", "fp8-kv", "w8a8", "w4a16")}
POLICY = Policy(
    criteria=(
        Criterion(evaluator=STRUCTURED, margin=0.2, min_pairs=20),
        Criterion(evaluator=RECALL, margin=0.2, min_pairs=20),
        Criterion(evaluator=REFUSAL, margin=0.2, min_pairs=20, hypothesis=Hypothesis.EQUIVALENT),
    ),
    gates={**dict.fromkeys(Gate, Asked.OFF), Gate.QUALITY: Asked.REQUIRED},
)
VERSIONS = dict.fromkeys(EVALUATORS, "1")
RUBRIC = Rubric(question="Is this answer fit for use?", passes="it is.", fails="it is not.")
HOSTILE = "<script>alert(1)</script><svg onload=alert(2)>\x1b[31mred\u202egnp.exe\u200b\x00"


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """Names of what is in it."""

    done_job: str
    failed_job: str
    running_job: str
    items: tuple[str, ...]
    """Pairs of `CHAT` w4a16 that wait for labels."""


def epoch_of(model: str, tier: str) -> str:
    """As the jobs of `tests.report.gathering.jobs` name it."""
    return f"epoch of {tier}"


QUESTION = Question(policy=POLICY, epoch_of=epoch_of, versions=VERSIONS)


def ladders(url: str = "http://127.0.0.1:9") -> dict[str, Ladder]:
    """Both models, behind one backend."""
    backend = (Backend(url=url, max_concurrency=64),)
    return {
        model: Ladder(
            model=model,
            tiers=tuple(
                Tier(
                    name=name,
                    model="m",
                    backends=backend,
                    shadow=backend,
                    price_per_hour=4.0,
                    declares={"weights": name, "engine": "vllm 0.9"},
                )
                for name in names
            ),
        )
        for model, names in NAMES.items()
    }


def furnish(db: Database) -> House:
    """Fill an empty database."""
    items = [*_pairs(db, CHAT), *_pairs(db, CODE)]
    for model in NAMES:
        _ledger(db, model)
    _approve(
        db, CHAT, "fp8-kv", Route(model=CHAT, weights={"bf16": 80, "fp8-kv": 20}), expires_at=NOW + 30 * DAY
    )
    _approve(db, CODE, "fp8-kv", None, at=NOW - 9 * DAY, expires_at=NOW - DAY)
    set_route(
        db,
        Route(model=CODE, weights={"bf16": 90, "w8a8": 10}),
        at=NOW - 2 * DAY,
        actor="ops",
        action="promote",
        tier="w8a8",
    )
    for model in NAMES:
        _looks(db, model)
    _webhook(db)
    return _jobs(db, tuple(items))


def sources(db: Database) -> Sources:
    """Where reports come from, without Redis."""
    return Sources(db=db, captures=None, ladders=ladders(), question=QUESTION)


@contextmanager
def house_api(db: Database, captures: Captures, **changes: Any) -> Iterator[LiveApi]:
    """The house behind a real server, with a token for each scope and one for `CHAT` alone (`chat`)."""
    clock, upstream = Clock(), Upstream()
    secrets = {
        scope: tokens.create(db, name=f"test-{scope}", scopes=[scope], now=NOW)
        for scope in ("read", "label", "approve", "admin")
    }
    secrets["chat"] = tokens.create(db, name="test-chat", scopes=["approve"], models=[CHAT], now=NOW)
    known = Sources(db=db, captures=None, ladders=ladders(upstream.url), question=QUESTION)

    def write(job: str, form: str, language: str, now: float) -> Written:
        return written(report_of(known, job, now=now), Form(form), Language(language))

    config = ApiConfig(
        **{
            "ladders": known.ladders,
            "policy": POLICY,
            "epoch_of": epoch_of,
            "evaluators": VERSIONS,
            "probe_seconds": 20.0,
            "reports": write,
            "adjudication": Adjudicating(
                keyring=KEYRING,
                rubrics=dict.fromkeys(EVALUATORS, RUBRIC),
                queued=EVALUATORS,
            ),
            **changes,
        }
    )
    try:
        with serving(create_app(config, db, captures, front=front_of(), now=clock)) as url:
            api = LiveApi(
                url=url,
                db=db,
                captures=captures,
                clock=clock,
                secrets=secrets,
                config=config,
                upstream=upstream,
            )
            try:
                yield api
            finally:
                for client in api.clients:
                    client.close()
    finally:
        upstream.stop()


def browser(api: LiveApi, scope: str | None = None) -> httpx.Client:
    """A browser, logged in with the token of a scope."""
    opened = api.client(**{"Accept": "text/html"})
    if scope is not None:
        answer = opened.post("/login", data={"token": api.secrets[scope], "next": "/"})
        assert answer.status_code == 303, answer.text
    return opened


def _pairs(db: Database, model: str) -> list[str]:
    """A capture at a time, with what it says about every tier, as workers record them."""
    items: list[str] = []
    for number in range(PAIRS):
        name = capture_id("proxy-1", number + 1, model)
        at = NOW - 6 * DAY + number * 6 * DAY / PAIRS
        units = [
            _unit(model, tier, evaluator, number, name, at)
            for (known, tier) in HARMS
            if known == model
            for evaluator in EVALUATORS
        ]
        units += [_unit(model, "bf16", evaluator, number, name, at) for evaluator in EVALUATORS]
        drawn = [
            _drawn(unit, at, number)
            for unit in units
            if unit.arm == "candidate" and unit.rows[0].harm and (unit.tier == "w4a16" or number < 2)
        ]
        items += [each.id for each in drawn if (each.model, each.tier) == (CHAT, "w4a16")]
        assert record(db, capture_id=name, owner="worker-1", units=units, drawn=drawn, at=at)
    return items


def _unit(model: str, tier: str, evaluator: str, number: int, name: str, at: float) -> Unit:
    """Harms come first under each evaluator, then benefits, spread over the captures; the rest is clean."""
    harms, benefits = HARMS.get((model, tier), {}).get(evaluator, (0, 0))
    place = number * 7 % PAIRS
    baseline, candidate = not harms <= place < harms + benefits, place >= harms
    control = tier == "bf16"
    if control and number == 11:
        candidate = False  # the noise floor is not zero
    reasons = {
        STRUCTURED: "expected JSON, found prose",
        RECALL: "the value at depth 3/4 is missing",
        REFUSAL: "refuses what the other one answers",
    }
    failed = {STRUCTURED: "not_json", RECALL: "missing", REFUSAL: "refuse"}[evaluator]
    row = PairRow(
        outcome="scored",
        baseline_passed=baseline,
        candidate_passed=candidate,
        baseline_label="ok" if baseline else failed,
        candidate_label="ok" if candidate else failed,
        baseline_reason="" if baseline else reasons[evaluator],
        candidate_reason="" if candidate else reasons[evaluator],
        own_stratum="depth=third-quarter" if evaluator == RECALL else "",
    )
    stratum = STRATA[number % len(STRATA)]
    return Unit(
        capture_id=name,
        model=model,
        tier=tier,
        arm="control" if control else "candidate",
        evaluator=evaluator,
        version="1",
        epoch=epoch_of(model, tier),
        conversation=f"conversation of {name}",
        stratum=stratum,
        marginals=(
            f"length={stratum.split('/')[0]}",
            f"structured={stratum.split('/')[1]}",
            f"language={('en', 'zh')[number % 2]}",
        ),
        tenant=f"tenant-{number % 3}",
        digest="",
        counted=True,
        rows=(row,),
        at=at,
    )


def _drawn(unit: Unit, at: float, number: int) -> Drawn:
    texts = (
        PairText(
            turns=(Turn(role="user", text="List the three largest lakes of Finland as JSON."),),
            asked='{"type": "object", "required": ["lakes"]}',
            baseline=AnswerText(text='{"lakes": ["Saimaa", "Päijänne", "Inari"]}', finish_reason="stop"),
            candidate=AnswerText(
                text="Sure! The lakes are Saimaa, Inari and Päijänne.", finish_reason="stop"
            ),
        ),
        PairText(
            turns=(
                Turn(role="system", text="You book trains."),
                Turn(role="user", text="Two seats to Tampere tomorrow at nine, please."),
            ),
            baseline=AnswerText(
                calls=(Call(name="book", arguments='{"to": "Tampere", "seats": 2, "at": "09:00"}'),),
                finish_reason="tool_calls",
            ),
            candidate=AnswerText(
                calls=(Call(name="book", arguments='{"to": "Tampere", "seats": "2", "at": "9"'),),
                finish_reason="length",
            ),
        ),
        PairText(
            turns=(Turn(role="user", text=f"What does this do? {HOSTILE}"),),
            baseline=AnswerText(text="It shows a message.\nTwice.", finish_reason="stop"),
            candidate=AnswerText(text=f"It says: {HOSTILE}", finish_reason="stop"),
        ),
    )
    return Drawn(
        unit_id=unit.id,
        item=0,
        model=unit.model,
        tier=unit.tier,
        epoch=unit.epoch,
        evaluator=unit.evaluator,
        version=unit.version,
        baseline_failed=False,
        candidate_failed=True,
        chance=1.0,
        by_two=False,
        sealed=seal_text(item_id(unit.id, 0), texts[number % len(texts)], KEYRING),
        queued_at=at,
        expires_at=NOW + 30 * DAY,
    )


def _ledger(db: Database, model: str) -> None:
    """A proxy that stopped in order; three captures expired, and two were lost."""
    at = NOW - 3600
    numbers = iter(range(PAIRS + 1, PAIRS + 6))
    expire(db, [capture_id("proxy-1", next(numbers), model) for _ in range(3)], at=at)
    lose(db, [capture_id("proxy-1", next(numbers), model) for _ in range(2)], at=at)
    shipped = PAIRS + 5
    skipped = {Skipped.NOT_SAMPLED: 2000, Skipped.TOO_LARGE: 12, Skipped.NOT_GENERATION: 40}
    dropped = {Dropped.BUFFER_FULL: 4}
    sampled = shipped + sum(dropped.values())
    seen = sampled + sum(skipped.values())
    counts = {
        ledger_key(Count.SEEN, model): seen,
        ledger_key(Count.SAMPLED, model): sampled,
        ledger_key(Count.SHIPPED, model): shipped,
        **{ledger_key(Count.SKIPPED, model, why): amount for why, amount in skipped.items()},
        **{ledger_key(Count.DROPPED, model, why): amount for why, amount in dropped.items()},
        **{ledger_key(Count.TRAFFIC, model, stratum): 480 for stratum in STRATA},
        ledger_key(Count.TRAFFIC, model, UNCOVERED): 221,
    }
    instance = f"proxy-1 {model}"
    with db.write() as connection:
        connection.execute(ledger_instances.insert().values(instance=instance, closed=True, written_at=at))
        connection.execute(
            ledger_counters.insert(),
            [{"instance": instance, "counter": name, "amount": amount} for name, amount in counts.items()],
        )


def _approve(
    db: Database,
    model: str,
    tier: str,
    route: Route | None,
    *,
    at: float = NOW - 3 * DAY,
    expires_at: float | None = None,
) -> None:
    standing = read_standing(db, ladders()[model], QUESTION, now=NOW)
    verdict = verdict_out(standing, standing.rung(tier), POLICY)
    approval = Approval(
        model=model,
        tier=tier,
        actor="ops",
        at=at,
        expires_at=expires_at,
        epoch=epoch_of(model, tier),
        policy_digest=policy_digest(POLICY),
        evaluators=VERSIONS,
        verdict=verdict.model_dump(mode="json"),
    )
    put_approval(db, approval, route=route)


def _looks(db: Database, model: str) -> None:
    """What the guard found each day: the limits of now, wider the fewer pairs there were."""
    standing = read_standing(db, ladders()[model], QUESTION, now=NOW)
    verdicts = [rung.verdict for rung in standing.rungs if rung.verdict is not None]
    for day in range(1, 6):
        keep_looks(db, [_earlier(each, day / 6) for each in verdicts], at=NOW - (6 - day) * DAY)


def _earlier(verdict: Verdict, share: float) -> Verdict:
    """With that share of the pairs."""
    findings = []
    for each in verdict.findings:
        found, limits = each.estimate or 0.0, each.interval
        lower = max(-1.0, found - (found - limits.lower) / share)
        upper = min(1.0, found + (limits.upper - found) / share)
        n, harm, benefit = (int(share * count) for count in (each.n, each.harm, each.benefit))
        findings.append(
            replace(
                each,
                n=n,
                conversations=n,
                harm=harm,
                benefit=benefit,
                interval=replace(limits, lower=lower, upper=upper),
                decision=each.decision if share > 0.6 else Decision.UNDECIDED,
            )
        )
    return replace(verdict, findings=tuple(findings))


def _webhook(db: Database) -> None:
    """A message to a chat that nobody takes any more."""
    with db.write() as connection:
        connection.execute(
            gate_callbacks.insert().values(
                callback_id="given-up",
                tool="webhook:ops-chat",
                delivery="",
                model=CODE,
                tier="w8a8",
                basis="harm",
                place="{}",
                state=CallbackState.GIVEN_UP,
                attempts=12,
                reports=0,
                told="",
                problem="the receiver answered 404",
                due_at=NOW - DAY,
                created_at=NOW - 2 * DAY,
                ended_at=NOW - DAY,
            )
        )


def _jobs(db: Database, items: tuple[str, ...]) -> House:
    """One that is over and has its report, one that failed, one that runs."""
    manifest, blocks = run(
        tiers(
            **{
                "bf16": ModelTier(capacity=10.0, misses=0.002),
                "fp8-kv": ModelTier(capacity=13.0, misses=0.002),
                "w8a8": ModelTier(capacity=20.0, misses=0.002),
            }
        )
    )
    chat = Manifest.of({**manifest.document, "model": CHAT})
    code = Manifest.of({**manifest.document, "model": CODE})
    failed = job_over(
        db,
        chat,
        blocks[:4],
        began=NOW - 5 * DAY,
        state=JobState.FAILED,
        reason="block 4 ended its workers twice",
    )
    done = job_over(db, chat, blocks, began=NOW - 2 * DAY)
    running = job_over(db, code, blocks[:9], began=NOW - 1800, state=None)
    report_of(sources(db), done.job_id, now=NOW - 2 * DAY + 60 * (len(blocks) + 1))
    return House(done_job=done.job_id, failed_job=failed.job_id, running_job=running.job_id, items=items)
