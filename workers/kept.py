"""One capture with its answers, as it is kept to be judged again: from outcomes to a sealed blob and back.

What is written is JSON: the request and its answers, redacted, and what says where the pairs belong. A recall
question whose value was masked is left out, since any masked answer would hit it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace

from evaluators.exchange import AnswerRule, Fault, Json, Needle, Outcome, Request
from service.redaction import Mask, redacted, touches
from service.store.kept.kept_answers import kept_id, open_answers
from service.store.redis.capture import Capture, Ending, Keyring, seal_all
from service.store.scored.units import Arm, Unit
from service.store.verdicts.current_epochs import NO_EPOCH
from service.wire import parse_request, write_body
from workers.opening import Opened
from workers.plan import Comparison, Slot
from workers.units import Placed


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One comparison of a capture, in the epoch that it was made in."""

    comparison: Comparison
    epoch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A capture that was opened again."""

    capture: Capture
    request: Request
    questions: Mapping[int, Request]
    """Recall questions, by item."""
    baseline: str
    compared: tuple[Compared, ...]
    outcomes: Mapping[Slot, Outcome]
    live: frozenset[int]
    """Items whose baseline outcome is what the client got."""
    conversation: str
    digest: str
    marginals: tuple[str, ...]


def sealed_answers(
    placed: Placed,
    units: tuple[Unit, ...],
    outcomes: Mapping[Slot, Outcome],
    *,
    body: Mapping[str, Json],
    mask: Mask,
    keyring: Keyring,
) -> bytes | None:
    """The blob of a capture whose redacted request is `body`; None where no pair belongs to an epoch."""
    opened = placed.opened
    epochs = {(unit.tier, unit.arm): unit.epoch for unit in units if unit.epoch != NO_EPOCH}
    compared = [
        [each.tier, each.arm.value, each.probed, epochs[each.tier, each.arm.value]]
        for each in opened.plan.comparisons
        if (each.tier, each.arm.value) in epochs
    ]
    if not compared:
        return None
    known = {**opened.plan.known, **outcomes}
    told = {
        "baseline": opened.plan.baseline,
        "compared": compared,
        "outcomes": [[*slot, _written(outcome, mask)] for slot, outcome in sorted(known.items())],
        "needles": {
            str(item): asdict(question.needle)
            for item, question in enumerate(opened.questions, 1)
            if question.needle is not None and not _is_masked(question.needle, mask)
        },
        "live": sorted({slot.item for slot in opened.plan.known if slot.tier == opened.plan.baseline}),
        "conversation": placed.conversation,
        "digest": opened.digest,
        "marginals": list(opened.marginals),
    }
    kept = replace_texts(opened, write_body(body), json.dumps(told, separators=(",", ":")).encode("ascii"))
    [blob] = seal_all([kept], keyring)
    return blob


def replace_texts(opened: Opened, request: bytes, answers: bytes) -> Capture:
    """The capture as it is kept; its encodings went when it was opened."""
    capture = opened.capture
    return Capture(
        id=kept_id(capture.id),
        model=capture.model,
        tier=capture.tier,
        path=capture.path,
        request_body=request,
        status=capture.status,
        response_body=answers,
        ending=Ending.COMPLETE,
        started_at=capture.started_at,
        tenant=capture.tenant,
        conversation=capture.conversation,
        expects=capture.expects,
        stratum=capture.stratum,
    )


def _is_masked(needle: Needle, mask: Mask) -> bool:
    return touches([needle.value, *needle.others], mask)


def _written(outcome: Outcome, mask: Mask) -> dict[str, Json]:
    written: dict[str, Json] = redacted(asdict(outcome), mask)
    # Our own word, by which it is read again: no mask, however wide, may change it.
    return {**written, "kind": outcome.kind.value} if isinstance(outcome, Fault) else written


def open_kept(capture_id: str, blob: bytes, keyring: Keyring, rule: Callable[[str], AnswerRule]) -> Kept:
    """What was kept of a capture; `rule` is by model.

    Raises `SealBroken`, and `NotARequest` where we would not read it today.
    """
    opened = open_answers(capture_id, blob, keyring)
    capture, told = opened.capture, opened.told
    asked = parse_request(capture.path, capture.request_body)
    request = rule(capture.model).applied_to(asked, capture.expects)
    return Kept(
        capture=capture,
        request=request,
        questions={
            int(item): replace(request, needle=Needle(**{**needle, "others": tuple(needle["others"])}))
            for item, needle in told["needles"].items()
        },
        baseline=told["baseline"],
        compared=tuple(_compared(told["compared"])),
        outcomes={Slot(*slot): outcome for slot, outcome in opened.outcomes.items()},
        live=frozenset(told["live"]),
        conversation=told["conversation"],
        digest=told["digest"],
        marginals=tuple(told["marginals"]),
    )


def _compared(told: list[list[Json]]) -> Iterator[Compared]:
    for tier, arm, probed, epoch in told:
        yield Compared(comparison=Comparison(tier=tier, arm=Arm(arm), probed=probed), epoch=epoch)
