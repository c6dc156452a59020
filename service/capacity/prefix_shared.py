"""Which beginnings prompts share, how many there are, how long: what a prefix cache needs to be worth it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from service.capacity.prefix_replay import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Of prompts in the order of their arrival."""

    requests: int
    requests_hit: int
    """That began like an earlier one, by a block or more."""
    prefixes: int
    """Distinct beginnings in common, each as long as it was found."""
    prefix_tokens: float | None
    """Of a beginning in common, in the middle of those requests; `None`: there is none."""


def shared_prefixes(prompts: Sequence[Prompt], *, unit: int) -> Shared:
    """By names of `unit` tokens, each for the whole beginning; tenants share nothing."""
    seen: set[tuple[str, int]] = set()
    ends: set[tuple[str, int]] = set()
    lengths: list[int] = []
    for prompt in prompts:
        whole = [(prompt.tenant, name) for name in prompt.named[: prompt.tokens // unit]]
        common = 0
        while common < len(whole) and whole[common] in seen:
            common += 1
        if common:
            ends.add(whole[common - 1])
            lengths.append(common * unit)
        seen.update(whole)
    return Shared(
        requests=len(prompts),
        requests_hit=len(lengths),
        prefixes=len(ends),
        prefix_tokens=median(lengths) if lengths else None,
    )
