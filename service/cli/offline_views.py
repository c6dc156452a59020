"""What `tiergate stats` and `tiergate plan` print, for a person and as JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from service.decision.look import Look
    from service.decision.plan import Plan, Scenario
    from service.decision.verdict import Interval

DECISION_STYLE = {"accept": "green", "undecided": "yellow", "reject": "bold red"}


def look_document(seen: Look) -> dict[str, Any]:
    """The JSON of `stats`."""
    finding, limits = seen.finding, seen.limits
    return {
        "n": finding.n,
        "harm": finding.harm,
        "benefit": finding.benefit,
        "margin": finding.margin,
        "alpha": limits.alpha_accept,
        "estimate": finding.estimate,
        "decision": str(finding.decision),
        "reason": finding.reason,
        "warn": finding.warn,
        "more_pairs": finding.more_pairs,
        "log_e": {
            "noninferiority": finding.log_e.noninferiority,
            "harm": finding.log_e.harm,
            "warn": finding.log_e.warn,
        },
        "log_thresholds": {"accept": limits.accept, "harm": limits.harm, "warn": limits.warn},
        "confidence_sequence": _interval_document(finding.interval),
        "tango": {
            "z": seen.tango_z,
            "p": seen.tango_p,
            "interval": _interval_document(seen.tango_interval),
        },
        "exact": {"p": seen.exact_p},
        "mcnemar": {"mid_p": seen.mcnemar_mid_p},
    }


def plan_document(scenario: Scenario, made: Plan) -> dict[str, Any]:
    """The JSON of `plan`; pairs are for each criterion."""
    pairs = _plan_pairs(made)
    return {
        "margin": scenario.margin,
        "discordance": scenario.discordance,
        "difference": scenario.difference,
        "power": scenario.power,
        "alpha": scenario.planned_alpha,
        "attempt": scenario.attempt,
        "criteria": scenario.criteria,
        "design_effect": scenario.design_effect,
        "pairs_per_day": scenario.pairs_per_day,
        "pairs": pairs,
        "days": {name: _days(scenario, count) for name, count in pairs.items()},
        "method": {"e_process": "simulated", "epochs": made.simulated_epochs, "seed": made.seed},
    }


def _plan_pairs(made: Plan) -> dict[str, int | None]:
    return {
        "zero_discordance": made.zero_discordance,
        "fixed": made.fixed,
        "e_process_mean": made.mean,
        "e_process_median": made.median,
        "e_process_quantile": made.quantile,
        "max": made.max_pairs,
    }


def _days(scenario: Scenario, pairs: int | None) -> float | None:
    per_day = scenario.pairs_per_day
    return None if pairs is None or per_day is None else pairs / per_day


def _interval_document(interval: Interval) -> dict[str, Any]:
    return {
        "lower": interval.lower,
        "upper": interval.upper,
        "level": interval.level,
        "method": interval.method,
    }


def print_look(seen: Look) -> None:
    """What `stats` tells a person."""
    from service.decision.wording import e_value

    finding, limits = seen.finding, seen.limits
    estimate = "none without pairs" if finding.estimate is None else _points(finding.estimate)
    table = _table("", "", "what it says")
    table.add_row("pairs", f"{finding.n:,}", f"{finding.harm:,} harms, {finding.benefit:,} benefits")
    table.add_row("difference", estimate, "candidate's failure rate minus baseline's; positive is worse")
    table.add_section()
    table.add_row(
        "e-value, within the margin",
        e_value(finding.log_e.noninferiority),
        f"accepts from {e_value(limits.accept)}: against a rise of {_points(finding.margin)} or more",
    )
    table.add_row(
        "e-value, harm",
        e_value(finding.log_e.harm),
        f"rejects from {e_value(limits.harm)}: for a rise above {_points(finding.margin)}",
    )
    table.add_row(
        "e-value, any harm",
        e_value(finding.log_e.warn),
        f"warns from {e_value(limits.warn)}: for any rise at all",
    )
    table.add_row(
        "confidence sequence", _limits(finding.interval), "where the difference is, at all looks together"
    )
    table.add_section()
    table.add_row(
        "Tango z, p",
        "none without pairs" if seen.tango_z is None else f"{seen.tango_z:.4f}, {seen.tango_p:.4g}",
        "single look: score test of a rise of the margin or more",
    )
    table.add_row("Tango interval", _limits(seen.tango_interval), "single look")
    table.add_row(
        "exact p",
        "not enumerated" if seen.exact_p is None else f"{seen.exact_p:.4g}",
        "single look: exact for few pairs, where Tango can be a little liberal",
    )
    table.add_row(
        "McNemar mid-p", f"{seen.mcnemar_mid_p:.4g}", "single look: any difference at all? Never an approval"
    )
    console = _console()
    console.print(table)
    console.print(
        f"[{DECISION_STYLE[finding.decision]}]{finding.decision}[/]: {finding.reason}", highlight=False
    )
    if finding.more_pairs is not None:
        console.print(
            f"About {finding.more_pairs:,} more pairs to accept, if the tier is equal and as discordant.",
            highlight=False,
        )


def print_plan(scenario: Scenario, made: Plan) -> None:
    """What `plan` tells a person."""
    share = f"{scenario.power:.0%}"
    what = {
        "zero_discordance": "no acceptance before, even without a discordant pair",
        "fixed": f"one look fixed in advance (Tango), power {share}",
        "e_process_mean": "e-process, looking at every pair: mean (simulated)",
        "e_process_median": "e-process: half of the epochs accept within",
        "e_process_quantile": f"e-process: {share} of the epochs accept within",
        "max": "stop looking: 6 times the fixed sample at no difference",
    }
    per_criterion = "pairs" if scenario.criteria == 1 else "pairs per criterion"
    headings = ["", per_criterion] + (["days"] if scenario.pairs_per_day is not None else [])
    table = _table(*headings, right=True)
    for name, pairs in _plan_pairs(made).items():
        days = _days(scenario, pairs)
        cells = ["over 30 fixed samples" if pairs is None else f"{pairs:,}"]
        if scenario.pairs_per_day is not None:
            cells.append("" if days is None else f"{days:,.0f}" if days >= 10 else f"{days:.2g}")
        table.add_row(what[name], *cells)
    console = _console()
    console.print(
        f"margin {_points(scenario.margin)}, discordance {scenario.discordance:.2%}, true difference "
        f"{_points(scenario.difference)}, alpha {scenario.planned_alpha:.4g}"
        + (f", {scenario.criteria} criteria that must all pass" if scenario.criteria > 1 else ""),
        highlight=False,
    )
    if scenario.pairs_per_day is not None:
        console.print(f"{scenario.pairs_per_day:,.0f} pairs a day", highlight=False)
    console.print(table)
    console.print(f"Simulated: {made.simulated_epochs:,} epochs, seed {made.seed}.", highlight=False)
    if scenario.attempt is None:
        console.print(
            "A policy that spends alpha over attempts (the default) asks more of a first one: --attempt 1.",
            highlight=False,
        )


def _table(*headings: str, right: bool = False) -> Table:
    table = Table(box=SIMPLE_HEAD, show_header=any(headings), show_edge=False, pad_edge=False)
    for position, heading in enumerate(headings):
        table.add_column(heading, justify="right" if right and position else "left")
    return table


def _points(share: float) -> str:
    return f"{share * 100:+.4g} pp" if share else "0 pp"


def _limits(interval: Interval) -> str:
    return f"[{_points(interval.lower)}, {_points(interval.upper)}] ({interval.level:.4g})".replace(
        "[", "\\[", 1
    )


def _console() -> Console:
    return Console(file=sys.stdout)
