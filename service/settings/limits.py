"""Limits on what is taken of a model's requests, and those that could not be kept."""

from __future__ import annotations

from service.fleet import Limits
from service.settings.fleet_shape import LimitsShape
from service.settings.problems import Findings
from service.settings.shape import TiergateShape


def build_limits(shape: LimitsShape) -> Limits:
    return Limits(
        concurrency=shape.concurrency,
        queue=shape.queue,
        queue_seconds=shape.queue_timeout,
        max_request=shape.max_request,
        max_prompt_tokens=shape.max_prompt_tokens,
        max_output_tokens=shape.max_output_tokens,
        require_max_tokens=shape.require_max_tokens,
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
        for rung, tier in enumerate(model.ladder):
            for index, backend in enumerate(tier.backends):
                if backend.max_concurrency is not None and backend.max_concurrency < processes:
                    place = ("models", name, "ladder", rung, "backends", index, "max_concurrency")
                    findings.add(place, too_few)
