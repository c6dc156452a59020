"""Is anybody there? Asked of a tier's backends before a route moves to it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from service.fleet import Backend, Tier
from service.reach import client_of

NOT_OFFERED = frozenset({404, 405, 501})
"""Statuses by which an engine says that it has no such page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What a tier's backends said."""

    tier: str
    up: tuple[str, ...]
    """URLs that answered."""
    down: Mapping[str, str]
    """Why not, by URL."""

    @property
    def can_serve(self) -> bool:
        """At least one backend is up; a tier without backends cannot serve."""
        return bool(self.up)

    @property
    def complaint(self) -> str:
        """What is wrong, one backend after the other; empty when nothing is."""
        return "; ".join(f"{url}: {why}" for url, why in self.down.items())


async def ask_health(tier: Tier, *, timeout_seconds: float) -> Health:
    """Ask all backends at once; `/health`, and `/v1/models` where there is no such page."""
    async with asyncio.TaskGroup() as asked:
        answers = {
            backend.url: asked.create_task(_complaint(backend, timeout_seconds)) for backend in tier.backends
        }
    complaints = {url: answer.result() for url, answer in answers.items()}
    return Health(
        tier=tier.name,
        up=tuple(url for url, why in complaints.items() if why is None),
        down={url: why for url, why in complaints.items() if why is not None},
    )


async def _complaint(backend: Backend, timeout_seconds: float) -> str | None:
    """None when the backend is up, else why it is not."""
    status = 0
    try:
        async with asyncio.timeout(timeout_seconds), client_of(backend, timeout=timeout_seconds) as http:
            for path in ("/health", "/v1/models"):
                async with http.stream("GET", path) as answer:
                    status = answer.status_code
                if status not in NOT_OFFERED:
                    break
    except (TimeoutError, httpx.TimeoutException):
        return f"no answer within {timeout_seconds:g} s"
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return str(error) or type(error).__name__
    return None if 200 <= status < 300 else f"answers {status}"
