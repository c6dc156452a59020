"""One question to a pipeline's API: a configured URL, no redirect, bounded in time and size.

Unanswered
    it did not do what was asked; says whether asking again can help
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from service import tls

CONNECT_SECONDS, READ_SECONDS, WHOLE_SECONDS = 2.0, 3.0, 5.0
"""The guard asks, between two looks at the tiers that serve: it must not wait for others."""
LARGEST_ANSWER = 1024 * 1024
LONGEST_PAUSE = 900.0
"""Seconds of a Retry-After that are kept to."""
AGAIN = frozenset({408, 425, 429}) | frozenset(range(500, 600))


class Unanswered(Exception):
    """Asking again may help (`again`), after `pause` seconds at least; a `silent` API is not asked now.

    `status` is what was answered, None where nothing was.
    """

    def __init__(
        self,
        problem: str,
        *,
        again: bool,
        pause: float = 0.0,
        silent: bool = False,
        status: int | None = None,
    ) -> None:
        self.problem, self.again, self.pause, self.silent = problem, again, pause, silent
        self.status = status
        super().__init__(problem)


class Sender:
    """One API. What it answers and refuses is told by status; secrets are in no message."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        ca: str | None = None,
        shown: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`shown` stands for a URL that is itself a secret."""
        self._url, self._shown, self._clock = url, shown or url, clock
        self._http = httpx.Client(
            headers={"User-Agent": "tiergate", **headers},
            verify=tls.connecting(ca=ca),
            timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_keepalive_connections=0),
            trust_env=False,
            follow_redirects=False,
        )

    def close(self) -> None:
        self._http.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        done: frozenset[int],
        body: Mapping[str, Any] | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The JSON of an answer whose status is `done`, None for what is none; else `Unanswered`.

        Asked with a body that becomes JSON, or with content as it was signed.
        """
        what = f"{method} {self._shown}{path.partition('?')[0]}"
        end = self._clock() + WHOLE_SECONDS
        try:
            with self._http.stream(
                method, f"{self._url}{path}", json=body, content=content, headers=headers
            ) as answer:
                found = bytearray()
                for chunk in answer.iter_bytes():
                    found += chunk
                    if len(found) > LARGEST_ANSWER or self._clock() > end:
                        raise Unanswered(f"{what}: the answer does not end", again=True, silent=True)
        except httpx.HTTPError as error:
            told = f"{what}: {type(error).__name__} {error}".rstrip()
            raise Unanswered(told, again=True, silent=True) from error
        if answer.status_code in done:
            return _json(bytes(found))
        again = answer.status_code in AGAIN or _is_rate_limit(answer)
        raise Unanswered(
            f"{what}: answered {answer.status_code}",
            again=again,
            pause=_pause(answer),
            silent=again,
            status=answer.status_code,
        )


def _is_rate_limit(answer: httpx.Response) -> bool:
    """GitHub says 403 as well when there were too many requests."""
    return answer.status_code == 403 and (
        "retry-after" in answer.headers or answer.headers.get("x-ratelimit-remaining") == "0"
    )


def _pause(answer: httpx.Response) -> float:
    told = answer.headers.get("retry-after", "")
    return min(float(told), LONGEST_PAUSE) if told.isdecimal() and len(told) < 10 else 0.0


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
