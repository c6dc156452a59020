"""Which outcomes one capture needs, and which of them the live exchange gives. Pure: no I/O, no clock.

A comparison sets the baseline's outcome against a candidate's, or a tier's against its own second one: the
baseline's for the control, and of a sample of captures each candidate's. The live outcome is used where it
is an answer; where the live exchange faulted or the client hung up, the tier that served is replayed and
the replay takes its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from evaluators.exchange import Answer, Fault, FaultKind, Outcome, Request
from service.fleet import Backend, Ladder, Route, Tier
from service.store.scored.units import Arm

_CHARACTERS_PER_TOKEN = 4
_ANSWER_TOKENS = 256
"""Of an answer that nobody limits and of which nothing is known."""
MOST_TOKENS = 10_000_000
"""Of one prompt or answer, beyond any context window: what a client or an engine claims above is not so."""


class Slot(NamedTuple):
    """One outcome of one capture: whose, to which question (0 = the captured request, then its probes)."""

    tier: str
    item: int
    again: bool = False
    """The second outcome of a tier that is compared with itself: for the control, or a repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question to put to a tier."""

    slot: Slot
    request: Request
    second_chance: bool
    """Whether a generation fault gets one more try; no when this is itself the second try of a live fault."""
    tokens: int
    """Estimate of what it will spend, prompt plus answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The pairs of one capture that are evidence about one tier."""

    tier: str
    """Whose evidence it is: the candidate's, or for the control the baseline's."""
    arm: Arm
    probed: bool
    """Whether both of its arms can be asked, so that probes are due as well."""

    def slots(self, baseline: str, item: int) -> tuple[Slot, Slot]:
        """The two outcomes that are compared; the first is the baseline's, but of a repeat."""
        if self.arm is Arm.CANDIDATE:
            return Slot(baseline, item), Slot(self.tier, item)
        return Slot(self.tier, item), Slot(self.tier, item, again=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything to do for one capture."""

    baseline: str
    comparisons: tuple[Comparison, ...]
    known: Mapping[Slot, Outcome]
    """Outcomes that need no replay."""
    asks: Mapping[str, tuple[Ask, ...]]
    """By tier, in the order in which they are put."""

    @property
    def tokens(self) -> int:
        """Estimate of what all of it will spend."""
        return sum(ask.tokens for asks in self.asks.values() for ask in asks)

    @property
    def probe_tokens(self) -> int:
        """Estimate of what its probes will spend, a part of `tokens`."""
        return sum(ask.tokens for asks in self.asks.values() for ask in asks if ask.slot.item)

    def without_probes(self) -> Plan:
        """The same, asking for the captured request alone."""
        asks = {tier: tuple(ask for ask in found if not ask.slot.item) for tier, found in self.asks.items()}
        return replace(self, asks={tier: found for tier, found in asks.items() if found})

    @property
    def rejected(self) -> bool:
        """The baseline refused the request itself (a 4xx): there is nothing to compare."""
        return _rejected(self.known.get(Slot(self.baseline, 0)))


def targets(tier: Tier, route: Route, *, on_serving: bool) -> tuple[Backend, ...]:
    """Where shadow traffic for a tier may go: its shadow backends, else its own while these serve nobody."""
    if tier.shadow:
        return tier.shadow
    if on_serving or not route.weights.get(tier.name):
        return tier.backends
    return ()


def draw_up(
    *,
    served_by: str,
    live: Outcome,
    request: Request,
    questions: Sequence[Request],
    ladder: Ladder,
    backends: Mapping[str, Sequence[Backend]],
    repeated: bool = False,
) -> Plan:
    """What to ask whom. A tier without `backends` is compared only where the live answer is its own.

    Without any for the baseline there is no control, there are no probes, and nothing is repeated. Else
    `repeated` asks every candidate that can be asked once more.
    """
    baseline = ladder.baseline.name
    can_ask = {name for name, found in backends.items() if found}
    has_outcome = can_ask | {served_by}
    comparisons = [
        Comparison(tier=tier.name, arm=Arm.CANDIDATE, probed={tier.name, baseline} <= can_ask)
        for tier in ladder.candidates
        if {tier.name, baseline} <= has_outcome
    ]
    if baseline in can_ask:
        comparisons.append(Comparison(tier=baseline, arm=Arm.CONTROL, probed=True))
        comparisons += [
            Comparison(tier=tier.name, arm=Arm.REPEAT, probed=False)
            for tier in ladder.candidates
            if repeated and tier.name in can_ask
        ]
    known: dict[Slot, Outcome] = {}
    if isinstance(live, Answer) or (_rejected(live) and served_by == baseline):
        known[Slot(served_by, 0)] = live
    elif served_by not in can_ask:
        known[Slot(served_by, 0)] = Fault(
            kind=FaultKind.UNREACHABLE,
            detail="the live exchange gave no answer and no backend may replay it",
        )
    plan = Plan(baseline=baseline, comparisons=tuple(comparisons), known=known, asks={})
    if plan.rejected:
        return plan
    live_faulted = isinstance(live, Fault) and not live.of_infrastructure and not _rejected(live)
    asks: dict[str, list[Ask]] = {}
    for item, question in enumerate((request, *questions)):
        for comparison in comparisons:
            if item and not comparison.probed:
                continue
            for slot in comparison.slots(baseline, item):
                if slot in known or any(ask.slot == slot for ask in asks.get(slot.tier, ())):
                    continue
                replaces_live = slot == Slot(served_by, 0) and live_faulted
                asks.setdefault(slot.tier, []).append(
                    Ask(
                        slot=slot,
                        request=question,
                        second_chance=not replaces_live,
                        tokens=_tokens(question, live, probe=item > 0),
                    )
                )
    return Plan(
        baseline=baseline,
        comparisons=tuple(comparisons),
        known=known,
        asks={tier: tuple(found) for tier, found in asks.items()},
    )


def deserves_second_chance(outcome: Outcome) -> bool:
    """Whether a replay with this outcome is tried once more.

    A live exchange that faulted is replayed, and the replay counts. Arms must be treated alike, or the
    control would show a difference where there is none; so a replay that faulted gets one more try as well.
    A request that the tier refused is not put again: it would be refused again.
    """
    return isinstance(outcome, Fault) and not outcome.of_infrastructure and not _rejected(outcome)


def _tokens(question: Request, live: Outcome, *, probe: bool) -> int:
    """From the live usage where there is some, else by length; what was really spent corrects it later."""
    prompt = sum(len(message.text) for message in question.messages) // _CHARACTERS_PER_TOKEN
    answer = _plausible(question.max_tokens) or _ANSWER_TOKENS
    if isinstance(live, Answer):
        prompt = _plausible(live.prompt_tokens) or prompt
        if not probe:
            # A stream tells its usage only when asked to, and a limit is often far above what is written.
            answer = _plausible(live.completion_tokens) or _written(live) or answer
    return prompt + answer


def spent_by(answer: Answer, *, estimate: int) -> int:
    """What the engine says it spent, the estimate where it says nothing that can be."""
    prompt, completion = _plausible(answer.prompt_tokens), _plausible(answer.completion_tokens)
    return estimate if prompt is None or completion is None else prompt + completion


def _plausible(claimed: int | None) -> int | None:
    return claimed if claimed is not None and 0 <= claimed <= MOST_TOKENS else None


def _written(answer: Answer) -> int:
    """Tokens of an answer by its length."""
    calls = sum(len(call.arguments) for call in answer.tool_calls)
    return (len(answer.text) + len(answer.reasoning) + calls) // _CHARACTERS_PER_TOKEN


def _rejected(outcome: Outcome | None) -> bool:
    return isinstance(outcome, Fault) and outcome.kind is FaultKind.REJECTED
