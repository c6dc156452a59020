"""`/api/v1/adjudication`: pairs for people to judge, blind, and what they say of them.

Captured text is given to tokens with scope `label` only, also on this machine, and every item given is
written down with who got it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from service.approval.access import Caller, Scope, require
from service.approval.adjudication_schemas import (
    AccessLogOut,
    AccessOut,
    AdjudicationOut,
    ConflictOut,
    ItemOut,
    ItemsOut,
    LabelledOut,
    LabelsBody,
    NextOut,
    RubricOut,
    SideOut,
    TurnOut,
)
from service.approval.answers import moment
from service.approval.config import Adjudicating
from service.approval.desk import CallerOf, Desk
from service.approval.errors import Problem, echo
from service.approval.names import find_ladder
from service.approval.queues import queues_out
from service.store.access_log import read_access
from service.store.adjudication import BlindItem, Where, export_items, next_item
from service.store.capture import SealBroken
from service.store.labelling import JUDGE, Given, Said, record_labels

MOST_ITEMS = 20
MOST_ENTRIES = 1000
AHEAD_SECONDS = 300.0
"""How far another clock may be ahead."""
LAST_SEQUENCE = 2**31 - 1

ModelQuery = Annotated[str | None, Query(description="One model instead of all.")]
EvaluatorQuery = Annotated[str | None, Query(max_length=100, description="One evaluator instead of all.")]
TodoQuery = Annotated[
    bool, Query(description="Leave out what needs no more labels, or has one by this token.")
]


def adjudication_routes(desk: Desk) -> APIRouter:
    """The queue, what is said, and who saw what."""
    router = APIRouter(prefix="/adjudication", tags=["adjudication"])

    @router.get("", summary="What is queued, labelled and agreed")
    def status(model: ModelQuery = None) -> AdjudicationOut:
        """By tier and evaluator: labels, agreement, errors of evaluator and judge, and what they correct."""
        models = (
            list(desk.config.ladders) if model is None else [find_ladder(desk.config.ladders, model).model]
        )
        queued = desk.config.adjudication.queued if desk.config.adjudication is not None else ()
        return AdjudicationOut(
            evaluators=list(queued), queues=[each for name in models for each in queues_out(desk, name)]
        )

    @router.get("/next", summary="The next pair to judge")
    def following(
        caller: CallerOf,
        model: ModelQuery = None,
        evaluator: EvaluatorQuery = None,
    ) -> NextOut:
        """One pair, its sides in random order; never the tier, and never what the evaluator says of it."""
        require(caller, Scope.LABEL, "reading captured text")
        opening = _opening(desk)
        try:
            item = next_item(
                desk.db,
                opening.keyring,
                _places(desk, model),
                labeller=_labeller(caller),
                actor=caller.name,
                now=desk.now(),
                evaluator=evaluator,
            )
        except SealBroken as error:
            raise _sealed(error) from error
        if item is None:
            return NextOut(item=None, why=_why_none(opening))
        return NextOut(item=_item_out(opening, item), why="")

    @router.get("/items", summary="Pairs to judge, for a file")
    def items(
        caller: CallerOf,
        after: Annotated[str, Query(max_length=64, description="An item.")] = "",
        limit: Annotated[int, Query(ge=1, le=MOST_ITEMS)] = MOST_ITEMS,
        model: ModelQuery = None,
        evaluator: EvaluatorQuery = None,
        todo: TodoQuery = False,
    ) -> ItemsOut:
        """In the random order of labelling; with `todo`, those that this token still has to label."""
        require(caller, Scope.LABEL, "reading captured text")
        opening = _opening(desk)
        try:
            found = export_items(
                desk.db,
                opening.keyring,
                _places(desk, model),
                actor=caller.name,
                now=desk.now(),
                after=after,
                limit=limit,
                evaluator=evaluator,
                labeller=_labeller(caller) if todo else None,
            )
        except SealBroken as error:
            raise _sealed(error) from error
        return ItemsOut(
            items=[_item_out(opening, each) for each in found],
            next_after=found[-1].id if len(found) == limit else None,
        )

    @router.post("/labels", summary="Say which sides pass")
    def label(caller: CallerOf, body: LabelsBody) -> LabelledOut:
        """Repeating what was said changes nothing; saying something else is a conflict, unless `replace`.

        A token labels by its own name: whoever brings in labels of two people counts as one.
        """
        require(caller, Scope.LABEL, "labelling")
        now = desk.now()
        told = record_labels(
            desk.db,
            [
                Given(
                    item_id=each.item,
                    labeller=_labeller(caller, each.labeller),
                    said=Said(each.label),
                    at=_moment(each.at, now),
                )
                for each in body.labels
            ],
            token=caller.name,
            replace=body.replace,
        )
        return LabelledOut(
            recorded=told.recorded,
            replaced=told.replaced,
            unchanged=told.unchanged,
            conflicts=[
                ConflictOut(
                    item=each.item_id, labeller=each.labeller, had=each.had.value, given=each.said.value
                )
                for each in told.conflicts
            ],
            unknown=told.unknown,
        )

    @router.get("/access", summary="Who saw which captured text")
    def access(
        caller: CallerOf,
        after: Annotated[int, Query(ge=0, le=LAST_SEQUENCE)] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_ENTRIES)] = 100,
        item: Annotated[str | None, Query(max_length=64)] = None,
    ) -> AccessLogOut:
        """Every item that was given to anybody, and every label, in order."""
        require(caller, Scope.APPROVE, "reading who saw what")
        found = read_access(desk.db, after=after, limit=limit + 1, item_id=item)
        return AccessLogOut(
            entries=[
                AccessOut(
                    seq=each.seq,
                    at=moment(each.at),
                    actor=each.actor,
                    action=each.action,
                    item=each.item_id,
                    detail=each.detail,
                )
                for each in found[:limit]
            ],
            next_after=found[limit - 1].seq if len(found) > limit else None,
        )

    return router


def _opening(desk: Desk) -> Adjudicating:
    if desk.config.adjudication is None:
        raise Problem(
            409,
            "no_adjudication",
            "this API was given no key to open captured texts with",
            hint="it needs the capture keys that the workers have",
        )
    return desk.config.adjudication


def _places(desk: Desk, model: str | None) -> Sequence[Where]:
    """Every candidate in the epoch that counts now."""
    ladders = desk.config.ladders.values() if model is None else [find_ladder(desk.config.ladders, model)]
    return [
        Where(ladder.model, tier.name, desk.config.epoch_of(ladder.model, tier.name))
        for ladder in ladders
        for tier in ladder.candidates
    ]


def _labeller(caller: Caller, given: str | None = None) -> str:
    """The name of the token, which no label can be given in another's place."""
    if caller.name.startswith(JUDGE):
        raise Problem(
            422,
            "reserved_labeller",
            f"{echo(caller.name)}: names that begin with {JUDGE!r} are the judge's own",
        )
    if given is not None and given != caller.name:
        raise Problem(
            422,
            "foreign_labeller",
            f"this token labels as {echo(caller.name)}, not as {echo(given)}",
            hint="labels of two people count as two only by a token each: "
            "tiergate token new NAME --scope label",
        )
    return caller.name


