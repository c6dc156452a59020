"""Policies and re-judged verdicts for a terminal, and the numbers behind them as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table

from service.client.tables import plain
from service.decision.demands import Demand, demands
from service.decision.policy import Asked, Gate, Policy
from service.decision.slo import plan_run
from service.decision.thresholds import Thresholds, run_alpha
from service.decision.wording import e_value
from service.settings import spelling
from service.settings.policy_file import DEFAULT, PolicyRead
from service.strata import UNIVERSE

FIRST_RUNS = (1, 2, 10)
"""Load runs of an epoch of which is told what they are held to."""
ANY_MODEL = "any model with one candidate"
DECISION_STYLE = {"accept": "green", "undecided": "yellow", "reject": "bold red"}
RETROSPECTIVE = (
    "RETROSPECTIVE. Stored evidence, judged again under {other}. It approves nothing: a policy chosen "
    "after its evidence was seen is fitted to it, and its error rates do not hold for that evidence."
)


def asked_of(read: PolicyRead, attempt: int) -> dict[str, tuple[int, tuple[Demand, ...]]]:
    """Candidates under test and demands by model; of a policy alone, for a ladder with one candidate."""
    ladders = {model: len(tiers) for model, tiers in read.candidates.items() if tiers}
    return {
        model: (
            tiers,
            demands(read.policy, tiers=tiers, attempt=attempt, strata=len(UNIVERSE)),
        )
        for model, tiers in (ladders or {ANY_MODEL: 1}).items()
    }


def demand_documents(read: PolicyRead, attempt: int) -> list[dict[str, Any]]:
    """The demands as JSON; an e-value beyond a double, or beyond reach, is null."""
    return [
        {
            "model": None if model == ANY_MODEL else model,
            "candidates": candidates,
            "criterion": demand.criterion.evaluator,
            "role": demand.criterion.role.value,
            "alpha_accept": demand.limits.alpha_accept,
            "accept_e_value": _number(demand.limits.accept),
            "reject_e_value": _number(demand.limits.harm),
            "stratum_e_value": _number(demand.limits.strata),
            "warn_e_value": _number(demand.limits.warn),
            "clean_pairs": demand.clean_pairs,
            "max_pairs": demand.max_pairs,
        }
        for model, (candidates, asked) in asked_of(read, attempt).items()
        for demand in asked
    ]


def read_view(read: PolicyRead, attempt: int, in_force: PolicyRead | None = None) -> RenderableType:
    """Every value with its source, and what is asked of each model's tiers."""
    shown = read if read.candidates or in_force is None else _with_ladders(read, in_force)
    parts: list[RenderableType] = [plain(f"policy of {read.path}", "bold"), _values(read)]
    for model, (candidates, asked) in asked_of(shown, attempt).items():
        alpha = asked[0].limits.alpha_accept
        held = f"alpha {alpha:.4g}" if alpha else "no error rate left, so nothing can be accepted"
        counted = f"{candidates} candidate{'' if candidates == 1 else 's'}"
        parts.append(plain(f"{model}: {counted}, attempt {attempt}, {held}", "bold"))
        parts.append(_demands(asked))
        parts += map(plain, _of_load_runs(read.policy, asked[0].limits))
    parts.append(
        plain(
            "accepts, rejects, in a stratum, warns: from this e-value on, which is what a bet against the "
            "contrary has made of 1. clean tier: pairs at which it passes if not one differs. ends at: pairs "
            "from which an undecided tier counts as not shown; planned, it grows with the pairs that differ. "
            "A later submission is held to more: --attempt J; `tiergate verdict` tells which one it is.",
            "dim",
        )
    )
    return Group(*parts)


def load_run_documents(read: PolicyRead, attempt: int) -> list[dict[str, Any]]:
    """What the first load runs of a tier are held to, and how many requests the SLO takes, as JSON."""
    return [
        {
            "model": None if model == ANY_MODEL else model,
            "run": run,
            "alpha": run_alpha(asked[0].limits, run),
            "slo_margin": read.policy.load_runs.slo_margin,
            "requests_at_99_percent": _requests(read.policy, asked[0].limits, run),
            "failure_weight": read.policy.load_runs.failure.weight,
            "failure_price": read.policy.load_runs.failure.price,
        }
        for model, (_, asked) in asked_of(read, attempt).items()
        for run in FIRST_RUNS
    ]


