"""From the fields of a form to the bodies that the API's functions take, with the API's own limits."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import ValidationError

from service.approval.errors import Problem
from service.approval.schemas import (
    ApprovalBody,
    Body,
    InterventionBody,
    RejectionBody,
    RollbackBody,
)
from service.dashboard.visit import Form

MOST_REASON = 2000
"""Characters, as the API has it."""

_B = TypeVar("_B", bound=Body)


def approval_of(form: Form, *, override: bool) -> ApprovalBody:
    """422 for a field that is not what it should be, as of the others."""
    return _body(
        ApprovalBody,
        override=override,
        reason=_given(form, "reason"),
        expires_in=_given(form, "expires_in"),
        artifact=_given(form, "artifact"),
    )


def rejection_of(form: Form) -> RejectionBody:
    return _body(RejectionBody, reason=form.text("reason"), force=forced(form))


def rollback_of(form: Form) -> RollbackBody:
    """Only from the tier that the page was about, so that the form sent twice goes down once."""
    return _body(
        RollbackBody,
        to=_given(form, "to"),
        if_serving=form.needed("tier"),
        reason=_given(form, "reason"),
        force=forced(form),
    )


def intervention_of(form: Form) -> InterventionBody:
    return _body(InterventionBody, reason=form.text("reason"))


def reason_of(form: Form) -> str | None:
    """What may be left out."""
    reason = _given(form, "reason")
    if reason is not None and len(reason) > MOST_REASON:
        raise Problem(422, "invalid_request", f"reason: more than {MOST_REASON} characters")
    return reason


def forced(form: Form) -> bool:
    """Whether somebody insists though the target has no room."""
    return form.text("force") == "yes"


def _given(form: Form, name: str) -> str | None:
    return form.text(name) or None


def _body(kind: type[_B], **fields: Any) -> _B:
    try:
        return kind(**fields)
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(str(step) for step in wrong['loc'][:1])}: {wrong['msg']}"
            for wrong in error.errors()[:4]
        )
        raise Problem(422, "invalid_request", told, hint="correct the field, then confirm") from None
