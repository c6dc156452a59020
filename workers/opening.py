"""From a sealed capture to a plan: what was asked, what was answered, what is still to be asked. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from evaluators.exchange import AnswerRule, Fault, FaultKind, Outcome, Request
from service import strata
from service.fleet import Backend, Ladder
from service.store.labels.adjudication import lot
from service.store.redis.capture import Capture, Ending
from service.wire import (
    NotARequest,
    has_remote_media,
    is_stateful,
    parse_answer,
    parse_request,
    replay_body,
)
from workers.plan import Plan, draw_up
from workers.probes import Probing, questions


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A capture that could be read, and what to do with it."""

    capture: Capture
    request: Request
    questions: tuple[Request, ...]
    """Recall probes mined from it."""
    digest: str
    """Of the request: the same request counts once in an epoch."""
    marginals: tuple[str, ...] = ()
    """Its stratum in each dimension, by the request alone."""
    plan: Plan
    backends: Mapping[str, Sequence[Backend]]
    """Where each tier may be asked."""


def open_capture(
    capture: Capture,
    ladder: Ladder,
    backends: Mapping[str, Sequence[Backend]],
    probing: Probing,
    rule: AnswerRule = AnswerRule(),
    *,
    repeats: float = 0.0,
) -> Opened:
    """Read a capture and draw up its plan; raises `NotARequest` when it cannot be put to another backend.

    Of a share `repeats` of captures, by their hash, candidates are asked twice.
    """
    asked = parse_request(capture.path, capture.request_body, content_encoding=capture.request_encoding)
    request = rule.applied_to(asked, capture.expects)
    if is_stateful(request):
        raise NotARequest("it leans on what only its own server holds")
    if has_remote_media(request):
        raise NotARequest("it refers to media elsewhere")
    probes = questions(request, seed=capture.id, probing=probing)
    plan = draw_up(
        served_by=capture.tier,
        live=live_outcome(capture),
        request=request,
        questions=probes,
        ladder=ladder,
        backends=backends,
        repeated=lot("repeat", capture.id, 0) < repeats,
    )
    return Opened(
        capture=capture,
        request=request,
        questions=probes,
        digest=sha256(replay_body(request, model=capture.model)).hexdigest(),
        marginals=marginals_of(request, capture.stratum),
        plan=plan,
        backends=backends,
    )


def marginals_of(request: Request, stratum: str) -> tuple[str, ...]:
    """The strata of a request, one in each dimension; `stratum` is the crossed one that its proxy told."""
    return strata.marginals(
        stratum,
        constrained=request.constrained,
        language=strata.language_of(request.asked),
        turns=sum(message.role == "user" for message in request.messages),
    )


def live_outcome(capture: Capture) -> Outcome:
    """What the serving tier answered the client, or why it did not."""
    match capture.ending:
        case Ending.COMPLETE | Ending.CUT_OFF:
            if capture.status is None:
                return Fault(kind=FaultKind.CUT_OFF, detail="the backend closed before its answer began")
            return parse_answer(
                capture.path,
                status=capture.status,
                content_type=capture.response_type,
                content_encoding=capture.response_encoding,
                body=capture.response_body,
                complete=capture.ending is Ending.COMPLETE,
            )
        case Ending.CENSORED:
            return Fault(kind=FaultKind.CENSORED, status=capture.status)
        case Ending.TIMEOUT:
            return Fault(kind=FaultKind.TIMEOUT, status=capture.status)
        case Ending.UNREACHABLE:
            return Fault(kind=FaultKind.UNREACHABLE)
