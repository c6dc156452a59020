"""Getting the outcomes that plans ask for: every capture of a batch at once, on the child's one event loop.

Within one capture a tier is asked one question after the other, so that its prefix cache serves the next;
tiers and captures run side by side.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from evaluators.exchange import Answer, Outcome
from service.fleet import Backend, Tier
from service.wire import replay_body
from workers import metrics
from workers.backends import Shadow
from workers.plan import Ask, Plan, Slot, deserves_second_chance, spent_by

log = logging.getLogger("tiergate.worker")

_TICK_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """One capture's questions and where they may go."""

    capture_id: str
    model: str
    plan: Plan
    tiers: Mapping[str, tuple[Tier, Sequence[Backend]]]
    """By name, the tiers that the plan asks, with their backends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What came back."""

    outcomes: dict[str, Mapping[Slot, Outcome]] = field(default_factory=dict)
    """By capture; one is missing when it was given up, because the worker stops or tripped over it."""
    spent: Counter[str] = field(default_factory=Counter)
    """Tokens by capture, also of those given up."""
    counts: Counter[str] = field(default_factory=Counter)
    """Series of `metrics`."""


class Answering:
    """The event loop and the connections of one worker child."""

    def __init__(
        self,
        shadow: Callable[[], Shadow],
        *,
        stopping: Callable[[], bool] = lambda: False,
        drain_seconds: float = 10.0,
    ) -> None:
        """`shadow` is called on the loop. Once `stopping` is true, replays get `drain_seconds` to finish."""
        self._loop = asyncio.new_event_loop()
        self._shadow = self._loop.run_until_complete(_made(shadow))
        self._stopping = stopping
        self._drain_seconds = drain_seconds

    def close(self) -> None:
        self._loop.run_until_complete(self._shadow.aclose())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def run(self, inquiries: Sequence[Inquiry], *, every: float, beat: Callable[[], None]) -> Answers:
        """Put all questions; meanwhile call `beat` in a thread each `every` seconds."""
        if not inquiries:
            return Answers()
        return self._loop.run_until_complete(self._all(inquiries, every, beat))

    async def _all(self, inquiries: Iterable[Inquiry], every: float, beat: Callable[[], None]) -> Answers:
        answers = Answers()
        next_beat = self._loop.time() + every
        give_up: float | None = None
        async with asyncio.TaskGroup() as group:
            tasks = {each.capture_id: group.create_task(self._one(each, answers)) for each in inquiries}
            waiting = set(tasks.values())
            while waiting:
                _, waiting = await asyncio.wait(waiting, timeout=min(_TICK_SECONDS, every))
                now = self._loop.time()
                if now >= next_beat:
                    next_beat = now + every
                    try:
                        await asyncio.to_thread(beat)
                    except Exception:
                        # The lease may run out; then somebody else replays too, and one of us is counted.
                        log.exception("could not extend the leases")
                if give_up is None and self._stopping():
                    give_up = now + self._drain_seconds
                if give_up is not None and now >= give_up:
                    for task in waiting:
                        task.cancel()
        return answers

    async def _one(self, inquiry: Inquiry, answers: Answers) -> None:
        outcomes = dict(inquiry.plan.known)
        try:
            async with asyncio.TaskGroup() as group:
                for tier, asks in inquiry.plan.asks.items():
                    group.create_task(self._in_turn(inquiry, tier, asks, outcomes, answers))
        except ExceptionGroup:
            # Our own fault, not a tier's: faults of tiers are values. The others of the batch go on.
            log.exception("capture %s could not be replayed", inquiry.capture_id)
        else:
            answers.outcomes[inquiry.capture_id] = outcomes

    async def _in_turn(
        self,
        inquiry: Inquiry,
        name: str,
        asks: Sequence[Ask],
        outcomes: dict[Slot, Outcome],
        answers: Answers,
    ) -> None:
        tier, backends = inquiry.tiers[name]
        for ask in asks:
            body = replay_body(ask.request, model=tier.model)
            tries = 2 if ask.second_chance else 1
            while tries:
                tries -= 1
                outcome = await self._shadow.put(
                    backends, ask.request.endpoint, body, stream=ask.request.stream
                )
                answers.spent[inquiry.capture_id] += _tokens(ask, outcome)
                ending = "answer" if isinstance(outcome, Answer) else outcome.kind.value
                answers.counts[
                    metrics.series(metrics.REPLAYS, model=inquiry.model, tier=name, outcome=ending)
                ] += 1
                answers.counts.update(_cached(inquiry.model, name, ask, outcome))
                if not deserves_second_chance(outcome):
                    break
            outcomes[ask.slot] = outcome


async def _made(shadow: Callable[[], Shadow]) -> Shadow:
    return shadow()


def _cached(model: str, tier: str, ask: Ask, outcome: Outcome) -> Mapping[str, int]:
    """Tokens of a recall question's prompt by where the engine had them from: its prompt begins as the
    captured one did, so that all but the question should come from the cache."""
    if ask.request.needle is None or not isinstance(outcome, Answer):
        return {}
    whole, cached = outcome.prompt_tokens, outcome.cached_tokens
    if whole is None or cached is None:
        return {}
    tokens = {"yes": cached, "no": max(0, whole - cached)}
    return {
        metrics.series(metrics.PROBE_TOKENS, model=model, tier=tier, cached=told): amount
        for told, amount in tokens.items()
    }


def _tokens(ask: Ask, outcome: Outcome) -> int:
    """What the engine says it spent; the estimate where it says nothing, none where it was never reached."""
    if isinstance(outcome, Answer):
        return spent_by(outcome, estimate=ask.tokens)
    return 0 if outcome.of_infrastructure else ask.tokens
