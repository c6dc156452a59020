"""The state of adjudication by tier and evaluator: labels, agreement, errors, and what they correct."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from service.approval.adjudication_schemas import (
    AgreementOut,
    ErrorRatesOut,
    JudgeOut,
    LabellerOut,
    QueueOut,
)
from service.approval.desk import Desk
from service.approval.verdict_schemas import CorrectionOut
from service.decision.agreement import Agreement
from service.decision.instrument import Errors, Reading, corrected_by_errors, errors_of
from service.decision.labelled import level_of
from service.decision.policy import Policy
from service.decision.tally import Tally
from service.store.labels.adjudication import Where
from service.store.scored.adjudicated import (
    LabelledItem,
    QueueCount,
    between_people,
    judge_and_people,
    labelled_items,
    labels_of,
    queue_counts,
)
from service.store.verdicts.rung import Rung

MOST_DISPUTED = 20


def queues_out(desk: Desk, model: str) -> list[QueueOut]:
    """Every queue of a model's candidates, in the order of the ladder."""
    standing, present = desk.standing(model), desk.question.present
    epochs = {
        (rung.tier.name, rung.evidence.epoch): rung for rung in standing.rungs if rung.evidence is not None
    }
    counts = queue_counts(desk.db, [Where(model, tier, epoch) for tier, epoch in epochs])
    with desk.db.read() as connection:
        items = labelled_items(connection, model, list(epochs), present)
    return [
        _queue(
            model,
            rung,
            count,
            [each for each in items if _is_of(each, count)],
            _level(desk.question.policy, rung),
        )
        for key, rung in epochs.items()
        for count in counts
        if (count.tier, count.epoch) == key
    ]


def _is_of(item: LabelledItem, count: QueueCount) -> bool:
    return (item.tier, item.epoch, item.evaluator) == (count.tier, count.epoch, count.evaluator)


def _level(policy: Policy, rung: Rung) -> float:
    return level_of(policy, 0.0 if rung.verdict is None else rung.verdict.alpha_accept)


def _queue(
    model: str, rung: Rung, count: QueueCount, items: Sequence[LabelledItem], level: float
) -> QueueOut:
    assert rung.evidence is not None, "a candidate has evidence"
    tally = rung.evidence.tallies.get(count.evaluator, Tally())
    labels = labels_of(items)
    found = (
        [each for each in rung.verdict.findings if each.criterion == count.evaluator] if rung.verdict else []
    )
    correction = found[0].correction if found else None
    return QueueOut(
        model=model,
        tier=count.tier,
        evaluator=count.evaluator,
        queued=count.queued,
        kept=count.kept,
        discordant=count.discordant,
        labelled=labels.labelled,
        open=labels.undecided,
        disputed=[item.id for item in items if len(set(item.told)) > 1][:MOST_DISPUTED],
        labellers=list(_labellers(items)),
        agreement=[_agreement(*names, each) for names, each in between_people(items).items()],
        evaluator_errors=_errors(
            errors_of(
                tally, [Reading(scored=item.scored, said=item.scored, truth=item.truth) for item in items]
            )
        ),
        correction=None if correction is None else CorrectionOut.model_validate(correction),
        judge=_judge(tally, items, level),
    )


def _labellers(items: Sequence[LabelledItem]) -> Iterator[LabellerOut]:
    labelled: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    for item in items:
        for name, said in item.people.items():
            (skipped if said is None else labelled)[name] += 1
    for name in sorted({*labelled, *skipped}):
        yield LabellerOut(labeller=name, labelled=labelled[name], skipped=skipped[name])


def _agreement(first: str, second: str, found: Agreement) -> AgreementOut:
    return AgreementOut(first=first, second=second, items=found.items, agreed=found.agreed, kappa=found.kappa)


def _errors(errors: Errors) -> ErrorRatesOut:
    return ErrorRatesOut(
        pairs=errors.pairs,
        baseline_sensitivity=errors.baseline.sensitivity,
        baseline_specificity=errors.baseline.specificity,
        candidate_sensitivity=errors.candidate.sensitivity,
        candidate_specificity=errors.candidate.specificity,
    )


def _judge(tally: Tally, items: Sequence[LabelledItem], level: float) -> JudgeOut | None:
    judged = [item for item in items if item.judges]
    if not judged:
        return None
    readings = [
        Reading(scored=item.scored, said=said, truth=item.truth)
        for item in judged
        for said in item.judges.values()
        if said is not None
    ]
    names = sorted({name for item in judged for name in item.judges})
    rate = corrected_by_errors(tally, readings, level=level)
    return JudgeOut(
        labelled=len(readings),
        skipped=sum(said is None for item in judged for said in item.judges.values()),
        agreement=_agreement(", ".join(names), "people", judge_and_people(judged)),
        errors=_errors(errors_of(tally, readings)),
        difference=None if rate is None else rate.estimate,
        lower=None if rate is None else rate.lower,
        upper=None if rate is None else rate.upper,
    )
