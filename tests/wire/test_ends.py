"""Errors that come in the body of an answer."""

from __future__ import annotations

from typing import Any

import pytest

from evaluators.exchange import FaultKind
from service.wire.ends import error_message, fault_by_finish


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "no memory", "code": 500}}, "no memory"),
        ({"error": "no memory"}, "no memory"),
        ({"error": {"code": 3}}, '{"code":3}'),
        ({"object": "error", "message": "no memory"}, "no memory"),
        ({"type": "error", "code": "x", "message": "no memory"}, "no memory"),
        ({"type": "error"}, '{"type":"error"}'),
        ({"error": None, "choices": []}, None),
        ({"choices": []}, None),
        ([], None),
        ("error", None),
    ],
)
def test_an_error_is_told_in_every_dialect(body: Any, message: str | None) -> None:
    assert error_message(body) == message


def test_some_finish_reasons_say_that_nothing_finished() -> None:
    error, abort = fault_by_finish("error"), fault_by_finish("abort")
    assert error is not None
    assert abort is not None
    assert (error.kind, abort.kind) == (FaultKind.STREAM_ERROR, FaultKind.CUT_OFF)
    assert fault_by_finish("stop") is None
    assert fault_by_finish(None) is None