def _of_load_runs(policy: Policy, limits: Thresholds) -> Iterator[str]:
    """Of gates that are asked for."""
    terms = policy.load_runs
    if policy.gates[Gate.SLO] is Asked.REQUIRED:
        told = []
        for run in FIRST_RUNS:
            requests = _requests(policy, limits, run)
            needed = "no error rate left" if requests is None else f"{requests:,} requests"
            told.append(f"run {run} at alpha {run_alpha(limits, run):.3g}: {needed}")
        yield (
            f"SLO gate: misses rise by less than {spelling.points(terms.slo_margin)}; of each tier, if both "
            f"miss 1%, for a power of {spelling.share(terms.power)}: {'; '.join(told)}"
        )
    if policy.gates[Gate.MONEY] is Asked.REQUIRED:
        besides = f" and {terms.failure.price:g} besides" if terms.failure.price else ""
        yield (
            f"money gate: a net benefit above 0, where a failure costs {terms.failure.weight:.4g} requests "
            f"of the baseline{besides}"
        )


def _requests(policy: Policy, limits: Thresholds, run: int) -> int | None:
    """That the SLO gate takes if both tiers miss 1 %; None where no error rate is left."""
    alpha = run_alpha(limits, run)
    if not alpha:
        return None
    return plan_run(miss_share=0.01, affordable=0, alpha=alpha, terms=policy.load_runs).wanted


def check_view(
    document: Mapping[str, Any], in_force: PolicyRead | None, rest: RenderableType
) -> RenderableType:
    """What would change, before the policy itself."""
    parts = [rest, plain(f"{document['file']}: can be used; nothing was touched", "green")]
    if in_force is not None and not document["changes"]:
        parts.append(plain(f"It says what {in_force.path} says."))
    elif in_force is not None:
        table = _table("compared with what is in force", "before", "after")
        for change in document["changes"]:
            table.add_row(*(plain(change[name] or "-") for name in ("key", "before", "after")))
        parts.append(table)
        parts.append(plain(_consequence(anew=document["new_epochs"])))
    return Group(*parts)


def diff_view(document: Mapping[str, Any]) -> RenderableType:
    """Both verdicts of every tier side by side."""
    parts: list[RenderableType] = [plain(RETROSPECTIVE.format(other=document["other"]), "bold yellow")]
    changed = _table("policy", "in force", "other")
    for change in document["changes"]:
        changed.add_row(*(plain(change[name] or "-") for name in ("key", "before", "after")))
    parts.append(changed if document["changes"] else plain("Both policies say the same."))
    for tier in document["tiers"]:
        parts += _tier(tier)
    parts += [plain(f"note: {note}", "yellow") for note in document["notes"]]
    parts.append(plain(_consequence(anew=document["new_epochs"])))
    return Group(*parts)


def _tier(tier: Mapping[str, Any]) -> Sequence[RenderableType]:
    head = f"{tier['model']} / {tier['tier']}: epoch {tier['epoch'][:12]}, attempt {tier['attempt']}"
    table = _table("", "in force", "other", "why")
    for row in tier["side_by_side"]:
        style = "bold" if row["changed"] else "dim"
        cells = [plain(row["subject"], style)]
        for name in ("before", "after"):
            decided = DECISION_STYLE.get(row[name], "") if row["subject"] == "decision" else ""
            cells.append(plain(row[name], decided or style))
        table.add_row(*cells, plain("\n".join(row["why"])))
    return [plain(head, "bold"), table]


def _consequence(*, anew: bool) -> str:
    if anew:
        return (
            "Put in force, it starts a new epoch for every tier: pairs counted so far stay with the old one, "
            "and every tier shows itself anew, on new pairs."
        )
    return "Put in force, it starts no new epoch: pairs counted so far go on counting."


def _with_ladders(read: PolicyRead, in_force: PolicyRead) -> PolicyRead:
    return replace(read, candidates=in_force.candidates)


def _values(read: PolicyRead) -> Table:
    table = _table("key", "value", "from")
    for told in read.told:
        style = "dim" if told.origin == DEFAULT else ""
        source = told.origin if told.line is None else f"{told.origin} (line {told.line})"
        table.add_row(*(plain(text, style) for text in (told.key, told.value, source)))
    return table


def _demands(asked: Sequence[Demand]) -> Table:
    table = _table(
        "criterion", "role", "margin", "accepts", "rejects", "in a stratum", "warns", "clean tier", "ends at"
    )
    for demand in asked:
        limits = demand.limits
        clean = "never" if demand.clean_pairs is None else f"{demand.clean_pairs:,}"
        by_hand = demand.criterion.max_pairs is not None
        ends = "-" if demand.max_pairs is None else f"{'' if by_hand else '>= '}{demand.max_pairs:,}"
        table.add_row(
            plain(demand.criterion.evaluator),
            plain(demand.criterion.role.value),
            spelling.points(demand.criterion.margin),
            *(e_value(each) for each in (limits.accept, limits.harm, limits.strata, limits.warn)),
            clean,
            ends,
        )
    return table


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _number(log_e: float) -> float | None:
    """None for what no double can hold."""
    return math.exp(log_e) if log_e < math.log(1e300) else None
