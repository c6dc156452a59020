"""Where every tier of a ladder stands: its evidence, verdict, approval and share of the clients.

The one read model behind API, dashboard and guard, so that they cannot disagree. Verdicts are computed
from the tallies at every reading; nothing of them is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from redis import RedisError
from sqlalchemy import Connection

from service.decision.evidence import Attribution, Evidence
from service.decision.ladder import decide_ladder, with_skips
from service.decision.policy import Gate, Policy, Role
from service.decision.ramp import AT_ONCE
from service.decision.thresholds import Thresholds, thresholds
from service.fleet import Ladder, Route
from service.moments import moment
from service.store.decided.interventions import Intervention
from service.store.decided.routes import current_route
from service.store.redis.captures import Captures
from service.store.scored.adjudicated import labels_at
from service.store.scored.evidence import Place, Versions
from service.store.scored.repeats import energies_at
from service.store.scored.units import Arm
from service.store.sql.database import Database
from service.store.traffic.account import LedgerAccount
from service.store.traffic.ledger import account
from service.store.verdicts.epochs import Epochs, Look, fix
from service.store.verdicts.ladder_counts import read_counts
from service.store.verdicts.ladder_facts import LadderFacts, read_facts
from service.store.verdicts.rung import Rung
from service.strata import UNIVERSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a verdict is asked under."""

    policy: Policy
    epoch_of: Callable[[str, str], str]
    """The epoch of (model, tier) that counts now."""
    control_on_serving: bool = False
    """Whether the control may run on backends that serve clients."""
    attribution_of: Callable[[str, str], Attribution | None] = lambda model, tier: None
    """What the engines of (model, tier) and its baseline say of themselves; None when nothing."""
    universe: frozenset[str] = UNIVERSE
    """Strata in which harm is looked for: as many as there can be, named before any evidence."""
    measured_seconds: float = AT_ONCE.measured_seconds
    """Older measurements of load runs count as none."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """The present version of each evaluator."""

    @property
    def present(self) -> Versions:
        """Of evaluators that are only shown: no epoch has their versions."""
        shown = [each.evaluator for each in self.policy.visible if each.role is Role.SHOWN]
        return {name: self.versions[name] for name in shown if name in self.versions}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A whole ladder as it stands."""

    ladder: Ladder
    route: Route
    """The one that is followed."""
    rungs: tuple[Rung, ...]
    at: float
    """Unix seconds, of which ages and ends of approvals are told; whoever kept it may show it later."""
    gone: tuple[str, ...] = ()
    """Tiers that the route in force names and that are not configured (any more)."""

    def rung(self, tier: str) -> Rung:
        """The rung of that tier; KeyError when there is none."""
        return self.rungs[self.ladder.rung(tier)]


def issued_route(db: Database, ladder: Ladder) -> Route:
    """The route in force; before the first change the baseline serves alone, under version 0."""
    return current_route(db, ladder.model) or Route.only(ladder.model, ladder.baseline.name)


def route_of(db: Database, ladder: Ladder) -> Route:
    """The route that is followed: the one in force, but while it names a tier that is not configured (any
    more) proxies let the baseline serve alone.
    """
    return _followed(ladder, issued_route(db, ladder))


def _followed(ladder: Ladder, issued: Route) -> Route:
    return replace(issued, weights={ladder.baseline.name: 100}) if _gone(ladder, issued) else issued


def _gone(ladder: Ladder, issued: Route) -> tuple[str, ...]:
    return tuple(sorted(set(issued.weights) - {tier.name for tier in ladder.tiers}))


def read_standing(
    db: Database, ladder: Ladder, question: Question, *, now: float, up_to: str | None = None
) -> Standing:
    """Every rung, or those from the baseline to `up_to`.

    All are read: a decision depends on the rungs below it only, but what is shown beside it on all of them.
    """
    last = len(ladder.tiers) if up_to is None else ladder.rung(up_to) + 1
    tiers = ladder.candidates
    with db.one_moment() as connection:
        epochs = [question.epoch_of(ladder.model, tier.name) for tier in tiers]
        facts = read_facts(connection, ladder.model, epochs)
        issued = facts.route or Route.only(ladder.model, ladder.baseline.name)
        route = _followed(ladder, issued)
        seen = _look(connection, ladder, question, facts, route=route, now=now)
    evidence = _fixed(db, ladder, seen, facts.epochs, question, now=now)
    evidence = with_skips(question.policy, evidence)
    verdicts = decide_ladder(question.policy, evidence)
    rungs = [
        Rung(
            tier=ladder.baseline,
            position=0,
            weight=route.weights.get(ladder.baseline.name, 0),
            evidence=None,
            verdict=None,
            below=None,
            approval=None,
            expired=False,
        )
    ]
    for position, (tier, known, verdict) in enumerate(zip(tiers, evidence, verdicts, strict=True), start=1):
        below = rungs[-1].verdict
        approval = facts.approvals.get(tier.name)
        rungs.append(
            Rung(
                tier=tier,
                position=position,
                weight=route.weights.get(tier.name, 0),
                evidence=known,
                verdict=verdict,
                below=None if below is None else below.decision,
                approval=approval,
                expired=approval is not None and approval.expired(now),
                holds=facts.holds.get((tier.name, known.epoch), ()),
            )
        )
    return Standing(ladder=ladder, route=route, rungs=tuple(rungs[:last]), at=now, gone=_gone(ladder, issued))


