"""What a shadow job does next. Pure: from its manifest, what was fixed at its opening, and its blocks so far.

slo          rounds of one block of every arm, all under the arrivals of the round; a round that the generator
             spoiled, or that the baseline itself could not keep up with, is made up for by another
sweep        each tier towards its best rate, in turns
cost         fresh rounds, each tier at its own best rate
concurrency  each tier towards the most requests at once that keep TPOT, in turns

The blocks of a round of the SLO and the cost part run one after the other, or at the same time where the plan
says so. A sweep and a search overload on purpose, and with that the generator: they always take turns.

Nothing is remembered between two turns, so that a worker that dies takes nothing along.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from service.load.crowd import next_concurrency
from service.load.figures import BlockFigures
from service.load.order import interleave
from service.load.plan import Arrivals, BlockPlan, Part
from service.load.sweep import next_rate, tries
from service.store.load.jobs import Outlook
from service.store.load.manifest import TOGETHER, Manifest
from workers.load_reading import (
    best_of,
    busy_before,
    cost_blocks,
    cost_rate,
    of_part,
    rounds_of,
    search_of,
    silent_tier,
    steps_of,
    unlike_counts,
)

USUAL_SEARCH = 8
"""Blocks that a sweep, or a search for the concurrency, is taken to need of a tier until it is over."""
MOST_CONCURRENCY_BLOCKS = 12
MOST_AT_ONCE = 1024
SPARE = 0.5
"""Rounds beyond those asked for, as a share of them, that may make up for spoiled ones."""
SPOILED_AT_ONCE = 2
"""First rounds that the baseline could not keep up with, after which the SLO part is given up."""
COOL_DOWN_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What is fixed before the first block."""

    slo_block_seconds: float = 0.0
    """Of the window of a block of the SLO part; 0: there is none, for want of power."""
    told: str = ""
    """How many requests the SLO gate needs and gets, in words."""
    without_power: str = ""
    """What the SLO gate says instead of a run; empty when there is one."""
    miss_share: float = 0.01
    """Of the baseline's requests, as last known."""
    correlation: float | None = None
    """Within blocks, as last known; None when no earlier job tells."""

    def document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Opening:
        return cls(**document)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """By a job so far."""

    seconds: float = 0.0
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """A job's next block, or that there is none."""

    plan: BlockPlan | None
    """None: it is over."""
    outlook: Outlook
    beside: tuple[BlockPlan, ...] = ()
    """Blocks that run at the same time."""
    remarks: tuple[str, ...] = ()
    failed: str = ""
    """Why it cannot go on, of one that is over too early."""

    def over(self, part: Part) -> bool:
        """Whether nothing more is to come of a part."""
        return self.plan is None or list(Part).index(self.plan.part) > list(Part).index(part)


def next_block(manifest: Manifest, opening: Opening, blocks: Sequence[BlockFigures], spent: Spent) -> Next:
    """What is next, and what has to be said about the job by now."""
    job = _Job(manifest, opening, blocks)
    if silent := silent_tier(manifest, blocks):
        return Next(plan=None, outlook=job.outlook(), remarks=job.remarks(), failed=silent)
    plans = job.next_plans()
    if not plans:
        return Next(plan=None, outlook=job.outlook(), remarks=job.remarks())
    if short := _beyond_budget(manifest, plans, blocks, spent):
        now = plans[0].part
        left = [part for part in manifest.plan.parts if Part(part) is now or not job.begun(Part(part))]
        cut = f"{short}: not measured to the end: {', '.join(left)}"
        return Next(plan=None, outlook=job.outlook(), remarks=(*job.remarks(), cut))
    return Next(plan=plans[0], beside=tuple(plans[1:]), outlook=job.outlook(), remarks=job.remarks())


