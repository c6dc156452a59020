"""The models that whoever asks may know of, while one request is answered.

Two locks: `check_path` lets a token that is restricted to models ask only where every route names one, or
tells of none, and `check_model` is asked by the one function that finds a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from service.approval.errors import Problem, echo

OF_MODELS = re.compile(
    r"/api/v1/models/|/gates/[a-z]+/models/"
    r"|/gates/kayenta/(?:canary/|canaryConfig$|standalone_canary_analysis/|pipelines/)"
    r"|/gates/flagger/(?:gate|rollback)/"
)
"""Below these a route finds the model that it is about."""
OF_NONE = frozenset({"/gates/kayenta/credentials", "/gates/kayenta/judge"})
"""What is told here is the same whatever models there are; orca asks it by the token of one pipeline."""

_models: ContextVar[frozenset[str] | None] = ContextVar("models", default=None)


@contextmanager
def narrowed(models: frozenset[str] | None) -> Iterator[None]:
    """Within the block, and in the threads begun in it, only these models are found; None = all."""
    token = _models.set(models)
    try:
        yield
    finally:
        _models.reset(token)


def narrow(models: frozenset[str] | None) -> None:
    """For the rest of this request: of a caller who is known only after the body was read."""
    _models.set(models)


def check_path(models: frozenset[str] | None, path: str) -> None:
    """403 for a restricted token where answers are about more than one model."""
    if models is not None and path not in OF_NONE and OF_MODELS.match(path) is None:
        raise _not_allowed(models, f"{echo(path)} is about more models than that")


def check_model(model: str) -> None:
    """403 for a model that the caller may not ask about, be there one of that name or not."""
    models = _models.get()
    if models is not None and model not in models:
        raise _not_allowed(models, f"not for {echo(model)}")


def _not_allowed(models: frozenset[str], but: str) -> Problem:
    named = ", ".join(map(repr, sorted(models)))
    return Problem(
        403,
        "model_not_allowed",
        f"the token is for {named} alone; {but}",
        hint="`tiergate token new NAME --scope SCOPE --model MODEL` makes one for another model",
    )
