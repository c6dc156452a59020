"""Time that an engine spent on prefill and on decode, and its prefix counters, from its metrics page."""

from __future__ import annotations

import math
import re

from service.capacity.prefix_gate import Reading
from service.engines.load import engine_load

_SECONDS = re.compile(r"^vllm:request_(prefill|decode)_time_seconds_sum(?:\{.*\})?[ \t]+(\S+)", re.MULTILINE)


def prefix_reading(page: str) -> Reading | None:
    """Counters of tokens and seconds; None where a page tells of no prefix cache. Only vLLM tells seconds."""
    load = engine_load(page)
    if load is None or load.prefix_queries is None or load.prefix_hits is None:
        return None
    seconds: dict[str, float] = {}
    for stage, written in _SECONDS.findall(page):
        try:
            spent = float(written)
        except ValueError:
            continue
        if math.isfinite(spent):
            seconds[stage] = seconds.get(stage, 0.0) + spent
    return Reading(
        prefill_tokens=load.prefix_queries,
        reused_tokens=load.prefix_hits,
        prefill_seconds=seconds.get("prefill"),
        decode_seconds=seconds.get("decode"),
    )
