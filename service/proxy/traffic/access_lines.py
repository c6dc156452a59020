"""What a line of the access log says of a request: who, when, how long, how it ended. Pure.

Never content: no body, no query string, no header but the request id, no credential but its keyed hash. A
path is named only if it is one we know, since clients make paths up and put into them what they like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from evaluators.exchange import Endpoint
from service.proxy.entry import admission
from service.proxy.entry.door import OwnAnswer
from service.proxy.http.errors import Refusal, error_body
from service.store.redis.capture import Ending
from service.store.redis.counters import Dropped, Skipped

if TYPE_CHECKING:
    from service.proxy.http.requests import Inbound
    from service.proxy.traffic.relay import Relay

OTHER = "other"
"""Stands for a path that is none of ours."""
KNOWN_PATHS = frozenset(
    {
        *(endpoint.value for endpoint in Endpoint),
        "/v1/audio/speech",
        "/v1/audio/transcriptions",
        "/v1/audio/translations",
        "/v1/classify",
        "/v1/detokenize",
        "/v1/embeddings",
        "/v1/images/edits",
        "/v1/images/generations",
        "/v1/messages/count_tokens",
        "/v1/models",
        "/v1/moderations",
        "/v1/pooling",
        "/v1/rerank",
        "/v1/responses/input_tokens",
        "/v1/score",
        "/v1/tokenize",
    }
)
FIELDS = (
    "time",
    "instance",
    "request_id",
    "tenant",
    "method",
    "path",
    "model",
    "tier",
    "wanted_tier",
    "backend",
    "attempts",
    "status",
    "ending",
    "error",
    "cause",
    "streamed",
    "bytes_in",
    "bytes_out",
    "queue_ms",
    "send_ms",
    "first_byte_ms",
    "total_ms",
    "capture",
    "drawn",
)
"""Every line has all of them, null where there is nothing to say; `docs/operations.md` explains them."""
LONGEST_ID = 128
"""Characters of a request id; `heads` lets no longer one pass."""
_EVENT_STREAM = b"text/event-stream"
_FAILED = frozenset({Ending.CUT_OFF, Ending.TIMEOUT, Ending.UNREACHABLE})

_BLANK: Mapping[str, object] = dict.fromkeys(FIELDS)

Entry = Mapping[str, object]


class Lines:
    """Makes the entries of one process's log."""

    def __init__(self, *, instance: str, salt: bytes, forward_paths: Sequence[str]) -> None:
        self._instance = instance
        self._salt = salt
        self._known = {path.encode(): path for path in KNOWN_PATHS}
        self._known.update({path.encode(): path for path in forward_paths if not path.endswith("/")})
        self._below = tuple((path.encode(), path + "*") for path in forward_paths if path.endswith("/"))

    def of_relay(self, relay: Relay, *, now: float, wall: float, drawn: str) -> Entry:
        """A request that was meant for a backend; `now` is monotonic, `wall` seconds since the epoch."""
        started, head, refusal = relay.inbound.started, relay.head, relay.refusal
        return {
            **self._request(relay.inbound, relay.request_id, wall),
            "model": relay.admission.ladder.model,
            "tier": relay.tier.name,
            "wanted_tier": None if relay.tier.name == relay.wanted.name else relay.wanted.name,
            "backend": address(relay.server.url) if relay.attempts else None,
            "attempts": relay.attempts,
            "status": refusal.status.value if refusal else None if head is None else head.status,
            "ending": None if relay.ending is None else relay.ending.value,
            "error": refusal.code if refusal else None,
            "cause": relay.cause,
            "streamed": head is not None and head.header(b"content-type")[:17].lower() == _EVENT_STREAM,
            "bytes_in": relay.inbound.size,
            "bytes_out": len(error_body(refusal)) if refusal else relay.body_bytes,
            "queue_ms": round(relay.queued_seconds * 1000.0, 3) if relay.queued_seconds else None,
            "send_ms": _milliseconds(started, relay.sent),
            "first_byte_ms": _milliseconds(started, relay.first_byte),
            "total_ms": _milliseconds(started, now),
            "capture": capture_of(relay),
            "drawn": drawn,
        }

    def of_own_answer(
        self,
        inbound: Inbound | None,
        answer: Refusal | OwnAnswer,
        request_id: bytes,
        *,
        wall: float,
        drawn: str,
    ) -> Entry:
        """A request that went to no backend; `inbound` is None when it could not even be read."""
        model: str | None = None
        error, content = None, b""
        if isinstance(answer, Refusal):
            model, error, content = answer.model, answer.code, error_body(answer)
        else:
            content = answer.content
        return {
            **self._request(inbound, request_id, wall),
            "model": model,
            "status": answer.status.value,
            "error": error,
            "bytes_in": None if inbound is None else inbound.size,
            "bytes_out": len(content),
            "capture": None if model is None else Skipped.REFUSED.value,
            "drawn": drawn,
        }

    def path(self, path: bytes) -> str:
        """The path if it is one we know, else where it is below, else `other`."""
        known = self._known.get(path)
        if known is not None:
            return known
        return next((shown for below, shown in self._below if path.startswith(below)), OTHER)

    def _request(self, inbound: Inbound | None, request_id: bytes, wall: float) -> Entry:
        head = None if inbound is None else inbound.head
        return {
            **_BLANK,
            "time": datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds"),
            "instance": self._instance,
            "request_id": request_id[:LONGEST_ID].decode("latin-1"),
            "tenant": admission.tenant_of(self._salt, head.credential) if head and head.credential else None,
            "method": None if head is None else head.method.decode(),
            "path": None if head is None else self.path(head.path),
        }


def has_failed(relay: Relay) -> bool:
    """Whether the client got an error or half an answer. One that left of its own accord is no failure."""
    head = relay.head
    if relay.refusal is not None or relay.ending in _FAILED or relay.is_cut_short:
        return True
    return head is not None and head.status >= 400


def capture_of(relay: Relay) -> str:
    """What became of the copy: `sampled`, or why there is none."""
    recording = relay.recording
    if recording is None:
        return (relay.admission.skipped or Skipped.NOT_SAMPLED).value
    if recording.is_too_large:
        return Skipped.TOO_LARGE.value
    return Dropped.BUFFER_FULL.value if recording.overran_budget else "sampled"


def address(url: str) -> str:
    """A backend's URL without what may stand before an `@`."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _milliseconds(since: float, at: float | None) -> float | None:
    return None if at is None else round((at - since) * 1000.0, 3)