class _Job:
    """One job at one turn."""

    def __init__(self, manifest: Manifest, opening: Opening, blocks: Sequence[BlockFigures]) -> None:
        self.manifest, self.opening, self.blocks = manifest, opening, blocks
        self.plan = manifest.plan
        self.arms = manifest.tiers
        self.parts = [Part(part) for part in self.plan.parts]
        self.at_once = len(self.arms) if self.plan.arms == TOGETHER else 1
        """Blocks of a round that run at the same time."""

    def begun(self, part: Part) -> bool:
        return bool(of_part(self.blocks, part))

    def next_plans(self) -> list[BlockPlan]:
        """The next blocks of the first part that needs one."""
        find = {
            Part.SLO: self._slo,
            Part.SWEEP: self._sweep,
            Part.COST: self._cost,
            Part.CONCURRENCY: self._concurrency,
        }
        for part in self.parts:
            if plans := find[part]():
                return plans[: self.at_once]
        return []

    def remarks(self) -> tuple[str, ...]:
        """What was not measured as it should have been."""
        told: list[str] = []
        if self.opening.without_power:
            told.append(f"slo: {self.opening.without_power}")
        if self._too_fast():
            told.append(
                f"slo: {self.plan.rate:g} requests/s are more than the baseline keeps up with: lower "
                "shadow_job.rate"
            )
        if self.begun(Part.COST) or (
            Part.COST in self.parts and not self._sweep() and self.begun(Part.SWEEP)
        ):
            told += [
                f"cost of {tier}: {best_of(self.manifest, self.blocks, tier).reason}"
                for tier in self.arms
                if cost_rate(self.manifest, self.blocks, tier) is None
            ]
        return (*told, *busy_before(self.manifest, self.blocks), *unlike_counts(self.manifest, self.blocks))

    def outlook(self) -> Outlook:
        """How much it is going to be, as far as it can be told."""
        done = [each.plan.seconds for each in self.blocks]
        left: list[float] = []
        window = self.plan.block_seconds + self.plan.settle_seconds
        warm = 0.0 if self.blocks else self.plan.warm_up_seconds - self.plan.settle_seconds
        for part in self.parts:
            count, seconds = self._left(part, window)
            left += [seconds] * count
        return Outlook(
            blocks=len(done) + len(left), seconds=sum(done) + sum(left) + len(self.arms) * max(0.0, warm)
        )

    def _left(self, part: Part, window: float) -> tuple[int, float]:
        """Blocks that a part still needs, and seconds of each."""
        arms, done = len(self.arms), len(of_part(self.blocks, part))
        if part is Part.SLO:
            if not self._slo():
                return 0, 0.0
            seconds = self.opening.slo_block_seconds + self.plan.settle_seconds
            return max(1, self.plan.blocks * arms - done), seconds
        if part is Part.COST:
            if not self.begun(part) and self._sweep():
                return self.plan.blocks * arms, window
            if not self._cost():
                return 0, 0.0
            needing = [tier for tier in self.arms if cost_rate(self.manifest, self.blocks, tier)]
            have = sum(len(cost_blocks(self.manifest, self.blocks, tier)) for tier in needing)
            return max(1, self.plan.blocks * len(needing) - have), window
        find = self._sweep if part is Part.SWEEP else self._concurrency
        return (max(1, USUAL_SEARCH * arms - done) if find() else 0), window

    def _slo(self) -> list[BlockPlan]:
        """Those of the round that are left."""
        if self.opening.without_power or self._too_fast():
            return []
        arms, done = len(self.arms), of_part(self.blocks, Part.SLO)
        number, place = divmod(len(done), arms)
        most = self.plan.blocks + math.ceil(SPARE * self.plan.blocks)
        if place == 0:
            usable = len(rounds_of(self.manifest, self.blocks))
            if usable >= self.plan.blocks or number >= most:
                return []
        turn = interleave(self.arms, blocks=number + 1, seed=self._seed(Part.SLO))[number]
        return [
            self._open(
                Part.SLO, tier, rate=self.plan.rate, seed=turn.seed, seconds=self.opening.slo_block_seconds
            )
            for tier in turn.arms[place:]
        ]

    def _too_fast(self) -> bool:
        """Whether the baseline could not keep up from the beginning."""
        first = of_part(self.blocks, Part.SLO, self.manifest.baseline)[:SPOILED_AT_ONCE]
        whole = len(of_part(self.blocks, Part.SLO)) >= SPOILED_AT_ONCE * len(self.arms)
        return whole and len(first) == SPOILED_AT_ONCE and all(each.over_saturated for each in first)

    def _sweep(self) -> list[BlockPlan]:
        search = search_of(self.manifest)
        for tier in self._in_turns(Part.SWEEP):
            tried = of_part(self.blocks, Part.SWEEP, tier)
            rate = next_rate(search, tries(tried))
            if rate is not None:
                return [self._open(Part.SWEEP, tier, rate=rate, seed=self._seed(Part.SWEEP) + len(tried))]
        return []

    def _cost(self) -> list[BlockPlan]:
        """Those of the first round in which a tier that needs a block has not had its turn yet."""
        rates = {tier: cost_rate(self.manifest, self.blocks, tier) for tier in self.arms}
        arms = [tier for tier in self.arms if rates[tier] is not None]
        if self.manifest.baseline not in arms or len(arms) < 2:
            return []
        done = of_part(self.blocks, Part.COST)
        have = {tier: len(cost_blocks(self.manifest, self.blocks, tier)) for tier in arms}
        most = 2 * self.plan.blocks
        needing = {
            tier
            for tier in arms
            if have[tier] < self.plan.blocks and len(of_part(done, Part.COST, tier)) < most
        }
        if not needing:
            return []
        turns = interleave(arms, blocks=most, seed=self._seed(Part.COST))
        number = min(len(of_part(done, Part.COST, tier)) for tier in needing)
        return [
            self._open(Part.COST, tier, rate=rates[tier], seed=turns[number].seed)
            for tier in turns[number].arms
            if tier in needing and len(of_part(done, Part.COST, tier)) == number
        ]

    def _concurrency(self) -> list[BlockPlan]:
        for tier in self._in_turns(Part.CONCURRENCY):
            steps = steps_of(self.blocks, tier)
            at_once = next_concurrency(
                steps,
                tpot_seconds=self.manifest.tpot_seconds,
                most=MOST_AT_ONCE,
                blocks=MOST_CONCURRENCY_BLOCKS,
                precision=1.1,
            )
            if at_once is not None:
                return [
                    BlockPlan(
                        tier=tier,
                        part=Part.CONCURRENCY,
                        arrivals=Arrivals.CLOSED,
                        concurrency=at_once,
                        seed=self._seed(Part.CONCURRENCY) + len(steps),
                        warm_up_seconds=self._warm_up(tier),
                        window_seconds=self.plan.block_seconds,
                        cool_down_seconds=COOL_DOWN_SECONDS,
                    )
                ]
        return []

    def _open(
        self, part: Part, tier: str, *, rate: float | None, seed: int, seconds: float | None = None
    ) -> BlockPlan:
        return BlockPlan(
            tier=tier,
            part=part,
            arrivals=Arrivals(self.plan.arrivals),
            rate=rate,
            seed=seed,
            warm_up_seconds=self._warm_up(tier),
            window_seconds=self.plan.block_seconds if seconds is None else seconds,
            cool_down_seconds=COOL_DOWN_SECONDS,
        )

    def _warm_up(self, tier: str) -> float:
        first = not any(each.plan.tier == tier for each in self.blocks)
        return self.plan.warm_up_seconds if first else self.plan.settle_seconds

    def _in_turns(self, part: Part) -> list[str]:
        """The tier that had the fewest blocks first."""
        return sorted(self.arms, key=lambda tier: len(of_part(self.blocks, part, tier)))

    def _seed(self, part: Part) -> int:
        return (self.manifest.seed * len(Part) + list(Part).index(part)) * 1000


