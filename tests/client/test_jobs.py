from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console

from service.client.jobs import job_view, jobs_view, state_line

JOB: dict[str, Any] = {
    "job": "20260105-030000-5f0c3f",
    "model": "m",
    "state": "running",
    "part": "sweep",
    "actor": "ann",
    "cause": "request",
    "i_own_this_capacity": False,
    "ended_at": None,
    "reason": "",
    "remarks": [],
    "manifest": "a" * 64,
    "replay_of": None,
    "differences": [],
    "progress": {
        "share": 0.25,
        "blocks_done": 10,
        "blocks_expected": 40,
        "seconds_done": 300.0,
        "seconds_expected": 1200.0,
        "seconds_spent": 310.0,
        "seconds_budget": 3600.0,
        "tokens_spent": 12_345,
        "tokens_budget": None,
    },
    "findings": None,
    "blocks": [],
}


def shown(renderable: Any) -> str:
    told = StringIO()
    Console(file=told, width=120, color_system=None).print(renderable)
    return told.getvalue()


def test_who_waits_is_told_how_far_it_is_or_what_it_waits_for() -> None:
    assert state_line(JOB) == "running sweep block 10 of about 40, 15 min of load left"
    waiting = {**JOB, "state": "waiting"}
    assert "waiting for a load worker" in state_line(waiting)
    unopened = {**waiting, "progress": {**JOB["progress"], "blocks_expected": 0}}
    assert "waiting for the guard" in state_line(unopened)
    assert state_line({**JOB, "state": "done"}) == "done sweep block 10 of about 40"


def test_what_was_spent_stands_beside_the_budget_where_there_is_one() -> None:
    assert "25%: 10 of about 40 blocks, 5.17 min of load (budget 1 h), 12,345 tokens" in shown(job_view(JOB))


def test_reasons_remarks_and_differences_are_all_told() -> None:
    told = shown(
        job_view(
            {
                **JOB,
                "state": "aborted",
                "reason": "clients of m lose their SLO",
                "remarks": ["cost of w8a8: not reached"],
                "i_own_this_capacity": True,
                "replay_of": "b" * 64,
                "differences": ["policy: was p1, is p2"],
            }
        )
    )
    for words in (
        "aborted: clients of m lose their SLO",
        "cost of w8a8: not reached",
        "loads backends that serve clients",
        "repeats bbbbbbbbbbbb; 1 differences since then",
        "policy: was p1, is p2",
    ):
        assert words in told


def test_names_to_be_copied_are_whole_in_a_narrow_terminal() -> None:
    told = StringIO()
    ended = {**JOB, "state": "cancelled", "ended_at": "2026-01-05T03:04:05Z", "reason": "cancelled by bob"}
    Console(file=told, width=80, color_system=None).print(jobs_view({"jobs": [ended, JOB]}))
    row, *_ = [line for line in told.getvalue().splitlines() if line.startswith("20260105")]
    assert row.split() == ["20260105-030000-5f0c3f", "m", "cancelled", "sweep", "25%", "2026-01-05T03:04"]
    assert "20260105-030000-5f0c3f: cancelled by bob" in told.getvalue()
