"""One paragraph that a manager can act on: what may be done with each tier, why, and what it is worth.

Made of the same figures as the rest of the page; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.decision.policy import Gate, Role
from service.decision.verdict import Decision, GateState
from service.report import writing
from service.report.document import Finding, Report, TierReport, VerdictFigures
from service.report.shared import criterion, gate_name
from service.report.words import Language, Words, words

SHOWN_TO_BE_MISSING = (GateState.MISSING, GateState.UNDECIDED)


def conclude(report: Report, say: Words) -> str:
    """The paragraph, in the language of `say`."""
    verdicts = [(each, each.verdict) for each in report.candidates if each.verdict is not None]
    if not verdicts:
        return say("conclusion.no_verdict", model=report.run.model)
    baseline = report.baseline
    told = [
        say(
            "conclusion.opening",
            model=report.run.model,
            baseline="–" if baseline is None else baseline.name,
            when=writing.moment(report.run.ended_at or report.made_at),
        )
    ]
    told += [in_one_sentence(tier, verdict, report.currency, say) for tier, verdict in verdicts]
    told.append(_action(verdicts, say))
    return say("punctuation.between_sentences").join(told)


def concluded(report: Report) -> Report:
    """The report with its conclusion in every language."""
    return replace(
        report, conclusion={str(language): conclude(report, words(language)) for language in Language}
    )


def in_one_sentence(tier: TierReport, verdict: VerdictFigures, currency: str, say: Words) -> str:
    """What may be done with a tier, and why, with the numbers that matter most."""
    if verdict.decision is Decision.ACCEPT:
        return say(
            "conclusion.accept", tier=tier.name, worst=_worst(verdict, say), money=_money(tier, currency, say)
        )
    if verdict.decision is Decision.REJECT:
        return say(
            "conclusion.reject",
            tier=tier.name,
            why=_why_rejected(verdict, say),
            money=_money(tier, currency, say),
        )
    return say("conclusion.undecided", tier=tier.name, why=_why_undecided(verdict, say))


def _decisive(verdict: VerdictFigures) -> list[Finding]:
    return [each for each in verdict.findings if each.role is Role.DECISIVE]


def _worst(verdict: VerdictFigures, say: Words) -> str:
    """The criterion whose upper limit is nearest to its margin."""
    known = [each for each in _decisive(verdict) if each.estimate is not None]
    if not known:
        return say("conclusion.no_criteria")
    worst = max(known, key=lambda each: each.upper - each.margin)
    return say(
        "conclusion.worst",
        criterion=criterion(say, worst.criterion),
        numbers=writing.interval(worst.estimate, worst.lower, worst.upper, writing.points, worst.level),
        margin=writing.margin(worst.margin),
    )


def _money(tier: TierReport, currency: str, say: Words) -> str:
    benefit = None if tier.money is None else tier.money.net_benefit
    if benefit is None:
        return say("conclusion.money_unknown")
    numbers = writing.figure(benefit, writing.money(currency))
    if benefit.lower is not None and benefit.lower > 0:
        return say("conclusion.money_saves", numbers=numbers)
    if benefit.upper is not None and benefit.upper < 0:
        return say("conclusion.money_costs", numbers=numbers)
    return say("conclusion.money_open", numbers=numbers)


def _why_rejected(verdict: VerdictFigures, say: Words) -> str:
    harmed = [each for each in _decisive(verdict) if each.decision is Decision.REJECT]
    told = [
        say(
            "conclusion.harm",
            criterion=criterion(say, each.criterion),
            numbers=writing.interval(each.estimate, each.lower, each.upper, writing.points, each.level),
            margin=writing.margin(each.margin),
        )
        for each in harmed
    ]
    failed = [
        gate
        for gate, state in verdict.gates.items()
        if state is GateState.FAILED and gate is not Gate.QUALITY
    ]
    told += [say("conclusion.gate_failed", gate=gate_name(say, gate)) for gate in failed]
    return say("punctuation.list").join(told) if told else say("conclusion.see_reasons")


def _why_undecided(verdict: VerdictFigures, say: Words) -> str:
    told = []
    for finding in _decisive(verdict):
        if finding.decision is Decision.UNDECIDED:
            name = criterion(say, finding.criterion)
            if finding.more_pairs is None:
                told.append(say("conclusion.not_shown", criterion=name, pairs=writing.count(finding.n)))
            else:
                told.append(
                    say(
                        "conclusion.more_pairs",
                        criterion=name,
                        pairs=writing.count(finding.n),
                        more=writing.count(finding.more_pairs),
                    )
                )
    missing = [
        gate_name(say, gate)
        for gate, state in verdict.gates.items()
        if state in SHOWN_TO_BE_MISSING and gate is not Gate.QUALITY
    ]
    if missing:
        told.append(say("conclusion.gates_missing", gates=say("punctuation.list").join(missing)))
    return say("punctuation.list").join(told) if told else say("conclusion.see_reasons")


def _action(verdicts: Sequence[tuple[TierReport, VerdictFigures]], say: Words) -> str:
    """What to do now: the most aggressive tier that is accepted, or why to wait."""
    accepted = [tier for tier, verdict in verdicts if verdict.decision is Decision.ACCEPT]
    open_ones = [tier for tier, verdict in verdicts if verdict.decision is Decision.UNDECIDED]
    if accepted:
        return say("conclusion.do_approve", tier=accepted[-1].name)
    if open_ones:
        return say("conclusion.do_wait")
    return say("conclusion.do_keep")
