"""How busy an engine is, from its metrics page. What it does not tell is None, never 0.

Names change with the version, and for some versions a page has the old one and the new: the first of a row
that is there counts. Read in vLLM 0.8 to 0.32, SGLang, TGI and llama.cpp; a page of another engine tells
nothing. The reading is plain: a page has thousands of lines, and it is read beside a load that is being
timed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
_RANKS = frozenset({"tp_rank", "pp_rank", "moe_ep_rank"})
"""Labels of parts of one replica, each of which tells of the whole."""
_PREFIXES = ("vllm:", "sglang:", "llamacpp:", "tgi_")
_RESIDENT = "process_resident_memory_bytes"
"""Of the server's process alone, by the collector that comes with every Prometheus client."""
_TOLD = (*_PREFIXES, _RESIDENT)

RUNNING = (
    "vllm:num_requests_running",
    "sglang:num_running_reqs",
    "llamacpp:requests_processing",
    "tgi_batch_current_size",
)
WAITING = (
    "vllm:num_requests_waiting",
    "sglang:num_queue_reqs",
    "llamacpp:requests_deferred",
    "tgi_queue_size",
)
KV_USAGE = (
    "vllm:kv_cache_usage_perc",
    "vllm:gpu_cache_usage_perc",
    "sglang:full_token_usage",
    "sglang:token_usage",
    "llamacpp:kv_cache_usage_ratio",
)
_PREEMPTIONS = (
    "vllm:num_preemptions_total",
    "vllm:num_preemptions",
    "sglang:num_retracted_requests_total",
    "sglang:num_retracted_requests",
)
_QUERIES = (
    "vllm:prefix_cache_queries_total",
    "vllm:prefix_cache_queries",
    "vllm:gpu_prefix_cache_queries_total",
    "vllm:gpu_prefix_cache_queries",
)
_HITS = tuple(name.replace("queries", "hits") for name in _QUERIES)
_EVICTED = ("sglang:evicted_tokens_total", "sglang:evicted_tokens")
_BY_MODE = ("sglang:prefill_effective_tokens_total", "sglang:realtime_tokens_total")
_CACHED, _PROMPT = "sglang:cached_tokens_total", "sglang:prompt_tokens_total"
_REUSED, _COMPUTED = "llamacpp:prompt_tokens_cached_total", "llamacpp:prompt_tokens_total"
"""What llama.cpp took from its cache, and what it computed: together all tokens of prompts."""
_KNOWN = frozenset(
    {
        *(*RUNNING, *WAITING, *KV_USAGE, *_PREEMPTIONS, *_QUERIES, *_HITS, *_BY_MODE, *_EVICTED),
        *(_CACHED, _PROMPT, _REUSED, _COMPUTED, _RESIDENT),
    }
)

Series = tuple[Mapping[str, str], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLoad:
    """One look at one engine, or at all the replicas behind one page."""

    running: float | None = None
    """Requests that it works on."""
    waiting: float | None = None
    """Requests in its queue."""
    kv_usage: float | None = None
    """Share of the KV cache in use, 0 to 1; of the fullest replica."""
    preemptions: float | None = None
    """Requests thrown out of the KV cache, since it started."""
    prefix_queries: float | None = None
    """Tokens looked up in the prefix cache, since it started."""
    prefix_hits: float | None = None
    """Of those, tokens found."""
    evicted_tokens: float | None = None
    """Pushed out of the prefix cache, since it started; only SGLang counts them."""
    resident_bytes: float | None = None
    """Host memory of the server's process; not the card's, which no engine tells."""


def engine_load(page: str) -> EngineLoad | None:
    """What a metrics page tells; None when it tells nothing of an engine that we know."""
    found = _series(page)
    queries, hits = _prefix_tokens(found)
    load = EngineLoad(
        running=_first(found, RUNNING, sum),
        waiting=_first(found, WAITING, sum),
        kv_usage=_first(found, KV_USAGE, max),
        preemptions=_first(found, _PREEMPTIONS, sum),
        prefix_queries=queries,
        prefix_hits=hits,
        evicted_tokens=_first(found, _EVICTED, sum),
    )
    if load == EngineLoad():
        return None  # whose process it is, any page tells
    return replace(load, resident_bytes=_first(found, (_RESIDENT,), sum))


def own_words(page: str) -> str:
    """Its lines that are the engine's own: the same twice, it did nothing in between."""
    return "\n".join(line for line in page.split("\n") if line.startswith(_PREFIXES))


def _series(page: str) -> dict[str, list[Series]]:
    found: dict[str, list[Series]] = {}
    for line in page.split("\n"):
        if not line.startswith(_TOLD):
            continue
        name = line.partition("{")[0].partition(" ")[0]
        if name not in _KNOWN:
            continue
        braced, _, rest = line[len(name) :].rpartition("}")
        words = rest.split()
        try:
            value = float(words[0])
        except (ValueError, IndexError):
            continue
        if math.isfinite(value):
            found.setdefault(name, []).append((dict(_LABEL.findall(braced)), value))
    return found


def _first(
    found: Mapping[str, list[Series]],
    names: Iterable[str],
    together: Callable[[Iterable[float]], float],
) -> float | None:
    for name in names:
        if name in found:
            return together(_by_replica(found[name]))
    return None


def _by_replica(series: Iterable[Series]) -> list[float]:
    """One value of each, the largest where its parts tell it several times."""
    replicas: dict[frozenset[tuple[str, str]], float] = {}
    for labels, value in series:
        key = frozenset((name, told) for name, told in labels.items() if name not in _RANKS)
        replicas[key] = max(value, replicas.get(key, value))
    return list(replicas.values())


def _prefix_tokens(found: Mapping[str, list[Series]]) -> tuple[float | None, float | None]:
    """Tokens looked up and tokens found, or None for both."""
    queries, hits = _first(found, _QUERIES, sum), _first(found, _HITS, sum)
    if queries is not None and hits is not None:
        return queries, hits
    for name in _BY_MODE:
        modes = [series for series in found.get(name, ()) if series[0].get("mode") != "decode"]
        if modes:
            from_cache = [
                series for series in modes if series[0].get("mode", "").endswith(("_hit", "prefill_cache"))
            ]
            return sum(_by_replica(modes)), sum(_by_replica(from_cache))
    if _CACHED in found and _PROMPT in found:
        return sum(_by_replica(found[_PROMPT])), sum(_by_replica(found[_CACHED]))
    if _REUSED in found and _COMPUTED in found:
        reused = sum(_by_replica(found[_REUSED]))
        return reused + sum(_by_replica(found[_COMPUTED])), reused
    return None, None