def _beyond_budget(
    manifest: Manifest, plans: Sequence[BlockPlan], blocks: Sequence[BlockFigures], spent: Spent
) -> str:
    """Which budget the next blocks would overdraw, in words; empty when none. Each has seconds of its own."""
    budget = manifest.plan
    seconds = spent.seconds + sum(plan.seconds for plan in plans)
    if budget.budget_seconds is not None and seconds > budget.budget_seconds:
        return f"the budget of {budget.budget_seconds:g} s of load is spent"
    if budget.budget_tokens is not None:
        expected = spent.tokens + sum(tokens_of(plan, blocks) for plan in plans)
        if expected > budget.budget_tokens:
            return f"the budget of {budget.budget_tokens:,} tokens is spent"
    return ""


def tokens_of(plan: BlockPlan, blocks: Sequence[BlockFigures]) -> float:
    """Of prompts and answers that a block will take, by what its tier's last block took; 0 when unknown."""
    last = next((each for each in reversed(blocks) if each.plan.tier == plan.tier), None)
    if last is None:
        last = blocks[-1] if blocks else None
    if last is None or not last.plan.seconds:
        return 0.0
    per_second = (last.spent_prompt_tokens + last.spent_output_tokens) / last.plan.seconds
    scale = 1.0
    if plan.rate is not None and last.plan.rate:
        scale = plan.rate / last.plan.rate
    return per_second * plan.seconds * scale
