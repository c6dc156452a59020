"""Verdicts, ladders and route changes for a terminal, as rich renderables.

Text from elsewhere is printed as text, never as markup or escape codes: a reason may quote a model's answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from service.client.readings import (
    CriterionAsked,
    Document,
    HeldTo,
    LadderReading,
    RouteChange,
    VerdictReading,
)
from service.decision.policy import Gate, Role
from service.decision.verdict import Decision, Finding, GateState, Verdict
from service.decision.wording import ago, corrected, e_value

WIDE = 120
"""Columns a terminal needs for the reason to stand in the table."""
DECISION_STYLE = {Decision.ACCEPT: "green", Decision.UNDECIDED: "yellow", Decision.REJECT: "bold red"}
GATE_STYLE = {
    GateState.PASSED: "green",
    GateState.FAILED: "bold red",
    GateState.UNDECIDED: "yellow",
    GateState.MISSING: "yellow",
    GateState.NOT_ASKED: "dim",
}


def plain(text: object, style: str = "") -> Text:
    """The text with control characters spelled out: a reason quotes what a model wrote."""
    spelled = "".join(
        character if character.isprintable() or character == "\n" else repr(character)[1:-1]
        for character in str(text)
    )
    return Text(spelled, style=style)


@dataclass(frozen=True, slots=True)
class VerdictTable:
    """One line a criterion: counts, difference with its interval (in percentage points), margin, decision.

    The reason is the last column of a wide terminal, and a list below the table on a narrow one.
    """

    verdict: Verdict

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        wide = options.max_width >= WIDE
        yield _table(self.verdict, wide=wide)
        if not wide:
            for finding in _listed(self.verdict):
                line = f"{_named(finding)}: {_why(finding)}"
                # Most reasons of a verdict are those of its findings, and stand in the line of the decision.
                if line not in self.verdict.reasons:
                    yield plain(line)


def _table(verdict: Verdict, *, wide: bool) -> Table:
    levels = sorted({f"{finding.interval.level:.0%}" for finding in verdict.findings})
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1 if wide else 0, 0, 0))
    table.add_column("criterion", no_wrap=True)
    for name in ("pairs", "harms", "benefits", "diff.", f"{'/'.join(levels)} interval".strip(), "margin"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("decision", no_wrap=True)
    if wide:
        table.add_column("reason", ratio=1)
    for finding in _listed(verdict):
        table.add_row(*_cells(finding, wide=wide))
    return table


def _listed(verdict: Verdict) -> list[Finding]:
    """Every criterion that decides, and those only shown of which there is something to show."""
    return [each for each in verdict.findings if each.n or each.role is Role.DECISIVE]


def gates_line(verdict: Verdict) -> Text:
    """Every gate with its state, `not asked` included: a verdict says what it does not rest on."""
    line = Text("gates: ")
    for position, gate in enumerate(gate for gate in Gate if gate in verdict.gates):
        state = verdict.gates[gate]
        line.append("  " if position else "")
        line.append(f"{gate.value} ")
        line.append(state.value.replace("_", " "), style=GATE_STYLE[state])
    return line


def measured_lines(document: Document) -> Iterator[Text]:
    """What the latest load runs showed, and how long ago; nothing of an API that does not tell."""
    for gate, measured in document.get("measured", {}).items():
        shown = measured["shown"] if measured["counts"] else "too old to count"
        age, run = measured["age_seconds"], measured["run"]
        when = "" if age is None else f" {ago(float(age))}"
        which = "" if run is None else f", run {run} of the epoch"
        line = plain(f"{gate}: {shown}, load run{when}{which}: {measured['reason']}")
        # Why it is in the way stands with the decision already.
        if not any(str(reason).startswith(f"{gate}: ") for reason in document["reasons"]):
            yield line


def decision_line(verdict: Verdict) -> Text:
    """Model, tier and decision, with the reasons."""
    line = plain(f"{verdict.model} / {verdict.tier}: ", "bold")
    line.append(verdict.decision.value, style=DECISION_STYLE[verdict.decision])
    for reason in verdict.reasons:
        line.append("\n  ")
        line.append_text(plain(reason))
    return line


def policy_lines(reading: VerdictReading) -> Table:
    """What the policy in force decides by, and below it what production's would need on the same evidence."""
    deciding = {each.criterion for each in reading.verdict.findings if each.role is Role.DECISIVE}
    criteria, production = (
        [each for each in asked if each.criterion in deciding]
        for asked in (reading.criteria, reading.production)
    )
    lines = Table.grid(padding=(0, 1, 0, 0))
    lines.add_row("policy:", plain("\n".join(map(_asked, criteria))))
    if production:
        told = (f"{_asked(criterion)}, {_outlook(criterion)}" for criterion in production)
        lines.add_row("production:", plain("\n".join(told)))
    return lines


