"""Steps of the explanation that are about one criterion: from its counts to its finding."""

from __future__ import annotations

import math
from collections.abc import Iterator

from service.decision.directions import log_e_least_harm
from service.decision.eprocess import Differences, log_e_harm, log_e_noninferiority
from service.decision.evidence import Evidence
from service.decision.explain_measured import noise_step
from service.decision.policy import Criterion, Hypothesis, Policy, Role
from service.decision.step import Number, Step
from service.decision.tally import Tally
from service.decision.thresholds import Thresholds
from service.decision.unscored import due, log_e_uneven, lost, unscored_share, withheld_reason
from service.decision.verdict import Correction, Decision, Finding, StratumHarm
from service.decision.wording import e_value, points, units

NI_FORMULA = "sum_g w_g prod_units (1 + k_g (m - D)/(1 - m)), D = (b - c)/n of the unit"
HARM_FORMULA = "the same with the bets of E_HARM, -m for m and -D for D"
UNEVEN_FORMULA = (
    "B(1 + u_Q, 1 + u_A)/(p^u_Q (1 - p)^u_A), u = lost, Q candidate, A control, p = due_Q/(due_Q + due_A)"
)


def criterion_steps(
    policy: Policy, criterion: Criterion, finding: Finding, limits: Thresholds, evidence: Evidence
) -> Iterator[Step]:
    """Counts, scores that are missing, estimate, e-values, noise, labels, strata, finding."""
    name = criterion.evaluator
    tally = evidence.tallies.get(name, Tally())
    control = (evidence.control or {}).get(name)
    yield _counts(name, tally)
    if lost(tally) or (control is not None and lost(control)):
        yield _missing(policy, criterion, tally, control, limits)
    if finding.estimate is not None:
        yield _estimate(criterion, tally, finding)
        yield _e_values(criterion, tally, finding)
        yield from noise_step(name, evidence)
    if finding.correction is not None:
        yield _correction(name, finding.correction)
    if finding.worst_strata:
        yield _strata(criterion, finding, limits, evidence)
    believed = withheld_reason(policy, tally, control) is None
    yield _finding(criterion, tally, finding, limits, evidence, believed=believed)


def _counts(name: str, tally: Tally) -> Step:
    return Step(
        title=f"{name}: counts",
        sentence=(
            f"Of {tally.n:,} counted pairs in {tally.conversations:,} conversations the candidate alone "
            f"failed in {tally.harm:,}, the baseline alone in {tally.benefit:,}, both in "
            f"{tally.both_failed:,}; {lost(tally):,} more were due and have no score."
        ),
        numbers={
            "pairs n": tally.n,
            "conversations": tally.conversations,
            "harm b": tally.harm,
            "benefit c": tally.benefit,
            "both failed": tally.both_failed,
            "not counted": tally.not_counted,
            **{f"unscored: {reason}": count for reason, count in sorted(tally.unscored.items())},
        },
    )


def _missing(
    policy: Policy, criterion: Criterion, tally: Tally, control: Tally | None, limits: Thresholds
) -> Step:
    """What a person needs to see whether missing scores may have made the rest look better."""
    share, least = unscored_share(tally), log_e_least_harm(criterion, tally)
    told = (
        f"Of {due(tally):,} pairs that were due {lost(tally):,} have no score, {share:.2%}; "
        f"{policy.max_unscored:.2%} may be missing."
    )
    numbers: dict[str, Number] = {
        "lost u": lost(tally),
        "due": due(tally),
        "unscored share": share,
        "max_unscored": policy.max_unscored,
    }
    if control is not None:
        uneven = log_e_uneven(tally, control)
        told += (
            f" The control lost {lost(control):,} of {due(control):,}: a bet against equal losses has "
            f"made {e_value(uneven)} of 1, and from {e_value(limits.warn)} on acceptance waits."
        )
        numbers |= {
            "control: lost u": lost(control),
            "control: due": due(control),
            "formula": UNEVEN_FORMULA,
            "E, arms lose alike": e_value(uneven),
            "log E, arms lose alike": uneven,
        }
    told += f" Had every lost pair spoken against harm, the e-value of harm would be {e_value(least)}."
    numbers |= {"E_HARM(margin), at least": e_value(least), "log E_HARM(margin), at least": least}
    return Step(title=f"{criterion.evaluator}: missing scores", sentence=told, numbers=numbers)


