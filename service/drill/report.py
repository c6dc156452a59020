"""What a person reads of a drill, and what a program does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from service.decision.wording import compared_e_values, e_value
from service.drill.acts import Act, Seen, Sign
from service.drill.plan import Bill, DrillPlan
from service.drill.relay import Upstream
from service.drill.run import Drilled, Outcome

STYLE: Mapping[Seen, str] = {Seen.YES: "green", Seen.NO: "bold red", Seen.NOT_YET: "bold red"}
WANTED: Mapping[Act, str] = {
    Act.HEALTHY: "not rejected",
    Act.DAMAGED: "rejected",
    Act.SWAPPED: "difference the other way",
    Act.CROSSED: "control alarm, verdict withheld",
}


def announcement(model: str, plan: DrillPlan, upstream: Upstream, bill: Bill, policy_changes: str) -> str:
    """What is about to be sent, and where."""
    where = ", ".join(backend.url for backend in upstream.backends)
    hour = upstream.tokens
    budget = "" if hour is None else f"; it stops at {hour:,}, an hour of the shadow budget"
    return (
        f"Fire drill of {model}: {', '.join(plan.defects)} damaged in {plan.share:.0%} of all answers.\n"
        f"It asks {where} at most {bill.requests:,} requests, {bill.tokens:,} tokens{budget};\n"
        "it ends as soon as all is seen. Proxy, worker, Valkey and database are its own: evidence, routes\n"
        f"and decisions of production are not touched. {policy_changes}"
    )


def progress_line(seconds: float, signs: tuple[Sign, ...], asked: int) -> str:
    """One look; `signs` is empty before the first."""
    if not signs:
        return f"{seconds:5.0f} s  {asked} requests"
    seen = sum(sign.seen is Seen.YES for sign in signs)
    open_signs = [f"{sign.act}/{sign.defect}" for sign in signs if sign.seen is Seen.NOT_YET]
    rest = f"; not yet: {', '.join(open_signs)}" if open_signs else ""
    return f"{seconds:5.0f} s  {asked} requests, {seen} of {len(signs)} as they must be{rest}"


def view(drilled: Drilled) -> RenderableType:
    """A table of every sign, what went wrong, and the outcome."""
    table = Table(title=f"Fire drill of {drilled.model}", title_justify="left")
    for heading in (
        "act",
        "criterion",
        "must be",
        "seen",
        "pairs",
        "harm",
        "benefit",
        "e-value",
        "threshold",
    ):
        table.add_column(heading, justify="right" if heading in _NUMBERS else "left")
    for sign in drilled.signs:
        told, threshold = compared_e_values(sign.log_e, sign.log_threshold)
        table.add_row(
            sign.act.value,
            sign.criterion,
            WANTED[sign.act],
            Text("yes" if sign.seen is Seen.YES else "NO", style=STYLE[sign.seen]),
            str(sign.tally.n),
            str(sign.tally.harm),
            str(sign.tally.benefit),
            told,
            f"{'<' if sign.act is Act.HEALTHY else '>='} {threshold}",
        )
    lines: list[RenderableType] = [table]
    lines += [
        Text(f"{_called(sign)}: {sign.act}, {sign.criterion}: {sign.trouble}", style="bold red")
        for sign in drilled.signs
        if sign.seen is not Seen.YES
    ]
    ended = f"{drilled.cut_short} before all was seen. " if drilled.outcome is Outcome.UNFINISHED else ""
    lines.append(
        Text(
            f"{drilled.outcome.upper()}: {ended}{drilled.damaged} answers were damaged;"
            f" {drilled.asked} requests and {drilled.spent:,} tokens in {drilled.seconds:.0f} s.",
            style="bold green" if drilled.outcome is Outcome.PASS else "bold red",
        )
    )
    return Group(*lines)


def _called(sign: Sign) -> str:
    return "FALSE ALARM" if sign.act is Act.HEALTHY and sign.seen is Seen.NO else "BLIND"


_NUMBERS = frozenset({"pairs", "harm", "benefit", "e-value", "threshold"})


def document(drilled: Drilled) -> dict[str, Any]:
    """The same for programs."""
    return {
        "model": drilled.model,
        "outcome": drilled.outcome.value,
        "cut_short": drilled.cut_short,
        "signs": [
            {
                "act": sign.act.value,
                "defect": sign.defect.value,
                "criterion": sign.criterion,
                "must_be": WANTED[sign.act],
                "seen": sign.seen is Seen.YES,
                "trouble": sign.trouble,
                "pairs": sign.tally.n,
                "harm": sign.tally.harm,
                "benefit": sign.tally.benefit,
                "log_e": sign.log_e,
                "log_threshold": sign.log_threshold,
                "e_value": e_value(sign.log_e),
            }
            for sign in drilled.signs
        ],
        "damaged_answers": drilled.damaged,
        "requests": drilled.asked,
        "tokens": drilled.spent,
        "seconds": round(drilled.seconds, 1),
    }
