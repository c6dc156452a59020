"""Limits on what is taken of a model's requests, and those that could not be kept."""

from __future__ import annotations

from service.fleet import Fallback, KvGuard, Limits, Priority
from service.settings.fleet_shape import KvGuardShape, LimitsShape, ModelShape
from service.settings.problems import Findings, Place
from service.settings.shape import TiergateShape

REOPENS = 0.95
"""Of the level above which a KV guard closes: below it opens again, where nothing is said of it."""
LEAST_LOOKS = 2
"""Looks that must fit in the time for which a word counts, or one that is late would open the guard."""


def build_limits(shape: LimitsShape) -> Limits:
    """Of one model's clients; what is None is not limited."""
    return Limits(
        concurrency=shape.concurrency,
        queue=shape.queue,
        queue_seconds=shape.queue_timeout,
        max_request=shape.max_request,
        max_prompt_tokens=shape.max_prompt_tokens,
        max_output_tokens=shape.max_output_tokens,
        require_max_tokens=shape.require_max_tokens,
        kv_guard=None if shape.kv_guard is None else _kv_guard(shape.kv_guard),
        priority=None
        if shape.priority is None
        else Priority(short=shape.priority.short, ahead=shape.priority.ahead),
        fallback=Fallback(shape.fallback),
    )


def _kv_guard(shape: KvGuardShape) -> KvGuard:
    return KvGuard(
        above=shape.above,
        below=shape.above * REOPENS if shape.below is None else shape.below,
        every=shape.every,
        stale=shape.stale,
    )


def refuse_limits_that_cannot_hold(shape: TiergateShape, findings: Findings) -> None:
    """Processes share no memory and none can do with less than one request; bodies are read before models."""
    processes = shape.proxy.processes
    too_few = f"{processes} processes cannot share it: each takes at least one. Lower proxy.processes"
    for name, model in shape.models.items():
        if model.limits.concurrency is not None and model.limits.concurrency < processes:
            findings.add(("models", name, "limits", "concurrency"), too_few)
        if model.limits.max_request is not None and model.limits.max_request > shape.proxy.max_request:
            findings.add(
                ("models", name, "limits", "max_request"),
                "above proxy.max_request, which is the most that is read of any request",
            )
        if model.limits.kv_guard is not None:
            _refuse_guard(model.limits.kv_guard, ("models", name, "limits", "kv_guard"), findings)
        _refuse_fallback(model, ("models", name, "limits", "fallback"), findings)
        for rung, tier in enumerate(model.ladder):
            for index, backend in enumerate(tier.backends):
                if backend.max_concurrency is not None and backend.max_concurrency < processes:
                    place = ("models", name, "ladder", rung, "backends", index, "max_concurrency")
                    findings.add(place, too_few)


def _refuse_fallback(model: ModelShape, place: Place, findings: Findings) -> None:
    """A rung below that has no bound is never full: all that is too much for the one above would go there."""
    if model.limits.fallback == "line" or model.limits.kv_guard is not None:
        return
    unbounded = [
        backend.url
        for tier in model.ladder[:-1]
        for backend in tier.backends
        if backend.max_concurrency is None
    ]
    if unbounded:
        findings.add(
            place,
            f"{unbounded[0]} is never full, so that everything would go there: give it max_concurrency, or "
            "the model a kv_guard",
        )


def _refuse_guard(shape: KvGuardShape, place: Place, findings: Findings) -> None:
    if shape.above == 0:
        findings.add((*place, "above"), "at 0% nothing would ever be let in")
    elif shape.below is not None and shape.below >= shape.above:
        findings.add((*place, "below"), "not below `above`: the guard would open and close with every look")
    if shape.stale < LEAST_LOOKS * shape.every:
        findings.add(
            (*place, "stale"),
            f"`stale` is shorter than {LEAST_LOOKS} looks (`every`): one late look opens it",
        )
