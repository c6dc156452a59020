"""Which pairs of a capture are drawn for people to judge, and what is kept of them.

Drawn are pairs of candidates that count or will, of the evaluators that the configuration names: those in
which the evaluator says that the arms differ, all of them; of the others a share, by a hash of their names.
What is kept is the text that people need and no more: the turns (the end of long ones stays), what the answer
was to be, and both answers without their reasoning. No tier, model or backend is named, and it goes through
the mask that the configuration sets before it is sealed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaluators.exchange import Answer, Outcome, Request
from service.store.labels.adjudication import Drawn, item_id, lot
from service.store.labels.kept_text import AnswerText, Call, PairText, Turn, seal_text
from service.store.redis.capture import Keyring
from service.store.scored.units import Arm, PairOutcome, PairRow, Unit
from workers.plan import Slot
from workers.units import Placed

log = logging.getLogger("tiergate.worker")

MOST_PROMPT = 65_536
"""Characters of all turns together; of what is longer the beginning and the end."""
MOST_ANSWER = 65_536
MOST_ASKED = 16_384
MOST_CALLS = 16
_SHARE_OF_END = 0.75
"""Of what is left of a text that is too long: the question mostly stands at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """What the configuration says of adjudication."""

    evaluators: frozenset[str] = frozenset()
    """Whose pairs are queued; none, and nothing is kept."""
    audit: float = 0.0
    """Share of concordant pairs."""
    overlap: float = 0.0
    """Share of queued pairs that two people label."""
    keep_seconds: float = 30 * 86_400.0
    mask: Callable[[str], str] = lambda text: text


NOTHING_KEPT = Keeping()


def drawn(
    keeping: Keeping,
    keyring: Keyring,
    placed: Placed,
    units: Sequence[Unit],
    outcomes: Mapping[Slot, Outcome],
    *,
    now: float,
) -> list[Drawn]:
    """The pairs of these units that are queued, their texts sealed. What cannot be masked is not kept."""
    queued = []
    for unit, row, chance in _chosen(keeping, units):
        try:
            text = _text(keeping, placed, unit, row, outcomes)
        except Exception:
            # A mask may be a user's own code. Which pairs it fails on is no matter of who is right.
            log.exception("a pair of capture %s is not kept: it could not be masked", unit.capture_id)
            continue
        queued.append(
            Drawn(
                unit_id=unit.id,
                item=row.item,
                model=unit.model,
                tier=unit.tier,
                epoch=unit.epoch,
                evaluator=unit.evaluator,
                version=unit.version,
                baseline_failed=not row.baseline_passed,
                candidate_failed=not row.candidate_passed,
                chance=chance,
                by_two=lot("overlap", unit.id, row.item) < keeping.overlap,
                sealed=seal_text(item_id(unit.id, row.item), text, keyring),
                queued_at=now,
                expires_at=now + keeping.keep_seconds,
            )
        )
    return queued


def _chosen(keeping: Keeping, units: Sequence[Unit]) -> Iterator[tuple[Unit, PairRow, float]]:
    for unit in units:
        if unit.evaluator not in keeping.evaluators or unit.arm != Arm.CANDIDATE:
            continue
        if not (unit.counted or unit.waits):
            continue
        for row in unit.rows:
            if row.outcome != PairOutcome.SCORED:
                continue
            chance = 1.0 if row.harm or row.benefit else keeping.audit
            if lot("audit", unit.id, row.item) < chance:
                yield unit, row, chance


def _text(
    keeping: Keeping, placed: Placed, unit: Unit, row: PairRow, outcomes: Mapping[Slot, Outcome]
) -> PairText:
    opened = placed.opened
    request = opened.questions[row.item - 1] if row.item else opened.request
    known = {**opened.plan.known, **outcomes}
    return PairText(
        turns=_turns(request, keeping.mask),
        asked=_asked(request, keeping.mask),
        baseline=_answer(known[Slot(opened.plan.baseline, row.item)], keeping.mask),
        candidate=_answer(known[Slot(unit.tier, row.item)], keeping.mask),
    )


def _turns(request: Request, mask: Callable[[str], str]) -> tuple[Turn, ...]:
    """The latest turns whole, as far as they go; older ones shortened, then left out."""
    left = MOST_PROMPT
    turns: list[Turn] = []
    for message in reversed(request.messages):
        if left <= 0:
            turns.append(Turn(role="", text=_left_out(len(request.messages) - len(turns), "earlier turns")))
            break
        told = [message.text, *(f"[calls {call.name} {call.arguments}]" for call in message.tool_calls)]
        text = _kept("\n".join(part for part in told if part), left, mask)
        left -= len(text)
        turns.append(Turn(role=message.role, text=text))
    return tuple(reversed(turns))


def _asked(request: Request, mask: Callable[[str], str]) -> str:
    if request.needle is not None:
        values = ", ".join((request.needle.value, *request.needle.others))
        return _kept(f"the value {values}", MOST_ASKED, mask)
    parts = []
    if request.schema is not None:
        parts.append(f"JSON that satisfies {_json(request.schema)}")
    elif request.wants_json:
        parts.append("JSON")
    if request.tools:
        parts.append(f"tools ({request.tool_choice}): {', '.join(tool.name for tool in request.tools)}")
    return _kept("; ".join(parts), MOST_ASKED, mask)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _answer(outcome: Outcome, mask: Callable[[str], str]) -> AnswerText:
    if not isinstance(outcome, Answer):
        # Its detail may name a backend.
        return AnswerText(fault=outcome.kind.value)
    return AnswerText(
        text=_kept(outcome.text, MOST_ANSWER, mask),
        refusal=_kept(outcome.refusal or "", MOST_ANSWER, mask),
        calls=tuple(
            Call(name=_kept(call.name, 200, mask), arguments=_kept(call.arguments, MOST_ANSWER // 4, mask))
            for call in outcome.tool_calls[:MOST_CALLS]
        ),
        finish_reason=_kept(outcome.finish_reason or "", 200, mask),
    )


def _kept(text: str, most: int, mask: Callable[[str], str]) -> str:
    """Masked whole and then cut; half a surrogate pair, which no answer of the API can carry, is replaced."""
    return cut(mask(text), most).encode("utf-8", "replace").decode("utf-8")


def cut(text: str, most: int) -> str:
    """At most about `most` characters: the beginning, how much was left out, and more of the end."""
    if len(text) <= most:
        return text
    end = round(most * _SHARE_OF_END)
    start = most - end
    return f"{text[:start]}\n{_left_out(len(text) - most, 'characters')}\n{text[-end:]}"


def _left_out(amount: int, what: str) -> str:
    return f"[... {amount:,} {what} left out ...]"
