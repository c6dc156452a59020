"""How busy an engine is, from its metrics page. What it does not tell is None, never 0."""

from __future__ import annotations

from dataclasses import dataclass


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
