"""Executions of the Kayenta facade: what was asked, in the id, so that no replica has to remember it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from hashlib import sha256

from pydantic import ValidationError

from service.approval.desk import Desk
from service.approval.dialects.asking import DIGEST, judgement_of
from service.approval.dialects.judgement import Judgement
from service.approval.dialects.kayenta_schemas import Execution, Thresholds
from service.approval.errors import Problem, echo
from service.approval.narrowing import check_model

ROOM = 2
"""Between the thresholds there must be a whole number for what is neither passed nor failed."""


def config_id(model: str, tier: str) -> str:
    """Stable, and without slashes."""
    return sha256(f"{model}\0{tier}".encode()).hexdigest()[:32]


def candidates(desk: Desk) -> Iterator[tuple[str, str]]:
    """Model and tier of every canary config."""
    for model, ladder in desk.config.ladders.items():
        for tier in ladder.candidates:
            yield model, tier.name


def known_candidates(desk: Desk) -> list[tuple[str, str]]:
    """Those that the caller's token is for; 403 for a token that is for none of them."""
    known, refusal = [], None
    for model, tier in candidates(desk):
        try:
            check_model(model)
        except Problem as problem:
            refusal = problem
        else:
            known.append((model, tier))
    if refusal is not None and not known:
        raise refusal
    return known


def has_room(*, marginal: float, least_to_pass: float) -> bool:
    """Whether a score can fail, another one pass, and a whole one between do neither."""
    return marginal >= 1 and least_to_pass - marginal >= ROOM


def check_room(thresholds: Thresholds) -> None:
    """422 for thresholds that leave no room for inconclusive."""
    least, marginal = thresholds.pass_, thresholds.marginal
    if not has_room(marginal=marginal, least_to_pass=least):
        raise Problem(
            422,
            "invalid_request",
            f"thresholds: between marginal {marginal:g} and pass {least:g} is no room for inconclusive",
            hint="use marginal 75 and pass 90",
        )


def artifact_of(scopes: Iterable[str | None]) -> str | None:
    """The one digest among the experiment's scopes; 422 for several, and for what only looks like one."""
    given = {scope for scope in scopes if scope}
    named = sorted(scope for scope in given if DIGEST.fullmatch(scope))
    broken = sorted(scope for scope in given if "sha256" in scope.lower() and scope not in named)
    if broken:
        raise Problem(
            422,
            "invalid_request",
            f"scopes: {echo(broken[0])} is no sha256 in 64 hexadecimal digits",
            hint="an image has a digest of its own; send what `tiergate artifact digest` prints",
        )
    if len(named) > 1:
        raise Problem(422, "invalid_request", f"scopes: {len(named)} artifacts at once, there can be one")
    return named[0] if named else None


def judged(desk: Desk, execution: Execution) -> Judgement:
    """The judgement on what it asks; 404 for a config that is none."""
    for model, tier in candidates(desk):
        if config_id(model, tier) == execution.config:
            return judgement_of(desk, model, tier, artifact=execution.artifact, basis=execution.basis)
    raise Problem(
        404,
        "unknown_tier",
        f"no canary config has the id {echo(execution.config)}",
        hint="GET canaryConfig lists them; their names are MODEL@TIER",
    )


def spell(execution: Execution) -> str:
    """The id."""
    return base64.urlsafe_b64encode(execution.model_dump_json().encode()).decode().rstrip("=")


def parse(spelled: str) -> Execution:
    """What an id asks; 404 for one that nobody was given."""
    try:
        text = base64.b64decode(spelled + "=" * (-len(spelled) % 4), altchars=b"-_", validate=True)
        execution = Execution.model_validate_json(text)
    except (binascii.Error, ValueError, ValidationError):
        execution = None
    if execution is None or not has_room(marginal=execution.marginal, least_to_pass=execution.least_to_pass):
        raise Problem(404, "unknown_execution", f"no execution has the id {echo(spelled)}")
    return execution
