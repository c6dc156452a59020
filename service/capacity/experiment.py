"""One variable at a time: what two manifests differ in, and the figures of both side by side.

Six things change what a load run measures, whatever else was tried: hardware, model, precision, mix of
lengths, arrivals, SLO. Where two of them changed, no difference can be put down to either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import itemgetter
from typing import Any

from service.leaves import apart, short_text_of


class Variable(StrEnum):
    """What a difference may come from."""

    HARDWARE = "hardware"
    MODEL = "model"
    PRECISION = "precision"
    LENGTH_MIX = "length mix"
    ARRIVAL_RATE = "arrival rate"
    SLO = "SLO"


class Verdict(StrEnum):
    """What limits say of two figures."""

    HIGHER = "higher"
    LOWER = "lower"
    WITHIN = "within"
    """The limits have numbers in common: it may be chance."""
    TOLD = "told"
    """A side has no limits."""
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One of the six, as short texts."""

    variable: Variable
    was: str
    now: str

    def __str__(self) -> str:
        return f"{self.variable}: was {self.was}, is {self.now}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """A figure with its limits, where it has any."""

    value: float
    lower: float | None = None
    upper: float | None = None
    level: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One figure, before and after."""

    figure: str
    was: Limits | None
    now: Limits | None

    @property
    def verdict(self) -> Verdict:
        """`HIGHER` and `LOWER` only where the limits have no number in common."""
        if self.was is None or self.now is None:
            return Verdict.MISSING
        if (
            self.was.lower is None
            or self.was.upper is None
            or self.now.lower is None
            or self.now.upper is None
        ):
            return Verdict.TOLD
        if self.now.lower > self.was.upper:
            return Verdict.HIGHER
        return Verdict.LOWER if self.now.upper < self.was.lower else Verdict.WITHIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What was varied, and what came of it."""

    changed: tuple[Changed, ...]
    others: tuple[str, ...]
    """Everything else that differs, by place: flags of engines, versions, seeds, prices."""
    sides: tuple[Side, ...]
    forced: bool

    @property
    def label(self) -> str:
        """Of the whole comparison; a forced one always says so."""
        if self.forced:
            names = ", ".join(each.variable for each in self.changed)
            return f"FORCED: {len(self.changed)} variables changed ({names}); none alone explains anything"
        if self.changed:
            return f"one variable: {self.changed[0].variable}"
        return "none of the six variables changed"


class MoreThanOneVariable(ValueError):
    """More than one of the six changed."""

    def __init__(self, changed: Sequence[Changed]) -> None:
        super().__init__(f"{len(changed)} variables changed: {'; '.join(map(str, changed))}")
        self.changed = tuple(changed)


def compared(
    was: Mapping[str, Any],
    now: Mapping[str, Any],
    *,
    tier: str,
    tier_now: str | None = None,
    sides: Sequence[Side] = (),
    force: bool = False,
) -> Experiment:
    """Of one tier in two manifests; `MoreThanOneVariable` unless forced; `KeyError` for no such tier."""
    before, after = _variables(was, tier), _variables(now, tier_now or tier)
    # A checkpoint of another precision has another name: that is the same variable, not a second.
    if (
        before[Variable.MODEL][0] == after[Variable.MODEL][0]
        and before[Variable.PRECISION] != after[Variable.PRECISION]
    ):
        before[Variable.MODEL] = before[Variable.MODEL][:1]
        after[Variable.MODEL] = after[Variable.MODEL][:1]
    changed = tuple(
        Changed(variable=each, was=_short(before[each]), now=_short(after[each]))
        for each in Variable
        if before[each] != after[each]
    )
    if len(changed) > 1 and not force:
        raise MoreThanOneVariable(changed)
    return Experiment(
        changed=changed,
        others=_others(_rest(was, tier), _rest(now, tier_now or tier)),
        sides=tuple(sides),
        forced=len(changed) > 1,
    )


def _variables(manifest: Mapping[str, Any], tier: str) -> dict[Variable, tuple[Any, ...]]:
    arm = _arm(manifest, tier)
    declares = _mapping(arm.get("declares"))
    plan, corpus = _mapping(manifest.get("plan")), _mapping(manifest.get("corpus"))
    engines = [_mapping(each) for each in _mapping(arm.get("engines")).values()]
    told = sorted({_words(each, ("weights", "kv_dtype")) for each in engines})
    backends = arm.get("backends")
    return {
        Variable.HARDWARE: (
            arm.get("hardware") or declares.get("hardware"),
            len(backends) if isinstance(backends, list) else None,
        ),
        Variable.MODEL: (manifest.get("model"), arm.get("model")),
        Variable.PRECISION: (
            _words(declares, PRECISION_KEYS) or None,
            f"engines tell {'; '.join(told)}" if any(told) else None,
        ),
        Variable.LENGTH_MIX: (corpus.get("digest"), corpus.get("strata")),
        Variable.ARRIVAL_RATE: (plan.get("rate"), plan.get("arrivals")),
        Variable.SLO: (manifest.get("slo"),),
    }


PRECISION_KEYS = ("weights", "activations", "kv_cache")
"""Of what a tier declares."""


def _words(told: Mapping[str, Any], names: Sequence[str]) -> str:
    return ", ".join(f"{name} {_short(told[name])}" for name in names if told.get(name) is not None)


def _arm(manifest: Mapping[str, Any], tier: str) -> Mapping[str, Any]:
    tiers = manifest.get("tiers")
    for each in tiers if isinstance(tiers, list | tuple) else ():
        if isinstance(each, Mapping) and each.get("tier") == tier:
            return each
    raise KeyError(tier)


def _rest(manifest: Mapping[str, Any], tier: str) -> dict[str, Any]:
    """Without the six, and without other tiers; engines by number, since places are no difference."""
    arm = {
        name: each
        for name, each in _arm(manifest, tier).items()
        if name not in ("tier", "model", "hardware", "backends")
    }
    arm["declares"] = {
        name: each
        for name, each in _mapping(arm.get("declares")).items()
        if name not in (*PRECISION_KEYS, "hardware")
    }
    engines = _mapping(arm.get("engines"))
    arm["engines"] = [
        {name: each for name, each in _mapping(engines[url]).items() if name not in ("weights", "kv_dtype")}
        for url in sorted(engines, key=str)
    ]
    counted = ("model", "tiers", "slo", "corpus", "plan")
    rest = {name: each for name, each in manifest.items() if name not in counted}
    rest["plan"] = {
        name: each
        for name, each in _mapping(manifest.get("plan")).items()
        if name not in ("rate", "arrivals")
    }
    return {**rest, "tier": arm}


def _others(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        f"{place}: was {'-' if before is None else before}, is {'-' if after is None else after}"
        for place, before, after in sorted(apart(was, now, shown=short_text_of), key=itemgetter(0))
    )


def _mapping(told: Any) -> Mapping[str, Any]:
    return told if isinstance(told, Mapping) else {}


def _short(told: Any) -> str:
    if isinstance(told, tuple):
        known = [_short(each) for each in told if each not in (None, {}, [])]
        return ", ".join(known) or "not told"
    return short_text_of(told)
