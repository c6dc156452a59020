"""`/adjudicate`: pairs for people to judge, one after the other, blind; by keyboard, or without a script.

What is given is what the API gives (`judging`): two answers under a and b, the request, the rubric; never a
tier, a class or a score. A page that asks for itself again is given nothing, so that nobody is said to have
seen what they did not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from pydantic import ValidationError
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute

from evaluators.rubrics import RUBRICS
from service.approval.access import Scope
from service.approval.adjudication_schemas import (
    ItemOut,
    LabelBody,
    LabelsBody,
    QueueOut,
    RubricOut,
    SideOut,
)
from service.approval.errors import Problem, echo
from service.approval.judging import (
    LABELLING,
    all_items,
    labels_out,
    last_said,
    left_of,
    next_out,
    unsaid,
)
from service.approval.names import find_evaluator, find_ladder
from service.approval.queues import queues_out
from service.dashboard import render
from service.dashboard.captured import shown
from service.dashboard.pair import shown_request
from service.dashboard.sentences import sentences
from service.dashboard.sides import sides
from service.dashboard.site import Site
from service.dashboard.visit import Form, Visit
from service.store.labels.kept_text import AnswerText, Call, PairText, Turn

PATH, TAKING_BACK = "/adjudicate", "/adjudicate/undo"
FILE = "items"
"""The download's name."""
KEYS = {"a": "a", "b": "b", "both": "o", "neither": "n", "skip": "s"}
"""The key of each label; `u` takes the last one back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """Which pairs a labeller works on."""

    model: str | None
    evaluator: str | None


def adjudicate_routes(site: Site) -> Sequence[BaseRoute]:
    """The page, what its buttons say, and what takes the last of it back."""

    def adjudicate(visit: Visit) -> Response:
        narrowed = _narrowed(site, visit, visit.asked("model"), visit.asked("evaluator"))
        if not visit.may(Scope.LABEL) or visit.asked("state") == "1" or visit.live:
            return _state(site, visit, narrowed)
        if visit.asked("download") == FILE:
            return _file(site, visit, narrowed)
        asked = {"model": narrowed.model, "evaluator": narrowed.evaluator}
        told = next_out(site.desk, visit.caller, **asked, item=visit.asked("item") or None)
        if told.item is None and visit.asked("item"):
            told = next_out(site.desk, visit.caller, **asked)
        whole = visit.asked("whole") == "1"
        text = None if told.item is None else _text(told.item)
        return site.page(
            visit,
            "adjudicate.html",
            model=narrowed.model,
            model_path=PATH,
            narrowed=narrowed,
            item=told.item,
            rubric=None if told.item is None else _rubric(visit, told.item),
            why=told.why,
            request=None if text is None else shown_request(text, whole=whole),
            sides=None if text is None else sides(text.baseline, text.candidate, whole=whole),
            whole=whole,
            left=left_of(site.desk, visit.caller, **asked),
            last=last_said(site.desk, visit.caller),
            keys=KEYS,
            spelled=shown,
        )

    def say(visit: Visit, form: Form) -> Response:
        narrowed = _narrowed(site, visit, form.text("model"), form.text("evaluator"))
        site.require(visit, Scope.LABEL, LABELLING)
        told = labels_out(site.desk, visit.caller, _label(form))
        note = "labelled"
        if told.conflicts:
            note = "label_kept"
        elif told.unknown:
            note = "label_unknown"
        elif told.seen_openly:
            note = "label_seen"
        return site.see(PATH, note=note, model=narrowed.model, evaluator=narrowed.evaluator)

    def undo(visit: Visit, form: Form) -> Response:
        narrowed = _narrowed(site, visit, form.text("model"), form.text("evaluator"))
        site.require(visit, Scope.LABEL, LABELLING)
        item = form.needed("item")
        unsaid(site.desk, visit.caller, item)
        return site.see(
            PATH, note="label_undone", item=item, model=narrowed.model, evaluator=narrowed.evaluator
        )

    return [site.get(PATH, adjudicate), site.post(PATH, say), site.post(TAKING_BACK, undo)]


def _narrowed(site: Site, visit: Visit, model: str, evaluator: str) -> Narrowed:
    """404 for a model or an evaluator that is not there, 403 for a model that is not the visitor's."""
    if model:
        find_ladder(site.desk.config.ladders, model)
    if evaluator:
        find_evaluator(site.desk.config.evaluators, evaluator)
    return Narrowed(model=model or None, evaluator=evaluator or None)


def _state(site: Site, visit: Visit, narrowed: Narrowed) -> Response:
    """What is queued and what labels say, for whoever may read."""
    opening = site.desk.config.adjudication
    models = visit.models if narrowed.model is None else (narrowed.model,)
    queues: list[QueueOut] = [each for model in models for each in queues_out(site.desk, model)]
    return site.page(
        visit,
        "adjudication.html",
        model=narrowed.model,
        model_path=PATH,
        queued=() if opening is None else opening.queued,
        opens=opening is not None,
        queues=queues,
    )


def _file(site: Site, visit: Visit, narrowed: Narrowed) -> Response:
    """Everything that is left for this labeller, as `tiergate adjudicate export` writes it."""
    items = all_items(site.desk, visit.caller, model=narrowed.model, evaluator=narrowed.evaluator)
    # The first one now: what goes wrong is told on a page, and not in the middle of a file.
    first = next(items, None)
    if first is None:
        return site.see(PATH, note="nothing_to_export", model=narrowed.model, evaluator=narrowed.evaluator)

    def lines() -> Iterator[str]:
        for each in chain((first,), items):
            yield json.dumps({**each.model_dump(mode="json"), "label": ""}) + "\n"

    named = {"Content-Disposition": 'attachment; filename="pairs.jsonl"'}
    return StreamingResponse(lines(), media_type="application/jsonl", headers={**render.HEADERS, **named})


def _label(form: Form) -> LabelsBody:
    item, said = form.needed("item"), form.needed("said")
    try:
        return LabelsBody(labels=[LabelBody.model_validate({"item": item, "label": said})])
    except ValidationError:
        raise Problem(
            422,
            "invalid_request",
            f"{echo(said)} of {echo(item)} is no label of a pair",
            hint=f"a label is one of {', '.join(KEYS)}; use the buttons of the page",
        ) from None


def _rubric(visit: Visit, item: ItemOut) -> RubricOut:
    """In the visitor's language where it is one of ours; that of another package stands as it is."""
    ours = RUBRICS.get(item.evaluator)
    if ours is None or (ours.question, ours.passes) != (item.rubric.question, item.rubric.passes):
        return item.rubric
    say, name = sentences(visit.language), f"rubric.{item.evaluator}"
    return RubricOut(
        question=say(f"{name}_question"), passes=say(f"{name}_passes"), fails=say(f"{name}_fails")
    )


def _text(item: ItemOut) -> PairText:
    """Side a stands where a baseline would, b where a candidate would: nobody knows which is which."""
    return PairText(
        turns=tuple(Turn(role=each.role, text=each.text) for each in item.request),
        asked=item.asked,
        baseline=_side(item.a),
        candidate=_side(item.b),
    )


def _side(side: SideOut) -> AnswerText:
    return AnswerText(
        text=side.text,
        refusal=side.refusal,
        calls=tuple(Call(name=each.name, arguments=each.arguments) for each in side.calls),
        finish_reason=side.finish_reason,
        fault=side.fault,
    )
