"""What a prefix cache of any size would have reused of a trace. Exact for LRU, in one pass over the requests.

Mattson's stack distance (IBM Systems Journal 9, 1970): a block is found by every LRU cache that has room for
what was touched since, and for itself. Engines let go of the end of a prompt before its beginning, so a block
is never kept without those before it. A name stands for as many tokens each time it comes, as in all traces
that name a part of a block apart from the whole; where it does not, the most that it ever had are kept fresh.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

ROOT = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request of a trace, in the order of arrival."""

    tokens: int
    named: tuple[int, ...]
    """Names of its blocks of `unit` tokens; a block is the same where all before it are too."""
    tenant: str = ""
    """Tenants share nothing: the same name of two is two blocks."""

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ValueError(f"a prompt has at least 1 token, got {self.tokens}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A cache of one size."""

    blocks: int
    reused: int
    """Tokens of prompts that were found."""
    rate: float
    """Of all tokens of prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The curve of one trace."""

    block: int
    """Tokens."""
    prompts: int
    tokens: int
    """Of all prompts."""
    distinct: int
    """Blocks that were ever kept: a cache of that many forgets nothing."""
    unlimited: float
    """Rate of a cache that forgets nothing."""
    hits: int
    """Requests that reused anything, in that cache."""
    points: tuple[Point, ...]
    by_tenant: tuple[tuple[str, float], ...]
    """Tenant and its rate, in the largest cache of `points`."""

    @property
    def requests_hit(self) -> float:
        """Requests that reused anything, by requests: how the rate must not be told."""
        return self.hits / self.prompts

    @property
    def knee(self) -> Point | None:
        """The size farthest above a straight line to the top (Kneedle, 2011); `None`: nothing is reused."""
        top = max((point.rate for point in self.points), default=0.0)
        if top == 0:
            return None
        end = next(point for point in self.points if point.rate >= top - 1e-12)
        return max(self.points, key=lambda point: point.rate / top - point.blocks / end.blocks)


def sizes(most: int, *, steps: int = 2) -> tuple[int, ...]:
    """Numbers of blocks to ask about, `steps` to a doubling, up to the first that forgets nothing."""
    found = {1, max(1, most)}
    at = 0
    while (size := round(2 ** (at / steps))) < most:
        found.add(size)
        at += 1
    return tuple(sorted(found))


@dataclass(slots=True)
class _Later:
    """Sums of what was touched after a request: a Fenwick tree over requests."""

    sums: list[int]
    total: int = 0

    def add(self, at: int, weight: int) -> None:
        self.total += weight
        at += 1
        while at < len(self.sums):
            self.sums[at] += weight
            at += at & -at

    def after(self, at: int) -> int:
        at, before = at + 1, 0
        while at:
            before += self.sums[at]
            at -= at & -at
        return self.total - before


@dataclass(slots=True)
class _Seen:
    """What each block was when it was touched last."""

    later: _Later
    names: dict[tuple[int | str, int], int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)
    weight: dict[int, int] = field(default_factory=dict)

    def path(self, prompt: Prompt, unit: int, block: int) -> list[tuple[int, int]]:
        """Its blocks by a number that stands for the whole prefix, each with how many small blocks it has."""
        found = []
        above: int | str = prompt.tenant or ROOT
        left = prompt.tokens
        for name in prompt.named:
            weight = min(left, unit) // block
            if not weight:
                break
            above = self.names.setdefault((above, name), len(self.names) + 1)
            found.append((above, weight))
            left -= unit
        return found

    def distances(self, path: Sequence[tuple[int, int]], most: int) -> Iterable[tuple[int, int]]:
        """Blocks that are kept above each part of its prefix, and how many blocks that part has.

        `most` blocks at most are of use: an engine computes the last token of a prompt itself.
        """
        request, above, within = -1, 0, 0
        for number, weight in path:
            if number not in self.last or most <= 0:
                return
            if self.last[number] != request:
                request, within = self.last[number], 0
                above = self.later.after(request)
            kept = self.weight[number]
            yield above + within, min(kept, weight, most)
            if kept < weight:
                return
            within += kept
            most -= weight

    def touch(self, path: Sequence[tuple[int, int]], request: int) -> None:
        """All of it is now the most recent."""
        moved: dict[int, int] = {}
        for number, weight in path:
            before = self.weight.get(number, 0)
            if before:
                moved[self.last[number]] = moved.get(self.last[number], 0) - before
            now = max(before, weight)
            moved[request] = moved.get(request, 0) + now
            self.weight[number], self.last[number] = now, request
        for at, weight in moved.items():
            self.later.add(at, weight)


def replay(prompts: Sequence[Prompt], *, unit: int, block: int, capacities: Sequence[int] = ()) -> Replay:
    """The rate at each capacity, in blocks of `block` tokens; at sizes of its own where none are given.

    `ValueError` where `unit` tokens, which one name stands for, are no whole number of blocks.
    """
    if block < 1 or unit < block or unit % block:
        raise ValueError(f"{unit} tokens of a named block are no whole number of blocks of {block}")
    if any(size < 1 for size in capacities):
        raise ValueError("a cache has at least 1 block")
    if not prompts:
        raise ValueError("the trace has no requests")
    seen = _Seen(later=_Later(sums=[0] * (len(prompts) + 1)))
    found: list[tuple[int, int, str]] = []
    hits = 0
    for request, prompt in enumerate(prompts):
        path = seen.path(prompt, unit, block)
        before = len(found)
        for above, blocks in seen.distances(path, (prompt.tokens - 1) // block):
            found.append((above, blocks, prompt.tenant))
        hits += len(found) > before
        seen.touch(path, request)
    distinct = sum(seen.weight.values())
    asked = tuple(sorted(set(capacities))) or sizes(distinct)
    tokens = sum(prompt.tokens for prompt in prompts)
    reused = _reused(((above, blocks) for above, blocks, _ in found), asked)
    return Replay(
        block=block,
        prompts=len(prompts),
        tokens=tokens,
        distinct=distinct,
        unlimited=sum(blocks for _, blocks, _ in found) * block / tokens,
        hits=hits,
        points=tuple(
            Point(blocks=size, reused=blocks * block, rate=blocks * block / tokens)
            for size, blocks in zip(asked, reused, strict=True)
        ),
        by_tenant=_by_tenant(prompts, found, asked[-1], block),
    )


def _reused(found: Iterable[tuple[int, int]], asked: Sequence[int]) -> list[int]:
    """Blocks that a cache of each size finds: of those under `above` others, as many as still fit."""
    whole, part = [0] * (len(asked) + 1), [0] * len(asked)
    for above, blocks in found:
        full = bisect_left(asked, above + blocks)
        whole[full] += blocks
        for at in range(bisect_left(asked, above), full):
            part[at] += asked[at] - above
    total, reused = 0, []
    for at in range(len(asked)):
        total += whole[at]
        reused.append(total + part[at])
    return reused


def _by_tenant(
    prompts: Sequence[Prompt], found: Sequence[tuple[int, int, str]], size: int, block: int
) -> tuple[tuple[str, float], ...]:
    tokens: dict[str, int] = {}
    for prompt in prompts:
        tokens[prompt.tenant] = tokens.get(prompt.tenant, 0) + prompt.tokens
    reused = dict.fromkeys(tokens, 0)
    for above, blocks, tenant in found:
        reused[tenant] += max(0, min(blocks, size - above))
    return tuple((tenant, reused[tenant] * block / tokens[tenant]) for tenant in sorted(tokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One tenant in the pool of all, and in a pool of its own."""

    tenant: str
    tokens: int
    shared: float
    """Its rate in the pool of all."""
    blocks: int
    """Of its own pool: its part of all tokens, of the same memory."""
    own: float


def split_pools(prompts: Sequence[Prompt], *, unit: int, block: int, blocks: int) -> tuple[Split, ...]:
    """What each tenant reuses of a pool of `blocks`, and of its part of the same memory for itself alone."""
    shared = dict(replay(prompts, unit=unit, block=block, capacities=(blocks,)).by_tenant)
    total = sum(prompt.tokens for prompt in prompts)
    found = []
    for tenant in sorted(shared):
        own = [prompt for prompt in prompts if prompt.tenant == tenant]
        tokens = sum(prompt.tokens for prompt in own)
        size = max(1, blocks * tokens // total)
        alone = replay(own, unit=unit, block=block, capacities=(size,)).points[0].rate
        found.append(Split(tenant=tenant, tokens=tokens, shared=shared[tenant], blocks=size, own=alone))
    return tuple(found)


def of_all_traffic(found: Replay, share: float) -> Replay:
    """The same with sizes for all traffic, of which a share was replayed.

    Where conversations were sampled whole, what is touched between two touches is thinned by the share, and
    so is the size that holds it (SHARDS: Waldspurger, FAST 2015). Beginnings that many conversations have in
    common are touched more rarely in a sample than they are: at small sizes their part is told too low.
    """
    points = tuple(replace(point, blocks=round(point.blocks / share)) for point in found.points)
    return replace(found, points=points, distinct=round(found.distinct / share))


def split_of_all_traffic(splits: Sequence[Split], share: float) -> tuple[Split, ...]:
    """The same for pools of tenants."""
    return tuple(replace(each, blocks=round(each.blocks / share)) for each in splits)
