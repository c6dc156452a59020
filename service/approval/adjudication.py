"""`/api/v1/adjudication`: pairs for people to judge, blind, and what they say of them (`judging`)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from service.approval.access import Scope, require
from service.approval.adjudication_schemas import (
    AccessLogOut,
    AccessOut,
    AdjudicationOut,
    ItemsOut,
    LabelledOut,
    LabelsBody,
    NextOut,
)
from service.approval.desk import CallerOf, Desk
from service.approval.judging import MOST_ITEMS, items_out, labels_out, next_out
from service.approval.names import find_ladder
from service.approval.queues import queues_out
from service.approval.schemas import storable
from service.moments import moment
from service.store.labels.access_log import read_access

MOST_ENTRIES = 1000
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
        return next_out(desk, caller, model=model, evaluator=_storable(evaluator))

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
        return items_out(
            desk,
            caller,
            after=storable(after),
            limit=limit,
            model=model,
            evaluator=_storable(evaluator),
            todo=todo,
        )

    @router.post("/labels", summary="Say which sides pass")
    def label(caller: CallerOf, body: LabelsBody) -> LabelledOut:
        """Repeating what was said changes nothing; saying something else is a conflict, unless `replace`.

        A token labels by its own name: whoever brings in labels of two people counts as one. What it has seen
        with the names of the sides is left out, for that would not be blind.
        """
        return labels_out(desk, caller, body)

    @router.get("/access", summary="Who saw which captured text")
    def access(
        caller: CallerOf,
        after: Annotated[int, Query(ge=0, le=LAST_SEQUENCE)] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_ENTRIES)] = 100,
        item: Annotated[str | None, Query(max_length=64)] = None,
    ) -> AccessLogOut:
        """Every item that was given to anybody, and every label, in order."""
        require(caller, Scope.APPROVE, "reading who saw what")
        found = read_access(desk.db, after=after, limit=limit + 1, item_id=_storable(item))
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


def _storable(text: str | None) -> str | None:
    return None if text is None else storable(text)