def _moment(given: str | None, now: float) -> float:
    if given is None:
        return now
    problem = Problem(
        422, "bad_time", f"{echo(given)} is no past time in RFC 3339, such as 2026-01-31T12:00:00Z"
    )
    try:
        at = datetime.fromisoformat(given)
    except ValueError:
        raise problem from None
    if at.tzinfo is None or not 0 < at.timestamp() <= now + AHEAD_SECONDS:
        raise problem
    return at.timestamp()


def _why_none(opening: Adjudicating) -> str:
    if not opening.queued:
        return "no pairs are queued: name evaluators in adjudication.evaluators"
    return (
        "nothing is left for this labeller: pairs are queued as workers score them "
        f"({', '.join(opening.queued)}); texts go after adjudication.keep"
    )


def _sealed(error: SealBroken) -> Problem:
    return Problem(
        409, "sealed", str(error), hint="give this API the keys of mirror.capture.key_file that workers have"
    )


def _item_out(opening: Adjudicating, item: BlindItem) -> ItemOut:
    rubric = opening.rubrics.get(item.evaluator)
    return ItemOut(
        item=item.id,
        model=item.model,
        evaluator=item.evaluator,
        rubric=RubricOut.model_validate(rubric)
        if rubric is not None
        else RubricOut(question=f"Does this side pass as {item.evaluator} means it?", passes="", fails=""),
        request=[TurnOut.model_validate(turn) for turn in item.turns],
        asked=item.asked,
        a=SideOut.model_validate(item.a),
        b=SideOut.model_validate(item.b),
        expires_at=moment(item.expires_at),
    )
