"""Reading a job's blocks: which of them belong together, and what they amount to. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from service.load.crowd import Step
from service.load.figures import OVER_SATURATED, BlockFigures
from service.load.plan import Part
from service.load.sweep import LOWER, Best, Search, best, tries
from service.load.timed import GIVEN_UP
from service.store.load.manifest import MOST_RATE, Manifest

MOST_SWEEP = 20
"""Blocks of one tier."""
LIKE_COUNTS = 1.25
"""Times that tokens for each event may differ between tiers before it is said."""
MOST_UNLIKE = 1.5
"""Times that bytes of output for each token may differ from the baseline's: one tokenizer tells one text."""
LEAST_UNLIKE = 0.05
"""Share of complete answers whose tokens were not told, or told wrongly, before it is said."""
SILENT = 2
"""Blocks of a tier in a row without one answer, after which the job ends."""
LOWEST = 1 / 64
"""Of the SLO part's rate: how far down a sweep goes."""


def of_part(blocks: Sequence[BlockFigures], part: Part, tier: str | None = None) -> list[BlockFigures]:
    """Those of one part, and of one tier."""
    return [each for each in blocks if each.plan.part is part and tier in (None, each.plan.tier)]


def rounds_of(manifest: Manifest, blocks: Sequence[BlockFigures]) -> list[Mapping[str, BlockFigures]]:
    """Whole rounds of the SLO part that may be used, by tier."""
    arms = len(manifest.tiers)
    done = of_part(blocks, Part.SLO)
    whole = [done[start : start + arms] for start in range(0, len(done) - arms + 1, arms)]
    found = [{each.plan.tier: each for each in one} for one in whole]
    return [one for one in found if not spoiled(one, manifest.baseline)]


def spoiled(one: Mapping[str, BlockFigures], baseline: str) -> bool:
    """Whether a round shows nothing of the difference between its arms.

    A candidate that cannot keep up where the baseline does has shown something: its misses count.
    """
    return any(
        not all(reason.startswith(OVER_SATURATED) for reason in each.invalid)
        if tier != baseline
        else not each.valid
        for tier, each in one.items()
    )


def search_of(manifest: Manifest) -> Search:
    """The bounds of a tier's sweep."""
    rate = manifest.plan.rate
    return Search(start=rate, least=rate * LOWEST, most=MOST_RATE, blocks=MOST_SWEEP)


def best_of(manifest: Manifest, blocks: Sequence[BlockFigures], tier: str) -> Best:
    """A tier's best rate as its sweep has it."""
    return best(search_of(manifest), tries(of_part(blocks, Part.SWEEP, tier)))


def cost_rate(manifest: Manifest, blocks: Sequence[BlockFigures], tier: str) -> float | None:
    """Where a tier's cost is measured: at its best rate, or by tenths below, as far as it did not keep up.

    One fresh block that shows so is enough: to make up for it by others would choose those that flatter. None
    when its sweep did not reach the best.
    """
    found = best_of(manifest, blocks, tier)
    if found.rate is None or not found.reached:
        return None
    # What the generator spoiled says nothing of the tier.
    fresh = of_part(blocks, Part.COST, tier)
    too_much = {each.plan.rate for each in fresh if each.over_saturated and not each.lagged}
    rate = found.rate
    while rate in too_much:
        rate *= LOWER
    return rate


def cost_blocks(manifest: Manifest, blocks: Sequence[BlockFigures], tier: str) -> list[BlockFigures]:
    """A tier's blocks that its cost is made of."""
    rate = cost_rate(manifest, blocks, tier)
    return [each for each in of_part(blocks, Part.COST, tier) if each.valid and each.plan.rate == rate]


def steps_of(blocks: Sequence[BlockFigures], tier: str) -> list[Step]:
    """A tier's blocks with so many requests at once."""
    return [Step.of(each) for each in of_part(blocks, Part.CONCURRENCY, tier)]


