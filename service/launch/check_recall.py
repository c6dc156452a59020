"""Whether recall can be asked at all: `tiergate check` puts ten questions with known answers to baselines.

They are made, sent and judged as probes are, with the model's own `probe` settings. With a baseline that
misses most of them, recall would say nothing of any candidate: it thinks and runs out of tokens, refuses a
key of `extra_body`, or is too small.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from evaluators.exchange import Answer, Endpoint, Fault, FaultKind, Outcome, Request
from evaluators.long_context_recall import LongContextRecall
from evaluators.needles import mine
from evaluators.score import Score
from service.fleet import Backend, Ladder, Tier
from service.launch.ask import Answered
from service.launch.check import Answers, Level, Line
from service.reach import client_of
from service.settings import Settings
from service.settings.values import ProbePlan
from service.wire import parse_answer, parse_request, probe_request, replay_body

QUESTIONS = 10
LEAST = 0.6
"""Share of the questions that a baseline has to answer."""
PATIENCE = 120.0
"""Seconds for all questions of one model."""
AT_ONCE = 4
LONGEST_ANSWER = 1024 * 1024
"""Bytes."""

_FACTS = (
    "The access code of the blue room is 48213.",
    "The invoice number for the northern gate is INV-70632.",
    "The deposit for the old cellar is 3,475.20.",
    "The opening date of the copper archive is March 17, 2143.",
    "The contact address for the quiet kiosk is desk62094@example.org.",
    "The serial number of the upper boiler is SN-93518.",
    "The meter reading of the stone depot is 60427.",
    "The contract number of the glass studio is HT-85306.",
    "The locker code of the western terrace is 29741.",
    "The order number for the narrow workshop is ORD-51869.",
)
_AROUND = (
    "Visitors ask about parking first, then about breakfast, and only later about prices. Paint dries slowly"
    " in autumn, so leave the windows open and keep the stairs free."
)


def own_questions(probe: ProbePlan) -> tuple[Request, ...]:
    """Ten probes about a text of our own of some four thousand characters."""
    text = "\n\n".join(f"{_AROUND} {fact} {_AROUND}" for fact in _FACTS)
    body = {"model": "m", "messages": [{"role": "user", "content": f"{text}\n\nWhat should staff know?"}]}
    request = parse_request(Endpoint.CHAT_COMPLETIONS, json.dumps(body).encode())
    return tuple(
        probe_request(request, needle, max_tokens=probe.max_tokens, extra_body=probe.extra_body)
        for needle in mine(request, seed="check", limit=QUESTIONS, min_chars=1)
    )


def recall_lines(settings: Settings, answers: Answers) -> list[Line]:
    """A line for each model that is probed and whose baseline has a backend that is well."""
    tried = [
        (ladder, backend)
        for ladder in settings.ladders.values()
        if settings.probe_of(ladder.model).per_capture and (backend := _well(ladder.baseline, answers))
    ]
    return asyncio.run(_all(settings, tried)) if tried else []


def _well(tier: Tier, answers: Answers) -> Backend | None:
    """Where to ask: what serves nobody first."""
    for backend in (*tier.shadow, *tier.backends):
        answer = answers[backend]
        if isinstance(answer, Answered) and tier.model in answer.models:
            return backend
    return None


@dataclass(frozen=True, slots=True)
class _Tried:
    """What came of the questions that were answered, and the first reason why one was not."""

    scores: Sequence[Score]
    not_answered: str


async def _all(settings: Settings, tried: Sequence[tuple[Ladder, Backend]]) -> list[Line]:
    async with asyncio.TaskGroup() as group:
        tasks = [
            (ladder, backend, group.create_task(_one(settings, ladder, backend))) for ladder, backend in tried
        ]
    return [
        _line(_subject(ladder, backend), settings.probe_of(ladder.model), task.result())
        for ladder, backend, task in tasks
    ]


def _subject(ladder: Ladder, backend: Backend) -> str:
    return f"{ladder.model}/{ladder.baseline.name} {backend.url}"


async def _one(settings: Settings, ladder: Ladder, backend: Backend) -> _Tried:
    scores: list[Score] = []
    missing: list[str] = []
    gate = asyncio.Semaphore(min(AT_ONCE, backend.max_concurrency or AT_ONCE))
    judge = LongContextRecall()

    async def ask(client: httpx.AsyncClient, question: Request) -> None:
        async with gate:
            outcome = await _put(client, question, ladder.baseline.model)
        if isinstance(outcome, Answer):
            scores.append(judge.score(question, outcome))
        elif outcome.kind is FaultKind.REJECTED:
            scores.append(judge.score_fault(question, outcome))
        else:
            missing.append(str(outcome))

    questions = own_questions(settings.probe_of(ladder.model))
    try:
        async with (
            asyncio.timeout(PATIENCE),
            client_of(backend, timeout=PATIENCE) as client,
            asyncio.TaskGroup() as group,
        ):
            for question in questions:
                group.create_task(ask(client, question))
    except TimeoutError:
        missing.append(f"{len(questions) - len(scores)} questions had no answer within {PATIENCE:g} s")
    return _Tried(scores, missing[0] if missing else "")


async def _put(client: httpx.AsyncClient, question: Request, model: str) -> Outcome:
    path = question.endpoint.value
    headers = {"content-type": "application/json", "accept-encoding": "identity", "x-tiergate-replay": "1"}
    received = bytearray()
    try:
        async with client.stream(
            "POST", path, content=replay_body(question, model=model), headers=headers
        ) as response:
            async for piece in response.aiter_raw():
                received += piece
                if len(received) > LONGEST_ANSWER:
                    return Fault(
                        kind=FaultKind.CUT_OFF, detail=f"an answer longer than {LONGEST_ANSWER} bytes"
                    )
    except httpx.HTTPError as error:
        return Fault(kind=FaultKind.UNREACHABLE, detail=str(error) or type(error).__name__)
    return parse_answer(
        path,
        status=response.status_code,
        content_type=response.headers.get("content-type", ""),
        content_encoding=response.headers.get("content-encoding", ""),
        body=bytes(received),
        complete=True,
    )


def _line(subject: str, probe: ProbePlan, tried: _Tried) -> Line:
    judged, hits = len(tried.scores), sum(score.passed for score in tried.scores)
    told = f"answers {hits} of {judged} recall questions"
    if judged < QUESTIONS * LEAST:
        why = tried.not_answered or "no question could be made"
        return Line(level=Level.WARN, subject=subject, text=f"recall could not be tried ({why})")
    if hits >= judged * LEAST:
        return Line(level=Level.OK, subject=subject, text=told)
    return Line(level=Level.FAIL, subject=subject, text=f"{told} {_advice(probe, tried.scores)}")


def _advice(probe: ProbePlan, scores: Sequence[Score]) -> str:
    """By what most of the missed questions came to."""
    missed = [score for score in scores if not score.passed]
    worst = Counter(score.label for score in missed).most_common(1)[0][0]
    example = next(score for score in missed if score.label == worst)
    shown = f"{example.reason}: {example.evidence}" if example.evidence else example.reason
    if worst in ("truncated", "empty"):
        return (
            f"within {probe.max_tokens} tokens, as models do that think first: set probe.max_tokens to 1024"
            " or more, or switch thinking off, for most engines by"
            " probe.extra_body: {chat_template_kwargs: {enable_thinking: false}}"
        )
    if worst == "fault":
        return f"because it refuses them ({shown}): correct probe.extra_body and probe.max_tokens"
    return (
        f"({shown}): recall would say nothing of any tier; switch it off by probe.per_capture: 0, or correct"
        " probe.extra_body if it changes the prompt"
    )