def _estimate(criterion: Criterion, tally: Tally, finding: Finding) -> Step:
    estimate, limits = finding.raw
    found = estimate or 0.0
    told = "as often as the baseline"
    if found:
        told = f"in {points(abs(found))} {'more' if found > 0 else 'fewer'} of the requests than the baseline"
    name = "estimate (b - c)/n"
    if tally.conversations != tally.n:
        told += ", each conversation counted once"
        name = "estimate: mean of (b - c)/n over conversations"
    lower = "E_NI(-m), of -D for D," if criterion.hypothesis is Hypothesis.EQUIVALENT else "E_HARM(m)"
    return Step(
        title=f"{criterion.evaluator}: estimate",
        sentence=(
            f"So far the candidate fails {told}; in truth the rise lies between "
            f"{points(limits.lower)} and {points(limits.upper)} (level {limits.level:.3g}, at every look), "
            f"and {points(finding.margin)} are tolerated."
        ),
        numbers={
            name: found,
            "lower limit": limits.lower,
            "upper limit": limits.upper,
            "level": limits.level,
            "method": limits.method,
            "formula": f"the smallest m with {lower} < 1/alpha and the largest with E_NI(m) < 1/alpha, "
            "alpha = (1 - level)/2",
            "margin": finding.margin,
        },
    )


def _e_values(criterion: Criterion, tally: Tally, finding: Finding) -> Step:
    log_e = finding.log_e
    both_ways = criterion.hypothesis is Hypothesis.EQUIVALENT
    margin = f"{criterion.margin:g}"
    claims = (
        f"that the rates differ by {margin} or more (the lesser of both directions)"
        if both_ways
        else f"that it fails {margin} or more too often"
    )
    within = f"{margin} in either direction (the mean of both)" if both_ways else margin
    numbers: dict[str, Number] = {
        "formula of E_NI(m)": NI_FORMULA,
        "formula of E_HARM(m)": HARM_FORMULA,
        "E_NI(margin)": e_value(log_e.noninferiority),
        "E_HARM(margin)": e_value(log_e.harm),
        "E_HARM(0)": e_value(log_e.warn),
        "log E_NI(margin)": log_e.noninferiority,
        "log E_HARM(margin)": log_e.harm,
        "log E_HARM(0)": log_e.warn,
        "units (n, b, c)": units(tally),
    }
    if both_ways:
        numbers |= _directions(criterion, tally)
    if finding.log_e_holm is not None:
        numbers["E_HARM(margin), e-Holm over the ladder"] = e_value(finding.log_e_holm)
    return Step(
        title=f"{criterion.evaluator}: e-values",
        sentence=(
            f"Betting against the claim {claims} has made {e_value(log_e.noninferiority)} of 1; against the "
            f"claim that it is within {within}, {e_value(log_e.harm)}; against the claim that nothing is "
            f"worse, {e_value(log_e.warn)}."
        ),
        numbers=numbers,
    )


def _directions(criterion: Criterion, tally: Tally) -> dict[str, Number]:
    """What the lesser and the means above are made of: D as it is, and mirrored."""
    up = Differences.of_tally(tally)
    down = up.mirrored()
    found = {
        "log E_NI(margin)": [log_e_noninferiority(way, criterion.margin) for way in (up, down)],
        "log E_HARM(margin)": [log_e_harm(way, criterion.margin) for way in (up, down)],
        "log E_HARM(0)": [log_e_harm(way, 0.0) for way in (up, down)],
    }
    return {f"{name}, as it is and with -D for D": f"{a:.6g}, {b:.6g}" for name, (a, b) in found.items()}


