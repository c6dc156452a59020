"""The manifest of a shadow job: everything that is needed to repeat it, as canonical JSON with a digest.

Plain values and no SQL, so that settings can use it. `compose` in `job_terms` fills one from what is
configured and known now; what two of them differ in is told by path, in sentences.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from hashlib import sha256
from operator import itemgetter
from typing import Any

from service.leaves import apart

FORMAT = 1
PARTS = ("slo", "sweep", "cost", "concurrency")
"""What a job can measure, in the order in which it does."""
ARRIVALS = ("poisson", "constant", "trace")
INTERLEAVED, TOGETHER = "interleaved", "together"
"""How arms share the time: one after the other, or at once, where each has hardware of its own."""
LEAST_BLOCKS = 8
"""Of each arm in the parts that gates read."""
MOST_BLOCKS = 400
MOST_RATE = 10_000.0
MOST_SECONDS = 7 * 86_400.0
ABSENT = "(nothing)"


def canonical(document: Mapping[str, Any]) -> str:
    """One text for equal documents; ValueError for NaN and infinity."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """How a shadow job loads each arm. An arm's window is shared out over its blocks."""

    warm_up_seconds: float = 180.0
    """Before an arm's first block."""
    settle_seconds: float = 20.0
    """Before each further block of an arm: sent and not counted."""
    window_seconds: float = 600.0
    """Of each arm in the SLO and the cost part, over all its blocks; the SLO part may take longer."""
    blocks: int = LEAST_BLOCKS
    """Of each arm in the SLO and the cost part, at least."""
    rate: float = 4.0
    """Requests a second to every arm in the SLO part; the sweep begins with it."""
    arrivals: str = "poisson"
    arms: str = INTERLEAVED
    """`together`: those of one round of the SLO and the cost part are loaded at the same time."""
    parts: tuple[str, ...] = PARTS
    budget_tokens: int | None = None
    """Of prompts and answers; None = no limit."""
    budget_seconds: float | None = 6 * 3600.0
    """In which load is sent; None = no limit."""

    def __post_init__(self) -> None:
        for name, least in (("warm_up_seconds", 0.0), ("settle_seconds", 0.0), ("window_seconds", 0.001)):
            value = getattr(self, name)
            if not (math.isfinite(value) and least <= value <= MOST_SECONDS):
                raise ValueError(f"{name} must be from {least:g} to {MOST_SECONDS:g}, got {value}")
        if not LEAST_BLOCKS <= self.blocks <= MOST_BLOCKS:
            raise ValueError(f"blocks must be from {LEAST_BLOCKS} to {MOST_BLOCKS}, got {self.blocks}")
        if not 0 < self.rate <= MOST_RATE:
            raise ValueError(f"rate must be above 0 and at most {MOST_RATE:g} a second, got {self.rate}")
        if self.rate * self.block_seconds < 1:
            raise ValueError(
                f"a block of {self.block_seconds:g} s at {self.rate:g} requests/s holds no request: "
                f"window_seconds must be at least {self.blocks / self.rate:g}"
            )
        if self.arrivals not in ARRIVALS:
            raise ValueError(f"arrivals are one of {', '.join(ARRIVALS)}, got {self.arrivals!r}")
        if self.arms not in (INTERLEAVED, TOGETHER):
            raise ValueError(f"arms are loaded {INTERLEAVED} or {TOGETHER}, not {self.arms!r}")
        if not self.parts or [part for part in PARTS if part in self.parts] != list(self.parts):
            raise ValueError(f"parts are some of {', '.join(PARTS)}, in this order, got {list(self.parts)}")
        if "cost" in self.parts and "sweep" not in self.parts:
            raise ValueError("the part cost needs the sweep, which finds the rate that it is measured at")
        if self.budget_tokens is not None and self.budget_tokens < 1:
            raise ValueError(f"the budget must be at least one token, got {self.budget_tokens}")
        if self.budget_seconds is not None and not 0 < self.budget_seconds <= MOST_SECONDS:
            raise ValueError(f"the budget must be above 0 s and at most a week, got {self.budget_seconds} s")

    @property
    def block_seconds(self) -> float:
        """Of one block's window."""
        return self.window_seconds / self.blocks

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> JobPlan:
        """From JSON; ValueError for anything that is no plan."""
        known = {each.name for each in fields(cls)}
        if strange := sorted(set(document) - known):
            raise ValueError(f"a plan has no {strange[0]!r}")
        told = dict(document)
        for name, value in told.items():
            if name == "parts":
                if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
                    raise ValueError("parts are a list of names")
                told[name] = tuple(value)
            elif name in ("arrivals", "arms"):
                if not isinstance(value, str):
                    raise ValueError(f"{name} are named by a word")
            elif isinstance(value, bool) or not isinstance(value, int | float | None):
                raise ValueError(f"{name} must be a number, got {value!r}")
        if not isinstance(told.get("blocks", LEAST_BLOCKS), int):
            raise ValueError(f"blocks must be whole, got {told['blocks']!r}")
        try:
            return cls(**told)
        except TypeError as error:
            raise ValueError(f"no plan: {error}") from error


