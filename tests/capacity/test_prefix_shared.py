"""What prompts begin with in common: how many beginnings, and how long."""

from __future__ import annotations

from service.capacity.prefix_replay import Prompt
from service.capacity.prefix_shared import Shared, shared_prefixes


def prompt(*named: int, tokens: int | None = None, tenant: str = "a") -> Prompt:
    return Prompt(tokens=64 * len(named) if tokens is None else tokens, named=named, tenant=tenant)


def test_beginnings_are_told_apart_by_where_they_end() -> None:
    found = shared_prefixes(
        [prompt(1, 2, 3), prompt(1, 2, 4), prompt(1, 2, 5), prompt(1, 9), prompt(7)], unit=64
    )
    assert found == Shared(requests=5, requests_hit=3, prefixes=2, prefix_tokens=128.0)


def test_tenants_share_nothing() -> None:
    found = shared_prefixes([prompt(1, 2), prompt(1, 2, tenant="b")], unit=64)
    assert (found.requests_hit, found.prefixes, found.prefix_tokens) == (0, 0, None)


def test_a_part_of_a_block_is_none() -> None:
    assert shared_prefixes([prompt(1, 2, tokens=100), prompt(1, 2, tokens=100)], unit=64).prefix_tokens == 64


def test_without_prompts_nothing_is_shared() -> None:
    assert shared_prefixes([], unit=64) == Shared(requests=0, requests_hit=0, prefixes=0, prefix_tokens=None)