def _correction(name: str, correction: Correction) -> Step:
    limits, raw = correction.interval, correction.raw_interval
    weight = (
        "so it takes the place of the raw difference; it may withhold acceptance and never brings it about"
        if correction.suffices
        else f"which does not suffice to take its place: {correction.missing}"
    )
    return Step(
        title=f"{name}: labels",
        sentence=(
            f"People judged {correction.labels:,} of these pairs, drawn at random within what the evaluator "
            f"says of them, and left {correction.undecided:,} open. By their word the rise is "
            f"{points(correction.estimate)}, between {points(limits.lower)} and {points(limits.upper)} "
            f"(level {limits.level:.3g}, at one look), {weight}."
        ),
        numbers={
            "labels": correction.labels,
            "left open": correction.undecided,
            "formula": "sum_h (N_h/N) m_h, h = what the evaluator says, m_h = mean D of its labelled pairs",
            "corrected estimate": correction.estimate,
            "corrected lower limit": limits.lower,
            "corrected upper limit": limits.upper,
            "level": limits.level,
            "method": limits.method,
            "raw estimate": correction.raw_estimate,
            "raw lower limit": raw.lower,
            "raw upper limit": raw.upper,
        },
    )


def _strata(criterion: Criterion, finding: Finding, limits: Thresholds, evidence: Evidence) -> Step:
    name, worst = criterion.evaluator, finding.worst_strata[0]
    tallies = evidence.strata.get(name, {})
    return Step(
        title=f"{name}: worst stratum",
        sentence=(
            f"It looks worst in stratum {worst.stratum}: {worst.harm:,} harms and {worst.benefit:,} benefits "
            f"in {worst.n:,} pairs. Betting against the claim that it is within {finding.margin:g} there has "
            f"made {e_value(worst.log_e_harm)} of 1, and rejection takes {e_value(limits.strata)}."
        ),
        numbers={
            f"{each.stratum}: (n, b, c), E_HARM(margin)": _stratum(
                criterion, each, tallies.get(each.stratum, Tally())
            )
            for each in finding.worst_strata
        },
    )


def _stratum(criterion: Criterion, found: StratumHarm, tally: Tally) -> str:
    """Its counts and e-value, and what else the e-value is of: conversations, and pairs without a score."""
    told = f"({found.n}, {found.harm}, {found.benefit}), {e_value(found.log_e_harm)}"
    if found.conversations != found.n:
        told += f", units {units(tally)}"
    if lost(tally) and math.isclose(found.log_e_harm, log_e_least_harm(criterion, tally), abs_tol=1e-9):
        told += f", {lost(tally)} without a score taken to speak against it"
    return told


def _finding(
    criterion: Criterion,
    tally: Tally,
    finding: Finding,
    limits: Thresholds,
    evidence: Evidence,
    *,
    believed: bool,
) -> Step:
    name = criterion.evaluator
    weight = "" if finding.role is Role.DECISIVE else " It is only shown, and weighs nothing."
    told = {
        Decision.ACCEPT: "passes",
        Decision.UNDECIDED: "is undecided",
        Decision.REJECT: "is worse",
    }[finding.decision]
    harm = f"E_HARM {e_value(finding.log_e.harm)}"
    if not believed:
        harm = f"E_HARM, at least, {e_value(log_e_least_harm(criterion, tally))}"
    numbers: dict[str, Number] = {
        "finding": finding.decision.value,
        "role": finding.role.value,
        "min_pairs": criterion.min_pairs,
    }
    if tally.n:
        numbers["baseline failure share (both failed + c)/n"] = tally.baseline_failures / tally.n
        numbers["baseline_failure_cap"] = criterion.baseline_failure_cap
    numbers |= {
        "accept": f"E_NI {e_value(finding.log_e.noninferiority)}, needed {e_value(limits.accept)}",
        "harm": f"{harm}, needed {e_value(limits.harm)}",
        "warn": f"E_HARM(0) {e_value(finding.log_e.warn)}, needed {e_value(limits.warn)}",
    }
    if criterion.max_pairs is not None:
        numbers["max_pairs, by the policy"] = criterion.max_pairs
    elif (planned := evidence.max_pairs.get(name)) is not None:
        numbers["N_max: 6 n90(psi_plan), fixed when min_pairs were counted"] = planned
    if finding.more_pairs is not None:
        numbers["more pairs, if it is as good as the baseline"] = finding.more_pairs
    return Step(
        title=f"{name}: finding", sentence=f"{name} {told}: {finding.reason}.{weight}", numbers=numbers
    )
