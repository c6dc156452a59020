"""Both answers of a pair, and what was asked, for people with scope `label`; never without a line in the log.

No route of the API gives them: the dashboard does, in front of whoever asks for one pair at a time.
"""

from __future__ import annotations

from evaluators.exchange import Answer, Outcome, Request
from service.approval.access import Caller, Scope, require
from service.approval.desk import Desk
from service.approval.judging import opening_of, sealed
from service.store.kept.kept_answers import OpenedAnswers
from service.store.labels.kept_text import AnswerText, Call, PairText, Turn
from service.store.redis.capture import SealBroken
from service.store.scored.pair_listing import ListedPair
from service.store.scored.pair_texts import note_look, open_pair
from service.wire import NotARequest, parse_request


def look_at(desk: Desk, caller: Caller, pair: ListedPair, *, request: bool) -> PairText | None:
    """The texts of a pair, noted in the access log before they are given; None where none are kept.

    Without `request` its turns are left out. Raises Problem: 403 without the scope, 409 without the keys.
    """
    require(caller, Scope.LABEL, "reading captured text")
    now = desk.now()
    try:
        opened = open_pair(desk.db, opening_of(desk).keyring, pair, now=now)
    except SealBroken as error:
        raise sealed(error) from error
    text = opened.queued
    if opened.answers is not None:
        text = _of_kept(opened.answers, pair)
    if text is None:
        return None
    note_look(
        desk.db, pair, actor=caller.name, now=now, detail="answers and request" if request else "answers"
    )
    return text if request else PairText(turns=(), baseline=text.baseline, candidate=text.candidate)


def _of_kept(answers: OpenedAnswers, pair: ListedPair) -> PairText | None:
    outcomes, item = answers.outcomes, pair.pair.item
    baseline = outcomes.get((str(answers.told["baseline"]), item, False))
    candidate = outcomes.get((pair.tier, item, False))
    if baseline is None or candidate is None:
        return None
    needle = answers.told["needles"].get(str(item))
    asked = "" if needle is None else f"{needle['question']} ({needle['value']})"
    return PairText(
        turns=_turns(answers), asked=asked, baseline=_answer(baseline), candidate=_answer(candidate)
    )


def _turns(answers: OpenedAnswers) -> tuple[Turn, ...]:
    """The turns of the request; of one that we would not read today, its body as it is."""
    capture = answers.capture
    try:
        request = parse_request(capture.path, capture.request_body)
    except NotARequest:
        return (Turn(role="", text=capture.request_body.decode("utf-8", "replace")),)
    return tuple(_turn(request, place) for place in range(len(request.messages)))


def _turn(request: Request, place: int) -> Turn:
    message = request.messages[place]
    calls = (f"[calls {call.name} {call.arguments}]" for call in message.tool_calls)
    return Turn(role=message.role, text="\n".join(part for part in (message.text, *calls) if part))


def _answer(outcome: Outcome) -> AnswerText:
    if not isinstance(outcome, Answer):
        return AnswerText(fault=outcome.kind.value)
    return AnswerText(
        text=outcome.text,
        refusal=outcome.refusal or "",
        calls=tuple(Call(name=call.name, arguments=call.arguments) for call in outcome.tool_calls),
        finish_reason=outcome.finish_reason or "",
    )
