"""Builders for the store's values: each test names only what it is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from service.store.redis.capture import Capture, Ending, Keyring
from service.store.scored.units import PairRow, Unit


def _row(judged: str, item: int = 0) -> PairRow:
    """`pf` is baseline passed, candidate failed; `u` unscored, `n` not applicable, `o` over budget."""
    match judged:
        case "u":
            return PairRow(item=item, outcome="unscored", unscored_reason="shadow")
        case "n":
            return PairRow(item=item, outcome="not_applicable")
        case "o":
            return PairRow(item=item, outcome="over_budget")
    passed = {"p": True, "f": False}
    labels = {"p": "ok", "f": "not_json"}
    return PairRow(
        item=item,
        outcome="scored",
        baseline_passed=passed[judged[0]],
        candidate_passed=passed[judged[1]],
        baseline_label=labels[judged[0]],
        candidate_label=labels[judged[1]],
        baseline_reason="",
        candidate_reason="" if judged[1] == "p" else "expected JSON, found prose",
    )


@pytest.fixture(scope="session")
def unit_of() -> Callable[..., Unit]:
    """`unit_of("c1", "pf")`, `unit_of("c1", ["pp", "pf"], evaluator="long_context_recall")`."""

    def build(capture_id: str, judged: str | Sequence[str], **changes: Any) -> Unit:
        listed = [judged] if isinstance(judged, str) else list(judged)
        fields: dict[str, Any] = {
            "capture_id": capture_id,
            "model": "m",
            "tier": "w8a8",
            "arm": "candidate",
            "evaluator": "structured_output",
            "version": "1",
            "epoch": "e1",
            "conversation": f"talk of {capture_id}",
            "stratum": "short",
            "tenant": "t1",
            "digest": f"digest of {capture_id}",
            "counted": True,
            "rows": tuple(_row(each, item) for item, each in enumerate(listed)),
            "at": 1000.0,
        }
        return Unit(**{**fields, **changes})

    return build


@pytest.fixture(scope="session")
def keyring() -> Keyring:
    return Keyring(current="k2", keys={"k1": bytes(range(32)), "k2": bytes(range(100, 132))})


@pytest.fixture(scope="session")
def capture_of() -> Callable[..., Capture]:
    """A complete capture; name what differs."""

    def build(capture_id: str = "c1", **changes: Any) -> Capture:
        fields: dict[str, Any] = {
            "id": capture_id,
            "model": "m",
            "tier": "bf16",
            "path": "/v1/chat/completions",
            "request_body": b'{"model":"m","messages":[{"role":"user","content":"the secret prompt"}]}',
            "status": 200,
            "response_type": "application/json",
            "response_body": b'{"choices":[{"message":{"content":"the secret answer"}}]}',
            "ending": Ending.COMPLETE,
            "started_at": 1000.5,
            "first_byte_seconds": 0.25,
            "total_seconds": 1.5,
            "tenant": "0123abcd",
            "stratum": "short",
        }
        return Capture(**{**fields, **changes})

    return build
