"""What a terminal shows."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console, RenderableType

from service.client.listings import decisions_view, evidence_view, ledger_view
from service.client.readings import (
    CriterionAsked,
    HeldTo,
    VerdictReading,
    read_ladder,
    read_route_change,
)
from service.client.reasons import why_view
from service.client.tables import (
    VerdictTable,
    approved,
    gates_line,
    ladder_view,
    plain,
    route_change_view,
    verdict_view,
)
from service.decision.policy import Gate, Role
from service.decision.verdict import Decision, Finding, GateState, Interval, LogE, StratumHarm, Verdict

FINDING = Finding(
    criterion="structured_output",
    decision=Decision.REJECT,
    reason="structured_output: harm shown: e-value 900 >= 120",
    n=1200,
    conversations=1100,
    harm=40,
    benefit=4,
    estimate=0.03,
    interval=Interval(lower=0.0123, upper=0.0456, level=0.95, method="confidence sequence"),
    margin=0.01,
    log_e=LogE(noninferiority=-9.0, harm=6.8, warn=12.0),
    warn=True,
    more_pairs=None,
)
VERDICT = Verdict(
    model="org/model",
    tier="w4a16",
    decision=Decision.REJECT,
    reasons=(FINDING.reason,),
    findings=(FINDING, replace(FINDING, criterion="refusal", n=0, estimate=None, warn=False)),
    gates=dict.fromkeys(Gate, GateState.NOT_ASKED) | {Gate.QUALITY: GateState.FAILED},
    epoch="0123456789abcdef" * 4,
)
READING = VerdictReading(
    verdict=VERDICT,
    criteria=(CriterionAsked(criterion="refusal", margin=0.2, min_pairs=20),),
    production=(
        CriterionAsked(
            criterion="refusal", margin=0.01, min_pairs=300, decision=Decision.UNDECIDED, more_pairs=481
        ),
    ),
    evaluated_at="2026-01-01T00:00:00Z",
    held_to=HeldTo(accept=3.0, harm=4.8, strata=9.6, max_pairs={"structured_output": 8020}, age_seconds=3e5),
    document={},
)


def printed(what: RenderableType, *, width: int = 160) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(what, crop=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_every_number_of_a_finding_is_in_its_row() -> None:
    text = printed(VerdictTable(VERDICT))
    header, row = (next(line for line in text.splitlines() if word in line) for word in ("harms", "1200"))
    for word in (
        "criterion",
        "pairs",
        "harms",
        "benefits",
        "diff.",
        "95% interval",
        "margin",
        "decision",
        "reason",
    ):
        assert word in header
    for number in ("1200 in 1100", "40", "4", "+3.00", "+1.2 .. +4.6", "1 pp", "reject !", "e-value 900"):
        assert number in row


@pytest.mark.parametrize("width", [80, 100, 119])
def test_a_narrow_terminal_cuts_nothing_and_lists_reasons_below(width: int) -> None:
    widest = replace(
        FINDING,
        criterion="long_context_recall",
        decision=Decision.UNDECIDED,
        reason="not yet shown",
        estimate=-0.9167,
        interval=replace(FINDING.interval, lower=-0.9876, upper=-0.5432),
        margin=0.125,
    )
    nothing = replace(widest, n=0, estimate=None, interval=replace(FINDING.interval, lower=-1.0, upper=1.0))
    text = printed(VerdictTable(replace(VERDICT, findings=(widest, nothing))), width=width)
    assert "…" not in text
    assert "undecided !" in text
    assert "-98.8..-54.3" in text
    assert "-100..+100" in text
    assert "\nlong_context_recall: not yet shown" in text


def test_a_narrow_terminal_says_no_reason_twice() -> None:
    said = "structured_output: harm shown: e-value 900 >= 120"
    findings = (replace(FINDING, reason="harm shown: e-value 900 >= 120"),)
    reading = replace(READING, verdict=replace(VERDICT, reasons=(said,), findings=findings))
    assert printed(verdict_view(reading), width=80).count(said) == 1


def test_without_pairs_there_is_a_dash_and_no_number() -> None:
    row = next(line for line in printed(VerdictTable(VERDICT)).splitlines() if line.startswith("refusal"))
    assert " - " in row


@pytest.mark.parametrize("width", [80, 160])
def test_an_undecided_criterion_says_how_many_pairs_are_missing(width: int) -> None:
    undecided = replace(FINDING, decision=Decision.UNDECIDED, reason="not yet shown", more_pairs=321)
    text = printed(VerdictTable(replace(VERDICT, findings=(undecided,))), width=width)
    assert "not yet shown; about 321 more pairs if the tiers are equal" in " ".join(text.split())


def test_load_runs_are_told_with_their_age() -> None:
    passed = {"shown": "passed", "counts": True, "age_seconds": 3 * 86400.0, "run": 2, "reason": "p .001"}
    failed = {**passed, "shown": "failed", "counts": False, "age_seconds": 20 * 86400.0, "run": None}
    document = {"measured": {"slo": passed, "money": failed}, "reasons": []}
    text = printed(verdict_view(replace(READING, document=document)))
    assert "slo: passed, load run 3 d ago, run 2 of the epoch: p .001" in text
    assert "money: too old to count, load run 20 d ago: p .001" in text
    said = {**document, "reasons": ["slo: p .001 (load run 3 d ago)"]}
    assert "slo: passed" not in printed(verdict_view(replace(READING, document=said)))


def test_gates_say_what_a_verdict_does_not_rest_on() -> None:
    assert printed(gates_line(VERDICT)).strip() == (
        "gates: quality failed  control not asked  coverage not asked  attribution not asked  slo not asked  "
        "money not asked"
    )


WORST = StratumHarm(
    stratum="32k-128k/free/whole", n=80, conversations=80, harm=9, benefit=1, estimate=0.1, log_e_harm=7.0
)


def reading_of(finding: Finding, **held_to: Any) -> VerdictReading:
    return replace(
        READING,
        verdict=replace(VERDICT, findings=(finding,)),
        held_to=replace(READING.held_to, **held_to),
    )


def test_the_worst_stratum_stands_with_both_numbers_where_there_is_evidence_of_harm() -> None:
    text = printed(verdict_view(reading_of(replace(FINDING, worst_strata=(WORST,)))))
    assert (
        "worst stratum of structured_output: 32k-128k/free/whole, 9 harms and 1 benefits in 80 pairs, "
        "e-value 1100, rejects from 14800"
    ) in text
    quiet = replace(FINDING, worst_strata=(replace(WORST, log_e_harm=-0.1),))
    assert "worst stratum" not in printed(verdict_view(reading_of(quiet)))


def test_an_open_criterion_says_where_it_ends_and_the_epoch_how_old_it_is() -> None:
    open_one = replace(FINDING, decision=Decision.UNDECIDED)
    text = printed(verdict_view(reading_of(open_one)))
    assert "not shown, if still undecided: structured_output at 8,020 pairs" in text
    assert "3 days old" in text
    assert "not shown" not in printed(verdict_view(reading_of(FINDING)))
    assert " old," not in printed(verdict_view(reading_of(open_one, age_seconds=None)))


@pytest.mark.parametrize("width", [80, 160])
def test_a_criterion_that_only_informs_is_told_apart(width: int) -> None:
    shown = replace(FINDING, role=Role.SHOWN, reason="harmed")
    text = printed(VerdictTable(replace(VERDICT, findings=(shown,))), width=width)
    assert "structured_output (shown)" in text


def test_strata_tenants_and_engines_are_told_worst_first() -> None:
    stratum = {"evaluator": "refusal", "n": 80, "harm": 9, "benefit": 1, "estimate": 0.1}
    tenant = {"evaluator": "refusal", "share": 0.9, "harm": 3, "log_e_without": 1.0, "warn": True}
    document = {
        "model": "m",
        "tier": "t",
        "tallies": [],
        "control": [],
        "coverage": {"traffic": {}, "evidence": {}},
        "attribution": {
            "differences": ["engine version: 0.9 and 0.10"],
            "unsettled": None,
            "not_told": ["chat template"],
        },
        "strata": [
            {**stratum, "stratum": "language=zh", "log_e_harm": 7.0},
            *({**stratum, "stratum": f"turns={number}", "log_e_harm": None} for number in range(20)),
        ],
        "tenants": [
            {**tenant, "tenant": "a" * 32, "passes_without": False},
            {**tenant, "tenant": "", "passes_without": True, "warn": False},
        ],
        "pairs": [],
    }
    text = printed(evidence_view(document))
    for part in (
        "attribution: engine version: 0.9 and 0.10",
        "not told, so not compared: chat template",
        "at most 15",
        "1 more with --json",
        "does not pass, harmed itself",
        "(none)",
    ):
        assert part in text, part
    assert text.index("language=zh") < text.index("turns=0")


def test_a_command_to_copy_is_never_wrapped_and_what_a_model_wrote_is_not_obeyed() -> None:
    command = "tiergate stats --n 1000000 --harm 12345 --benefit 12345 --margin 0.01 --alpha 0.03039635509"
    document = {
        "model": "m",
        "tier": "t",
        "decision": "reject",
        "steps": [
            {"title": "decision", "sentence": "reject: \x1b[2J[bold]", "numbers": {"E": 1.23456789, "n": 12}}
        ],
        "worst_pairs": [
            {
                "criterion": "refusal",
                "pairs": 3,
                "labels": [{"baseline": f"l{n}", "candidate": "full", "pairs": 1} for n in range(5)],
                "strata": [{"stratum": "language=zh", "pairs": 3}],
                "examples": [
                    {
                        "stratum": "language=zh",
                        "baseline_label": "comply",
                        "candidate_label": "full",
                        "baseline_passed": True,
                        "candidate_passed": False,
                        "baseline_reason": "",
                        "candidate_reason": "it says \x1b[31mno",
                        "capture_id": "c-1",
                    }
                ],
            },
            {"criterion": "other", "pairs": 0, "labels": [], "strata": [], "examples": []},
        ],
        "recompute": [{"what": "again", "command": command}],
        "epoch": "e" * 64,
        "attempt": 2,
        "policy_digest": "p" * 64,
        "evaluated_at": "2026-01-01T00:00:00Z",
    }
    text = printed(why_view(document), width=60)
    assert command in text
    assert "\x1b[2J" not in text
    assert "\x1b[31m" not in text
    assert "E = 1.23457" in text
    assert "and 2 more" in text
    assert "worst pairs of other" not in text


def test_the_policy_stands_beside_production_s() -> None:
    text = printed(verdict_view(READING))
    assert "refusal within 20 pp, at least 20 pairs" in text
    assert "refusal within 1 pp, at least 300 pairs, about 481 more pairs" in text
    assert "epoch 0123456789ab" in text


def test_what_a_model_wrote_is_shown_and_never_obeyed() -> None:
    hostile = replace(
        FINDING, reason="[bold]x[/bold] \x1b[2J\x1b]0;title\x07 \r gone \u202e txt [link=file:///]"
    )
    text = printed(VerdictTable(replace(VERDICT, findings=(hostile,))), width=300)
    assert "[bold]x[/bold]" in text
    assert "\\x1b[2J" in text
    for control in ("\x1b[2J", "\x07", "\r", "\u202e"):
        assert control not in text


def test_plain_keeps_other_scripts_and_line_breaks() -> None:
    assert plain("订单 🙂\nzwei").plain == "订单 🙂\nzwei"


def test_a_ladder_and_a_change_are_readable() -> None:
    route: dict[str, Any] = {"version": 3, "serving": "w8a8", "weights": {"w8a8": 100}}
    rung = {
        "tier": "w8a8",
        "rung": 1,
        "state": "approved",
        "weight": 100,
        "summary": "accept.",
        "decision": "accept",
    }
    ladder = printed(ladder_view(read_ladder({"model": "m", "route": route, "rungs": [rung]})))
    assert "route version 3" in ladder
    assert "100 %" in ladder
    document = {
        "model": "m",
        "tier": "w8a8",
        "changed": True,
        "route": route,
        "published": False,
        "warnings": ["w!"],
    }
    change = printed(route_change_view(read_route_change(document)))
    assert "w8a8 serves (route version 3)" in change
    assert "not published yet" in change
    assert "warning: w!" in change
    same = printed(route_change_view(read_route_change({**document, "changed": False, "published": True})))
    assert "nothing changed" in same
    assert "not published" not in same


def test_lists_are_printed_from_the_api_s_json() -> None:
    tally = {"evaluator": "refusal", "n": 9, "harm": 1, "benefit": 2, "both_failed": 3, "not_counted": 4}
    pair = {
        "at": "2026",
        "evaluator": "refusal",
        "baseline_label": "comply",
        "candidate_label": "full",
        "baseline_passed": True,
        "candidate_passed": False,
        "baseline_reason": "",
        "candidate_reason": "it says no",
        "unscored_reason": "",
    }
    evidence = {
        "model": "m",
        "tier": "t",
        "tallies": [{**tally, "unscored": {"shadow": 5}}],
        "control": None,
        "coverage": {"traffic": {"short": 7}, "evidence": {}},
        "attribution": None,
        "strata": [],
        "tenants": [],
        "pairs": [pair],
    }
    text = printed(evidence_view(evidence))
    assert "shadow 5" in text
    assert "no control can run" in text
    assert "it says no" in text
    entry = {
        "seq": 4,
        "at": "2026",
        "actor": "ci",
        "action": "approve",
        "tier": None,
        "detail": {},
        "digest": "d" * 64,
    }
    log = printed(decisions_view({"entries": [entry], "chain": "broken", "broken_at": 4, "next_after": 4}))
    assert "broken at entry 4" in log
    assert "--after 4" in log
    account = {
        "counters": {"seen": 3, "skipped": {"too_large": 1}},
        "pairs": [],
        "balanced": False,
        "problems": ["one is missing"],
    }
    ledger = printed(ledger_view(account))
    assert "skipped too_large" in ledger
    assert "does not add up" in ledger
    assert "one is missing" in ledger


def test_an_approval_against_the_verdict_is_seen_in_the_list() -> None:
    entry = {
        "seq": 1,
        "at": "2026-11-29T16:16:51Z",
        "actor": "operator",
        "action": "approve",
        "tier": "w4a16",
        "detail": {"override": True, "reason": "we ship today"},
        "digest": "d" * 64,
    }
    log = {"entries": [entry], "chain": "intact", "broken_at": None, "next_after": None}
    text = printed(decisions_view(log), width=80)
    assert "2026-11-29T16:16:51Z" in text
    assert "override: we" in text


def test_lists_cut_nothing_off_in_a_narrow_terminal() -> None:
    pair = {
        "model": "organisation/model",
        "tier": "w4a16",
        "arm": "candidate",
        "evaluator": "long_context_recall",
        "due": 123456,
        "scored": 123456,
        "unscored": {},
        "not_applicable": 0,
        "over_budget": 0,
    }
    account = {"counters": {}, "pairs": [pair], "balanced": True, "problems": []}
    narrow = printed(ledger_view(account), width=60)
    assert "…" not in narrow
    at_80 = printed(ledger_view(account), width=80)
    # The place may take two lines, a criterion's name and its numbers stand in one.
    row = next(line for line in at_80.splitlines() if "long_context_recall" in line)
    assert row.split() == ["long_context_recall", "123456", "123456", "0", "0", "0"]


@pytest.mark.parametrize("width", [80, 160])
def test_a_criterion_that_is_only_shown_and_met_nothing_takes_no_line(width: int) -> None:
    idle = replace(FINDING, criterion="tool_use", role=Role.SHOWN, n=0, conversations=0, harm=0)

    def table(*findings: Finding) -> str:
        return printed(VerdictTable(replace(VERDICT, findings=findings)), width=width)

    assert "tool_use" not in table(FINDING, idle)
    assert "tool_use" in table(FINDING, replace(idle, role=Role.DECISIVE))
    assert "tool_use" in table(FINDING, replace(idle, n=1, conversations=1))


def test_an_approval_is_shown_with_its_end_and_what_it_is_bound_to() -> None:
    approval = {
        "by": "ci",
        "at": "2026-01-01T12:00:00Z",
        "expires_at": "2026-01-31T12:00:00Z",
        "expired": False,
        "artifact": "sha256:" + "ab" * 32,
    }
    assert approved({"approval": approval}) == (
        "approved by ci at 2026-01-01T12:00:00Z, until 2026-01-31T12:00:00Z, artifact abababababab"
    )
    assert ", expired 2026-01-31" in approved({"approval": {**approval, "expired": True}})
    lasting = approved({"approval": {**approval, "expires_at": None, "artifact": None}})
    assert lasting == "approved by ci at 2026-01-01T12:00:00Z, of no named artifact"
    assert approved({"approval": None}) == approved({}) == ""
