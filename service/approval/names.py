"""Finding a model's ladder and a tier in it; unknown names are 404 and name the nearest known one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from service.approval.errors import Problem, echo
from service.approval.narrowing import check_model
from service.fleet import Ladder, Tier


def find_ladder(ladders: Mapping[str, Ladder], model: str) -> Ladder:
    """The ladder of a model; 403 where the caller's token is not for it."""
    check_model(model)
    try:
        return ladders[model]
    except KeyError:
        raise Problem(
            404, "unknown_model", f"no model is called {echo(model)}", hint=_nearest(model, ladders, "models")
        ) from None


def find_tier(ladder: Ladder, name: str) -> Tier:
    """The tier of that name, the baseline included."""
    try:
        return ladder.tier(name)
    except KeyError:
        known = [tier.name for tier in ladder.tiers]
        raise Problem(
            404,
            "unknown_tier",
            f"model {ladder.model!r} has no tier {echo(name)}",
            hint=_nearest(name, known, "tiers"),
        ) from None


def find_candidate(ladder: Ladder, name: str) -> Tier:
    """The tier of that name; 409 for the baseline, which is what everything is measured against."""
    tier = find_tier(ladder, name)
    if tier is ladder.baseline:
        candidates = ", ".join(candidate.name for candidate in ladder.candidates) or "none"
        raise Problem(
            409,
            "baseline",
            f"{name!r} is the baseline of {ladder.model!r}: it has no verdict and needs no approval",
            hint=f"candidates are: {candidates}",
        )
    return tier


def find_evaluator(versions: Mapping[str, str], name: str) -> str:
    """The present version of the evaluator of that name."""
    try:
        return versions[name]
    except KeyError:
        raise Problem(
            404,
            "unknown_evaluator",
            f"no evaluator is called {echo(name)}",
            hint=_nearest(name, versions, "evaluators"),
        ) from None


def _nearest(name: str, known: Iterable[str], kind: str) -> str:
    known = list(known)
    nearest = get_close_matches(name[:200], known, n=1, cutoff=0.4)
    if nearest:
        return f"did you mean {nearest[0]!r}?"
    listed = ", ".join(repr(one) for one in known[:10])
    return f"known {kind}: {listed}" if listed else f"no {kind} are configured"