def silent_tier(manifest: Manifest, blocks: Sequence[BlockFigures]) -> str:
    """Which tier answers nobody any more, in words; empty when all do.

    A sweep overloads on purpose, and gives up what has missed its SLO: that may be a tier that hangs, or one
    that is slow. If it has answered somebody before, the sweep goes on, and at lower rates finds out: it has
    half a dozen of them. Every other part waits long enough to tell the two apart.
    """
    for tier in manifest.tiers:
        own = [each for each in blocks if each.plan.tier == tier]
        last = own[-SILENT:]
        if len(last) < SILENT or not all(_nothing_came(each) for each in last):
            continue
        if any(_is_late(each) for each in last) and not all(_nothing_came(each) for each in own):
            continue
        faults = ", ".join(f"{fault} {count}" for fault, count in sorted(last[-1].failed.items()))
        return f"{tier} answered nothing in {SILENT} blocks in a row ({faults})"
    return ""


def _nothing_came(block: BlockFigures) -> bool:
    """Whether nobody was answered, in the window or beside it."""
    return 0 < block.offered == sum(block.failed.values()) and not block.answered


def _is_late(block: BlockFigures) -> bool:
    """Whether nobody waited for what was too late in any case."""
    return block.plan.part is Part.SWEEP and set(block.failed) == {GIVEN_UP}


def busy_before(manifest: Manifest, blocks: Sequence[BlockFigures]) -> Iterator[str]:
    """Of which tiers blocks began while their engines were at work for others."""
    for tier in manifest.tiers:
        own = [each for each in blocks if each.plan.tier == tier]
        if busy := [each for each in own if each.busy_before]:
            backends = sorted({backend for each in busy for backend in each.busy_before})
            yield (
                f"{tier}: {len(busy)} of {len(own)} blocks began while {', '.join(backends)} was at work for "
                "others, so that their first answers waited"
            )


def unlike_counts(manifest: Manifest, blocks: Sequence[BlockFigures]) -> Iterator[str]:
    """Where events do not bear out what usage tells of tokens: goodput and cost are made of these."""
    base = _tokens_for_event(blocks, manifest.baseline)
    for tier in manifest.tiers:
        own = [each for each in blocks if each.plan.tier == tier]
        complete = sum(each.offered - sum(each.failed.values()) for each in own)
        each_event = _tokens_for_event(blocks, tier)
        if sum(each.without_usage for each in own) > LEAST_UNLIKE * complete:
            yield f"tokens of {tier}: it tells no usage, so that events were counted instead"
        elif sum(each.contradicted for each in own) > LEAST_UNLIKE * complete:
            yield f"tokens of {tier}: its usage tells fewer tokens than came"
        elif base and each_event and not 1 / LIKE_COUNTS <= each_event / base <= LIKE_COUNTS:
            yield (
                f"tokens of {tier}: {each_event:.2g} tokens for each event with output, where "
                f"{manifest.baseline} tells {base:.2g}: unless it sends several at once (speculative "
                "decoding), its goodput and cost are not what they seem"
            )


def doubt_of(baseline: str, others: Sequence[BlockFigures], tier: str, own: Sequence[BlockFigures]) -> str:
    """Why a tier's tokens cannot be weighed against the baseline's; empty when they can, or nothing tells.

    How many tokens come in one event is the engine's affair, how much text they make is not: usage that tells
    too many makes TPOT, goodput and cost look better than they are, and one that tells too few, worse.
    """
    theirs, ours = _bytes_per_token(others), _bytes_per_token(own)
    if not theirs or not ours or 1 / MOST_UNLIKE <= ours / theirs <= MOST_UNLIKE:
        return ""
    return (
        f"tokens of {tier} are not credible: {ours:.2g} bytes of output for each, where {baseline} has "
        f"{theirs:.2g}; of one tokenizer they differ by {MOST_UNLIKE:g} times at most"
    )


def _bytes_per_token(blocks: Sequence[BlockFigures]) -> float | None:
    told = [each.bytes_per_token for each in blocks if each.bytes_per_token]
    return median(told) if told else None


def _tokens_for_event(blocks: Sequence[BlockFigures], tier: str) -> float | None:
    told = [1 / each.count_ratio for each in blocks if each.plan.tier == tier and each.count_ratio]
    return median(told) if told else None
