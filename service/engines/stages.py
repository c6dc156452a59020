"""Time that an engine spent on prefill and on decode, and its prefix counters, from its metrics page."""

from __future__ import annotations

import math
import re

from service.capacity.prefix_gate import Reading
from service.capacity.prefix_window import Look
from service.engines.load import EngineLoad, engine_load

_SECONDS = re.compile(
    r"^(vllm:request_prefill_time_seconds_sum|vllm:request_decode_time_seconds_sum|"
    r"llamacpp:prompt_seconds_total|llamacpp:tokens_predicted_seconds_total)(?:\{.*\})?[ \t]+(\S+)",
    re.MULTILINE,
)
_DECODING = ("vllm:request_decode", "llamacpp:tokens_predicted")


def prefix_reading(page: str) -> Reading | None:
    """Counters of tokens and seconds; None where a page tells of no prefix cache. SGLang tells no seconds."""
    return _reading(page, engine_load(page))


def prefix_look(page: str, *, backend: str, at: float) -> Look | None:
    """The same, of one backend at one time (Unix seconds), with how busy it is."""
    load = engine_load(page)
    reading = _reading(page, load)
    if load is None or reading is None:
        return None
    return Look(
        backend=backend,
        at=at,
        reading=reading,
        running=load.running,
        kv_usage=load.kv_usage,
        evicted=load.evicted_tokens,
    )


def _reading(page: str, load: EngineLoad | None) -> Reading | None:
    if load is None or load.prefix_queries is None or load.prefix_hits is None:
        return None
    seconds: dict[str, float] = {}
    for name, written in _SECONDS.findall(page):
        try:
            spent = float(written)
        except ValueError:
            continue
        stage = "decode" if name.startswith(_DECODING) else "prefill"
        if math.isfinite(spent):
            seconds[stage] = seconds.get(stage, 0.0) + spent
    return Reading(
        prefill_tokens=load.prefix_queries,
        reused_tokens=load.prefix_hits,
        prefill_seconds=seconds.get("prefill"),
        decode_seconds=seconds.get("decode"),
    )
