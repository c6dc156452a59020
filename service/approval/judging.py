"""What people judge and say, as plain functions: routes of the API and pages of the dashboard call them.

Captured text is given to tokens with scope `label` only, also on this machine, and every item given is
written down with who got it. A token is given only what belongs to its models, and nothing whose
sides it has seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from service.approval.access import Caller, Scope, require
from service.approval.adjudication_schemas import (
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
from service.approval.config import Adjudicating
from service.approval.desk import Desk
from service.approval.errors import Problem, echo
from service.approval.names import find_ladder
from service.moments import moment
from service.store.labels.adjudication import BlindItem, Where, export_items, left_to_judge, next_item
from service.store.labels.labelling import (
    JUDGE,
    Given,
    Labelled,
    Said,
    last_label,
    record_labels,
    take_back,
)
from service.store.redis.capture import SealBroken

MOST_ITEMS = 20
"""Of one page of items."""
DAY_SECONDS = 86400.0
AHEAD_SECONDS = 300.0
"""How far another clock may be ahead."""
READING = "reading captured text"
LABELLING = "labelling"


def next_out(
    desk: Desk,
    caller: Caller,
    *,
    model: str | None = None,
    evaluator: str | None = None,
    item: str | None = None,
) -> NextOut:
    """One pair, its sides in random order; never the tier, and never what the evaluator says of it."""
    require(caller, Scope.LABEL, READING)
    opening = opening_of(desk)
    try:
        found = next_item(
            desk.db,
            opening.keyring,
            _places(desk, caller, model),
            labeller=labeller_of(caller),
            actor=caller.name,
            now=desk.now(),
            evaluator=evaluator,
            item=item,
        )
    except SealBroken as error:
        raise sealed(error) from error
    if found is None:
        return NextOut(item=None, why=_why_none(opening))
    return NextOut(item=_item_out(opening, found), why="")


def items_out(
    desk: Desk,
    caller: Caller,
    *,
    after: str = "",
    limit: int = MOST_ITEMS,
    model: str | None = None,
    evaluator: str | None = None,
    todo: bool = False,
) -> ItemsOut:
    """In the random order of labelling; with `todo`, those that this token still has to label."""
    require(caller, Scope.LABEL, READING)
    opening = opening_of(desk)
    try:
        found = export_items(
            desk.db,
            opening.keyring,
            _places(desk, caller, model),
            actor=caller.name,
            now=desk.now(),
            after=after,
            limit=limit,
            evaluator=evaluator,
            labeller=labeller_of(caller) if todo else None,
        )
    except SealBroken as error:
        raise sealed(error) from error
    return ItemsOut(
        items=[_item_out(opening, each) for each in found],
        next_after=found[-1].id if len(found) == limit else None,
    )


def all_items(
    desk: Desk, caller: Caller, *, model: str | None = None, evaluator: str | None = None
) -> Iterator[ItemOut]:
    """Everything that this token still has to label, a page at a time."""
    after: str | None = ""
    while after is not None:
        page = items_out(desk, caller, after=after, model=model, evaluator=evaluator, todo=True)
        yield from page.items
        after = page.next_after


def left_of(desk: Desk, caller: Caller, *, model: str | None = None, evaluator: str | None = None) -> int:
    """How many pairs this token may still judge."""
    return left_to_judge(
        desk.db,
        _places(desk, caller, model),
        labeller=labeller_of(caller),
        actor=caller.name,
        now=desk.now(),
        evaluator=evaluator,
    )


def labels_out(desk: Desk, caller: Caller, body: LabelsBody) -> LabelledOut:
    """Repeating what was said changes nothing; saying something else is a conflict, unless `replace`.

    A token labels by its own name: whoever brings in labels of two people counts as one.
    """
    require(caller, Scope.LABEL, LABELLING)
    now = desk.now()
    told = record_labels(
        desk.db,
        [
            Given(
                item_id=each.item,
                labeller=labeller_of(caller, each.labeller),
                said=Said(each.label),
                at=_moment(each.at, now),
            )
            for each in body.labels
        ],
        token=caller.name,
        replace=body.replace,
        models=caller.models,
    )
    return LabelledOut(
        recorded=told.recorded,
        replaced=told.replaced,
        unchanged=told.unchanged,
        conflicts=[
            ConflictOut(item=each.item_id, labeller=each.labeller, had=each.had.value, given=each.said.value)
            for each in told.conflicts
        ],
        unknown=told.unknown,
        seen_openly=told.seen_openly,
    )


def last_said(desk: Desk, caller: Caller) -> Labelled | None:
    """What this token said last."""
    return last_label(desk.db, labeller_of(caller))


def unsaid(desk: Desk, caller: Caller, item: str) -> Said | None:
    """Takes back what this token said last; what that was. 409 where it was of another item."""
    require(caller, Scope.LABEL, LABELLING)
    last = last_said(desk, caller)
    if last is None or last.item_id != item:
        raise Problem(
            409,
            "not_the_last_label",
            "only the last label can be taken back, and that one is of another pair or gone",
            hint="open the page again: it shows what you said last; `tiergate adjudicate next --item ITEM "
            "--label LABEL --replace` changes an older one",
        )
    return take_back(desk.db, item, labeller=labeller_of(caller), token=caller.name, at=desk.now())


def opening_of(desk: Desk) -> Adjudicating:
    """What opens texts; 409 where this API was given none."""
    if desk.config.adjudication is None:
        raise Problem(
            409,
            "no_adjudication",
            "this API was given no key to open captured texts with",
            hint="it needs the capture keys that the workers have",
        )
    return desk.config.adjudication


def sealed(error: SealBroken) -> Problem:
    """409, and which keys it takes."""
    return Problem(
        409, "sealed", str(error), hint="give this API the keys of mirror.capture.key_file that workers have"
    )


def labeller_of(caller: Caller, given: str | None = None) -> str:
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


def _places(desk: Desk, caller: Caller, model: str | None) -> Sequence[Where]:
    """Every candidate in the epoch that counts now, of the models that the caller may know of."""
    ladders = desk.config.ladders.values() if model is None else [find_ladder(desk.config.ladders, model)]
    return [
        Where(ladder.model, tier.name, desk.config.epoch_of(ladder.model, tier.name))
        for ladder in ladders
        if caller.models is None or ladder.model in caller.models
        for tier in ladder.candidates
    ]


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
        # To the second it would be the name of a pair: the list of those that differ tells it as well.
        expires_at=moment(item.expires_at - item.expires_at % DAY_SECONDS),
    )