DEFAULT_PLAN = JobPlan()


@dataclass(frozen=True)
class Manifest:
    """Of one job. Read by name where it is used; the rest is for people, and for telling two apart."""

    document: Mapping[str, Any]

    @classmethod
    def read(cls, text: str) -> Manifest:
        """From `text`."""
        return cls.of(json.loads(text))

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Manifest:
        """ValueError, saying what is missing, for what is no manifest; it may come from anybody."""
        if not isinstance(document, Mapping) or document.get("format") != FORMAT:
            raise ValueError(f"no manifest of format {FORMAT}")
        manifest = cls(document)
        try:
            if not isinstance(manifest.model, str) or not isinstance(manifest.seed, int):
                raise TypeError("model is text, seed a whole number")
            if not manifest.tiers or not all(isinstance(name, str) for name in manifest.tiers):
                raise TypeError("tiers have names")
            _ = manifest.plan, manifest.ttft_seconds, manifest.tpot_seconds, canonical(document)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no manifest: {error!r}") from error
        return manifest

    @cached_property
    def text(self) -> str:
        """Canonical JSON."""
        return canonical(self.document)

    @cached_property
    def digest(self) -> str:
        """sha256 of `text`, in hex."""
        return sha256(self.text.encode("ascii")).hexdigest()

    @cached_property
    def plan(self) -> JobPlan:
        return JobPlan.of(self.document["plan"])

    @property
    def model(self) -> str:
        return self.document["model"]  # type: ignore[no-any-return]

    @property
    def seed(self) -> int:
        """All randomness comes from it: arrivals, the order of arms, which requests are sent."""
        return self.document["seed"]  # type: ignore[no-any-return]

    @property
    def tiers(self) -> tuple[str, ...]:
        """By name, the baseline first."""
        return tuple(each["tier"] for each in self.document["tiers"])

    @property
    def baseline(self) -> str:
        return self.tiers[0]

    @property
    def ttft_seconds(self) -> float:
        """Of the SLO."""
        return float(self.document["slo"]["ttft_seconds"])

    @property
    def tpot_seconds(self) -> float:
        """Of the SLO."""
        return float(self.document["slo"]["tpot_seconds"])

    def tier(self, name: str) -> Mapping[str, Any]:
        """What is said of one tier; KeyError when it has none of that name."""
        for each in self.document["tiers"]:
            if each["tier"] == name:
                return each  # type: ignore[no-any-return]
        raise KeyError(name)


def plan_document(plan: JobPlan) -> dict[str, Any]:
    """As JSON has it."""
    return {**asdict(plan), "parts": list(plan.parts)}


def differences(was: Manifest, now: Manifest) -> tuple[str, ...]:
    """A sentence for everything that is not as it was, by path."""
    return tuple(
        f"{path}: was {ABSENT if before is None else before}, is {ABSENT if after is None else after}"
        for path, before, after in sorted(apart(was.document, now.document), key=itemgetter(0))
    )