def read_account(db: Database, captures: Captures, model: str | None = None, *, now: float) -> LedgerAccount:
    """The mirror ledger; without Redis as SQL has it, and the account says so."""
    try:
        return account(db, captures, model, now=now)
    except RedisError as error:
        known = account(db, None, model, now=now)
        problem = (
            f"Redis does not answer ({type(error).__name__}): counters are as last copied, and captures that "
            "wait cannot be told from lost ones"
        )
        return replace(known, problems=(*known.problems, problem))


def _by(decided: Intervention) -> str:
    """Who decided, when, and why."""
    return f"by {decided.actor} at {moment(decided.at)}: {decided.reason}"


def _look(
    connection: Connection,
    ladder: Ladder,
    question: Question,
    facts: LadderFacts,
    *,
    route: Route,
    now: float,
) -> list[Evidence]:
    """All that is known of these candidates in the epochs that count now, which are still to be fixed."""
    model, baseline = ladder.model, ladder.baseline
    candidates = {
        tier.name: Place(tier.name, Arm.CANDIDATE.value, question.epoch_of(model, tier.name))
        for tier in ladder.candidates
    }
    control = Place(baseline.name, Arm.CONTROL.value, question.epoch_of(model, baseline.name))
    places = list(candidates.values())
    seen = read_counts(
        connection,
        model,
        places,
        control,
        facts,
        policy=question.policy,
        universe=question.universe,
        present=question.present,
    )
    measured = {key: found.measured(now=now) for key, found in facts.measurements.items()}
    labels = labels_at(connection, model, places, question.present) if facts.labelled else {}
    energy = energies_at(connection, model, places, control, question.present) if facts.repeated else {}
    can_run = bool(baseline.shadow) or question.control_on_serving or not route.weights.get(baseline.name)
    found = []
    for tier in ladder.candidates:
        place = candidates[tier.name]
        found.append(
            Evidence(
                model=model,
                tier=tier.name,
                epoch=place.epoch,
                tiers_under_test=len(ladder.candidates),
                tallies=seen.tallies[place],
                control=seen.tallies[control] if seen.tallies[control] or can_run else None,
                coverage=seen.coverage[place],
                attribution=question.attribution_of(model, tier.name),
                strata=seen.strata[place],
                strata_under_test=len(question.universe),
                tenants=seen.tenants[place],
                labels=labels.get(place, {}),
                energy=energy.get(place, {}),
                slo=measured.get((tier.name, place.epoch, Gate.SLO)),
                money=measured.get((tier.name, place.epoch, Gate.MONEY)),
                measured_within=question.measured_seconds,
            )
        )
    return found


def _fixed(
    db: Database,
    ladder: Ladder,
    seen: Sequence[Evidence],
    epochs: Epochs,
    question: Question,
    *,
    now: float,
) -> list[Evidence]:
    """The evidence with what an epoch fixes once: its number, the end of its criteria, its beginning."""
    policy = question.policy

    def limits_of(attempt: int) -> Thresholds:
        return thresholds(
            policy, tiers=len(ladder.candidates), attempt=attempt, strata=len(question.universe)
        )

    looks = [
        Look(tier=each.tier, epoch=each.epoch, tallies=each.tallies, control=each.control) for each in seen
    ]
    epochs = fix(db, ladder.model, looks, epochs, policy, limits_of)
    evidence = []
    for each in seen:
        start = epochs.starts.get((each.tier, each.epoch))
        skip, restored = epochs.skipped(each.tier, each.epoch), epochs.restored(each.tier)
        evidence.append(
            replace(
                each,
                attempt=epochs.attempt(each.tier, each.epoch),
                skipped=None if skip is None else _by(skip),
                restored=None if restored is None else _by(restored),
                max_pairs=epochs.plans.get((each.tier, each.epoch), {}),
                age_seconds=None if start is None else max(0.0, now - start),
            )
        )
    return evidence
