"""What is fixed once in the life of an epoch: its number, the end of each criterion, its beginning, with the
traffic until then.

An epoch is numbered at the first look that finds its minimum of pairs (statistics A5), and each criterion
learns how many pairs it may ask for when it has its own (A13). Both are kept, so that coming back to an epoch
resumes it, and no look can move the end that an earlier one has set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, select

from service.decision.ending import planned_max_pairs
from service.decision.policy import Policy
from service.decision.tally import Tally
from service.decision.thresholds import Thresholds
from service.store.decided.interventions import Intervention, Interventions, Kind, interventions_of
from service.store.scored.units import Arm
from service.store.sql.database import Database
from service.store.sql.schema import epoch_plans, epoch_starts, epochs, units
from service.store.verdicts.traffic_since import note_traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """What is known of the epochs of one model."""

    attempts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The number of each (tier, epoch) that has one."""
    plans: Mapping[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)
    """N_max by evaluator, of each (tier, epoch)."""
    starts: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """When the first capture that counts was taken, of each (tier, epoch)."""

    interventions: Interventions = field(default_factory=dict)
    """What admins decided, by tier and kind."""

    def number(self, tier: str, epoch: str) -> int:
        """The number of an epoch among all that the tier ever had, or the one that it would get now."""
        known = self.attempts.get((tier, epoch))
        return known if known is not None else 1 + sum(name == tier for name, _ in self.attempts)

    def attempt(self, tier: str, epoch: str) -> int:
        """The attempt that an epoch counts as: its number, unless alpha was restored (statistics A5).

        The epoch for which it was is attempt 1, and those numbered later follow it. Earlier ones keep their
        number: coming back to one is no fresh attempt.
        """
        number, restored = self.number(tier, epoch), self.restored(tier)
        if restored is None:
            return number
        if epoch == restored.epoch:
            return 1
        if (tier, epoch) in self.attempts and number <= restored.through:
            return number
        between = [
            name
            for (of, name), other in self.attempts.items()
            if of == tier and name != restored.epoch and restored.through < other < number
        ]
        return 2 + len(between)

    def restored(self, tier: str) -> Intervention | None:
        """The latest restoration of the tier's alpha."""
        return self.interventions.get((tier, Kind.RESTORE_ALPHA))

    def skipped(self, tier: str, epoch: str) -> Intervention | None:
        """The decision to skip the tier, while that epoch counts."""
        found = self.interventions.get((tier, Kind.SKIP))
        return found if found is not None and found.epoch == epoch else None


def epochs_of(connection: Connection, model: str) -> Epochs:
    """All that was fixed for the epochs of a model."""
    plans: dict[tuple[str, str], dict[str, int]] = {}
    found = select(epoch_plans.c.tier, epoch_plans.c.epoch, epoch_plans.c.evaluator, epoch_plans.c.max_pairs)
    for row in connection.execute(found.where(epoch_plans.c.model == model)):
        plans.setdefault((row.tier, row.epoch), {})[row.evaluator] = int(row.max_pairs)
    numbered = select(epochs.c.tier, epochs.c.epoch, epochs.c.attempt).where(epochs.c.model == model)
    started = select(epoch_starts.c.tier, epoch_starts.c.epoch, epoch_starts.c.first_pair_at).where(
        epoch_starts.c.model == model
    )
    return Epochs(
        attempts={(row.tier, row.epoch): int(row.attempt) for row in connection.execute(numbered)},
        plans=plans,
        starts={(row.tier, row.epoch): float(row.first_pair_at) for row in connection.execute(started)},
        interventions=interventions_of(connection, model),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look finds of a tier in the epoch that counts now."""

    tier: str
    epoch: str
    tallies: Mapping[str, Tally]
    control: Mapping[str, Tally] | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.tier, self.epoch

    def reached(self, policy: Policy) -> bool:
        """Whether a decisive criterion has the minimum of pairs."""
        return any(
            self.tallies.get(criterion.evaluator, Tally()).n >= criterion.min_pairs
            for criterion in policy.decisive
        )

    def to_plan(self, policy: Policy, known: Mapping[str, int]) -> list[str]:
        """Evaluators whose end is due to be fixed."""
        return [
            criterion.evaluator
            for criterion in policy.visible
            if criterion.max_pairs is None
            and criterion.evaluator not in known
            and self.tallies.get(criterion.evaluator, Tally()).n >= criterion.min_pairs
        ]


def fix(
    db: Database,
    model: str,
    looks: Iterable[Look],
    known: Epochs,
    policy: Policy,
    limits_of: Callable[[int], Thresholds],
) -> Epochs:
    """Fix what is due to be; the epochs as they are afterwards. Writes only when something is due.

    `limits_of` gives the thresholds of an attempt.
    """
    due = [
        look
        for look in looks
        if (look.key not in known.attempts and look.reached(policy))
        or look.to_plan(policy, known.plans.get(look.key, {}))
        or (look.key not in known.starts and any(tally.n for tally in look.tallies.values()))
    ]
    if not due:
        return known
    with db.write() as connection:
        db.lock(connection, f"epochs of {model}")
        known = epochs_of(connection, model)
        for look in due:
            if look.key not in known.attempts and look.reached(policy):
                _number(connection, model, look, known.number(*look.key))
                known = epochs_of(connection, model)
            limits = limits_of(known.attempt(*look.key))
            _plan(db, connection, model, look, policy, limits, known.plans.get(look.key, {}))
            if look.key not in known.starts and _start(db, connection, model, look):
                note_traffic(db, connection, model, *look.key)
        return epochs_of(connection, model)


def _number(connection: Connection, model: str, look: Look, attempt: int) -> None:
    connection.execute(epochs.insert().values(model=model, tier=look.tier, epoch=look.epoch, attempt=attempt))


def _plan(
    db: Database,
    connection: Connection,
    model: str,
    look: Look,
    policy: Policy,
    limits: Thresholds,
    known: Mapping[str, int],
) -> None:
    control = look.control or {}
    for criterion in policy.visible:
        name = criterion.evaluator
        if name not in look.to_plan(policy, known):
            continue
        tally, noise = look.tallies[name], control.get(name)
        planned = planned_max_pairs(policy, criterion, tally, limits, control=noise)
        if planned is None:
            continue
        connection.execute(
            db.insert(epoch_plans)
            .values(
                model=model,
                tier=look.tier,
                epoch=look.epoch,
                evaluator=name,
                max_pairs=planned,
                pairs=tally.n,
                discordant=tally.harm + tally.benefit,
                control_discordance=(noise.harm + noise.benefit) / noise.n if noise and noise.n else 0.0,
            )
            .on_conflict_do_nothing()
        )


def _start(db: Database, connection: Connection, model: str, look: Look) -> bool:
    """Whether it begins now."""
    first = connection.execute(
        select(units.c.taken_at)
        .where(
            units.c.model == model,
            units.c.tier == look.tier,
            units.c.arm == Arm.CANDIDATE.value,
            units.c.epoch == look.epoch,
            units.c.counted,
        )
        .order_by(units.c.taken_at)
        .limit(1)
    ).scalar()
    if first is None:
        return False
    connection.execute(
        db.insert(epoch_starts)
        .values(model=model, tier=look.tier, epoch=look.epoch, first_pair_at=first)
        .on_conflict_do_nothing()
    )
    return True
