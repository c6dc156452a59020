"""The JSON of `/api/v1/adjudication`, field by field. Nothing here tells which side is the candidate's."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from service.approval.schemas import Answer, Body, Finite
from service.approval.verdict_schemas import CorrectionOut

Label = Literal["a", "b", "both", "neither", "skip"]
ItemId = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9a-f]{32}$"),
    Field(examples=["09af6bcb9ca176301fd264b82763f67f"]),
]
Labeller = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$"),
]
MOST_LABELS = 200
"""In one request."""


class TurnOut(Answer):
    role: str = Field(examples=["user"])
    text: str


class CallOut(Answer):
    name: str
    arguments: str


class SideOut(Answer):
    text: str
    refusal: str = Field(description="The engine's own refusal field; empty without one.")
    calls: list[CallOut]
    finish_reason: str
    fault: str = Field(description="Why there is no answer; empty when there is one.")


class RubricOut(Answer):
    question: str = Field(description="Of each side.")
    passes: str
    fails: str


class ItemOut(Answer):
    item: str = Field(examples=["0f3a5c7e9b1d2f4a6c8e0b2d4f6a8c0e"])
    model: str = Field(description="The name clients send.")
    evaluator: str = Field(examples=["refusal"])
    rubric: RubricOut
    request: list[TurnOut]
    asked: str = Field(description="What the answer was to be, besides what the request says; may be empty.")
    a: SideOut
    b: SideOut
    expires_at: str = Field(description="RFC 3339; the text goes in the course of that day, in UTC.")


class NextOut(Answer):
    item: ItemOut | None = Field(description="null when nothing is left for this labeller.")
    why: str = Field(description="What to do when nothing is left; empty otherwise.")


class ItemsOut(Answer):
    items: list[ItemOut]
    next_after: str | None = Field(description="Ask on from here; null at the end.")


class LabelBody(Body):
    item: ItemId
    label: Label = Field(description="Which sides pass by the rubric; `skip` when it cannot be told.")
    labeller: Labeller | None = Field(
        default=None, description="Who says so: the token's name, which need not be told, and no other."
    )
    at: Annotated[str, StringConstraints(max_length=40)] | None = Field(
        default=None, description="RFC 3339, when it was said; now by default."
    )


class LabelsBody(Body):
    labels: Annotated[list[LabelBody], Field(min_length=1, max_length=MOST_LABELS)]
    replace: bool = Field(
        default=False, description="Whether the same labeller may say something else than before."
    )


class ConflictOut(Answer):
    item: str
    labeller: str
    had: Label
    given: Label


class LabelledOut(Answer):
    recorded: int
    replaced: int
    unchanged: int = Field(description="Said before, in the same words.")
    conflicts: list[ConflictOut] = Field(description="Said otherwise before, and kept as they were.")
    unknown: list[str] = Field(description="Not in the queue.")
    seen_openly: list[str] = Field(
        description="Left out: this token was shown which side is whose, so it cannot judge them blind."
    )


class AgreementOut(Answer):
    first: str
    second: str
    items: int = Field(description="That both labelled, skips apart.")
    agreed: int
    kappa: Finite | None = Field(description="Cohen's; null where chance alone would agree always.")


class ErrorRatesOut(Answer):
    pairs: int = Field(description="That people labelled too; each weighted by the pairs it stands for.")
    baseline_sensitivity: Finite | None = Field(description="Of failures, those called so.")
    baseline_specificity: Finite | None = Field(description="Of passes, those called so.")
    candidate_sensitivity: Finite | None
    candidate_specificity: Finite | None


class JudgeOut(Answer):
    labelled: int
    skipped: int = Field(description="Among them those on which it said something else in the other order.")
    agreement: AgreementOut = Field(description="With what people say together.")
    errors: ErrorRatesOut
    difference: Finite | None = Field(
        description="By the judge, corrected for these errors (Rogan and Gladen); in no finding."
    )
    lower: Finite | None
    upper: Finite | None


class LabellerOut(Answer):
    labeller: str
    labelled: int
    skipped: int


class QueueOut(Answer):
    model: str
    tier: str
    evaluator: str
    queued: int = Field(description="Pairs drawn, of the epoch that counts now.")
    kept: int = Field(description="Of these, those whose text is still there.")
    discordant: int = Field(description="Of the drawn ones, those in which the evaluator sees a difference.")
    labelled: int = Field(description="Pairs of which people say what they are.")
    open: int = Field(description="Pairs that they skipped or disagree on.")
    disputed: list[str] = Field(description="Items on which people disagree, some of them.")
    labellers: list[LabellerOut]
    agreement: list[AgreementOut]
    evaluator_errors: ErrorRatesOut
    correction: CorrectionOut | None = Field(description="What labels say of the finding.")
    judge: JudgeOut | None


class AdjudicationOut(Answer):
    evaluators: list[str] = Field(description="Whose pairs are queued.")
    queues: list[QueueOut]


class AccessOut(Answer):
    seq: int
    at: str = Field(description="RFC 3339.")
    actor: str = Field(description="The token's name, or the judge.")
    action: str = Field(
        description="next, export, judge: saw the text; look: with the names of its sides; label, relabel, "
        "unlabel: said something, or took it back."
    )
    item: str
    detail: str


class AccessLogOut(Answer):
    entries: list[AccessOut]
    next_after: int | None