def verdict_view(reading: VerdictReading) -> RenderableType:
    """All there is to a verdict."""
    verdict = reading.verdict
    aged = "" if reading.held_to.age_seconds is None else f", {_age(reading.held_to.age_seconds)} old"
    accept, restored = reading.held_to.accept, reading.held_to.restored
    footing = Text(
        f"epoch {verdict.epoch[:12]}{aged}, attempt {verdict.attempt}, alpha {verdict.alpha_accept:.4g}, "
        f"accepts from {'no e-value' if accept is None else e_value(accept)}, "
        f"evaluated {reading.evaluated_at}",
        style="dim",
    )
    return Group(
        decision_line(verdict),
        VerdictTable(verdict),
        *worst_strata_lines(verdict, reading.held_to),
        *correction_lines(verdict),
        gates_line(verdict),
        *measured_lines(reading.document),
        policy_lines(reading),
        *ends_line(verdict, reading.held_to),
        *([] if restored is None else [plain(f"alpha restored {restored}")]),
        footing,
    )


def worst_strata_lines(verdict: Verdict, held_to: HeldTo) -> Iterator[Text]:
    """Of every criterion that decides, the stratum with most evidence of harm, and what would reject."""
    for finding in verdict.findings:
        if finding.role is Role.DECISIVE and finding.worst_strata and finding.worst_strata[0].log_e_harm > 0:
            worst = finding.worst_strata[0]
            yield plain(
                f"worst stratum of {finding.criterion}: {worst.stratum}, {worst.harm} harms and "
                f"{worst.benefit} benefits in {worst.n} pairs, e-value {e_value(worst.log_e_harm)}, "
                f"rejects from {e_value(held_to.strata)}"
            )


def correction_lines(verdict: Verdict) -> Iterator[Text]:
    """What people's labels say so far, where they do not suffice yet; else the reason says it."""
    for finding in verdict.findings:
        if finding.correction is not None and not finding.correction.suffices:
            yield plain(f"{finding.criterion}: {corrected(finding.correction)}", "dim")


def ends_line(verdict: Verdict, held_to: HeldTo) -> Iterator[Text]:
    """Where an undecided epoch stops looking, once that is fixed."""
    open_ends = [
        f"{finding.criterion} at {held_to.max_pairs[finding.criterion]:,} pairs"
        for finding in verdict.findings
        if finding.role is Role.DECISIVE
        and finding.decision is Decision.UNDECIDED
        and finding.criterion in held_to.max_pairs
    ]
    if open_ends:
        yield plain(f"not shown, if still undecided: {', '.join(open_ends)}")


