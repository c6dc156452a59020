"""Which evidence belongs together: an epoch is a hash of all that must not change within it (A5).

Keyed by content, so that coming back to a recipe resumes its evidence.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from enum import Enum

from service.decision.grid import G10, H5
from service.decision.policy import Policy


def epoch_id(facts: Mapping[str, object]) -> str:
    """sha256 (hex) over the facts in canonical JSON: order of keys does not matter, every value does.

    Facts are strings, numbers, booleans, None, enums, and sequences or string-keyed mappings of these;
    anything else is a TypeError, NaN and infinity a ValueError: what cannot be compared names no epoch.
    """
    text = json.dumps(
        _plain(facts), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def policy_facts(policy: Policy) -> dict[str, object]:
    """What of a policy belongs to an epoch: what decides, margins, error rates, the unit, grids.

    Minimum pairs, caps and gates do not: the e-values stay valid whatever these are. Nor do criteria that do
    not decide: one may be added to look at. But a criterion that decided cannot be let go with its evidence
    kept, or a tier that fails one would pass by dropping it.
    """
    return {
        "criteria": {
            criterion.evaluator: {"hypothesis": criterion.hypothesis, "margin": criterion.margin}
            for criterion in policy.decisive
        },
        "alpha": {
            "accept": policy.alpha_approval,
            "harm": policy.alpha_harm,
            "strata": policy.alpha_strata,
            "warn": policy.alpha_warn,
        },
        "units": policy.units,
        "alpha_spending": policy.alpha_spending,
        "ladder_rule": policy.ladder_rule,
        "grids": {
            name: {"bets": grid.bets, "weights": grid.weights}
            for name, grid in (("noninferiority", G10), ("harm", H5))
        },
    }


def _plain(fact: object) -> object:
    if isinstance(fact, Enum):
        return _plain(fact.value)
    if fact is None or isinstance(fact, str | bool | int):
        return fact
    if isinstance(fact, float):
        if not math.isfinite(fact):
            raise ValueError(f"not a fact: {fact}")
        return fact
    if isinstance(fact, Mapping):
        if strange := [key for key in fact if not isinstance(key, str)]:
            raise TypeError(f"facts have names, got {strange[0]!r}")
        return {str(key): _plain(value) for key, value in fact.items()}
    if isinstance(fact, list | tuple):
        return [_plain(value) for value in fact]
    raise TypeError(f"not a fact: {fact!r}")