def _age(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def ladder_view(reading: LadderReading) -> RenderableType:
    """A model's tiers from the baseline down, with the share of clients each serves."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("rung", justify="right")
    table.add_column("tier", no_wrap=True)
    table.add_column("serves", justify="right")
    table.add_column("state", no_wrap=True)
    table.add_column("summary", ratio=1)
    for rung, document in zip(reading.rungs, reading.document["rungs"], strict=True):
        style = "" if rung.decision is None else DECISION_STYLE[rung.decision]
        state = plain(rung.state, style)
        summary = plain("; ".join(part for part in (rung.summary, approved(document)) if part))
        table.add_row(str(rung.rung), plain(rung.tier), f"{rung.weight} %", state, summary)
    return Group(plain(f"{reading.model}  (route version {reading.route.version})", "bold"), table)


def approved(document: Document) -> str:
    """Who approved what, and until when; empty without an approval."""
    approval = document.get("approval")
    if not approval:
        return ""
    ends = "expired" if approval.get("expired") else "until"
    until = f", {ends} {approval['expires_at']}" if approval.get("expires_at") else ""
    artifact = str(approval.get("artifact") or "").removeprefix("sha256:")
    bound = f", artifact {artifact[:12]}" if artifact else ", of no named artifact"
    return f"approved by {approval['by']} at {approval['at']}{until}{bound}"


def route_change_view(change: RouteChange) -> RenderableType:
    """What was changed, and whether the proxies know."""
    line = plain(f"{change.model}: ", "bold")
    line.append("nothing changed, " if not change.changed else "")
    line.append_text(plain(f"{change.route.serving} serves (route version {change.route.version})"))
    line.append(
        "" if change.published else "\nnot published yet: Redis does not answer; the guard will publish it"
    )
    if told := approved(change.document):
        line.append_text(plain(f"\n{change.tier}: {told}"))
    for warning in change.warnings:
        line.append("\nwarning: ", style="yellow")
        line.append_text(plain(warning))
    return line


def intervention_view(document: Document) -> RenderableType:
    """What an admin's decision made of a tier."""
    line = plain(f"{document['model']} / {document['tier']}: ", "bold")
    line.append("" if document["changed"] else "nothing changed, ")
    skipped = "skipped, the tiers above do without it" if document["skipped"] else "not skipped"
    line.append_text(
        plain(
            f"{skipped}; attempt {document['attempt']}, alpha {document['alpha']:.4g} "
            f"(epoch {document['epoch'][:12]})"
        )
    )
    return line


def _cells(finding: Finding, *, wide: bool) -> Iterator[str | Text]:
    yield plain(_named(finding) if wide else finding.criterion)
    in_fewer = wide and finding.conversations != finding.n
    yield f"{finding.n} in {finding.conversations}" if in_fewer else str(finding.n)
    yield str(finding.harm)
    yield str(finding.benefit)
    yield "-" if finding.estimate is None else f"{100 * finding.estimate:+.2f}"
    yield _interval(100 * finding.interval.lower, 100 * finding.interval.upper, wide=wide)
    yield f"{100 * finding.margin:.3g} pp"
    decision = Text(finding.decision.value, style=DECISION_STYLE[finding.decision])
    if finding.warn:
        decision.append(" !", style="yellow")
    yield decision
    if wide:
        yield plain(_why(finding))


def _named(finding: Finding) -> str:
    """With what sets it apart from the criteria that decide."""
    return finding.criterion if finding.role is Role.DECISIVE else f"{finding.criterion} (shown)"


def _interval(lower: float, upper: float, *, wide: bool) -> str:
    """Both ends in percentage points; -100 and 100, which mean no evidence, without decimals."""
    low, high = (f"{end:+.0f}" if abs(end) >= 100 else f"{end:+.1f}" for end in (lower, upper))
    return f"{low} .. {high}" if wide else f"{low}..{high}"


def _why(finding: Finding) -> str:
    """The reason, and what is still missing where something is in sight."""
    if finding.more_pairs is None:
        return finding.reason
    return f"{finding.reason}; about {finding.more_pairs} more pairs if the tiers are equal"


def _asked(criterion: CriterionAsked) -> str:
    margin = f"{100 * criterion.margin:.3g} pp"
    return f"{criterion.criterion} within {margin}, at least {criterion.min_pairs} pairs"


def _outlook(criterion: CriterionAsked) -> str:
    if criterion.decision is not None and criterion.decision is not Decision.UNDECIDED:
        return f"would {criterion.decision.value}"
    if criterion.more_pairs is None:
        return "undecided"
    return f"about {criterion.more_pairs} more pairs"
