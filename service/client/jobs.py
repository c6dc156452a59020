"""Shadow jobs for a terminal, from the API's JSON: how far each is, what its blocks showed, what it found."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table

from service.client.readings import Document
from service.client.tables import plain
from service.decision.wording import span

STATE_STYLE = {
    "waiting": "dim",
    "running": "yellow",
    "done": "green",
    "cancelled": "dim",
    "aborted": "bold red",
    "failed": "bold red",
}
OVER = frozenset({"done", "cancelled", "aborted", "failed"})
SHOWN_STYLE = {"passed": "green", "failed": "bold red", "undecided": "yellow"}


def jobs_view(document: Document) -> RenderableType:
    """One line a job, the latest first."""
    if not document["jobs"]:
        return plain(
            "no shadow job yet: `tiergate shadow run MODEL` begins one, `shadow_job.cron` does so by itself"
        )
    table = _table(
        "job", "model", "state", "part", "done", "ended", whole=("job", "state", "part", "done", "ended")
    )
    reasons: list[RenderableType] = []
    for job in document["jobs"]:
        table.add_row(
            plain(job["job"]),
            plain(job["model"]),
            plain(job["state"], STATE_STYLE.get(job["state"], "")),
            plain(job["part"]),
            plain(f"{job['progress']['share']:.0%}"),
            plain((job["ended_at"] or "")[:16]),
        )
        if job["reason"]:
            reasons.append(plain(f"{job['job']}: {job['reason']}"))
    return Group(table, *reasons)


def job_view(document: Document) -> RenderableType:
    """How far it is, its blocks, what it found, and what is to be known about it."""
    return Group(*_job(document))


def state_line(job: Document) -> str:
    """One job in a line: for a person who waits, also for what he has to see to."""
    progress = job["progress"]
    if job["state"] == "waiting":
        if not progress["blocks_expected"]:
            return "waiting for the guard, which opens it within seconds"
        worker = "`celery -A workers.app worker -Q load -c 1`"
        return f"waiting for a load worker: `tiergate up` has one, else {worker}"
    done, expected = progress["blocks_done"], progress["blocks_expected"]
    told = f"{job['state']} {job['part']} block {done} of about {expected}"
    left = max(0.0, progress["seconds_expected"] - progress["seconds_done"])
    return told if job["state"] in OVER else f"{told}, {span(left)} of load left"


def ending_lines(job: Document) -> Iterator[str]:
    """What a person is told at the end."""
    if job["reason"]:
        yield f"{job['state']}: {job['reason']}"
    yield from job["remarks"]


def _job(job: Document) -> Iterator[RenderableType]:
    begun = f"{job['job']}: {job['model']}, {job['state']}; begun by {job['actor']} ({job['cause']})"
    yield plain(begun, STATE_STYLE.get(job["state"], "bold"))
    yield plain(state_line(job) if job["state"] == "waiting" else _spent(job["progress"]))
    if job["i_own_this_capacity"]:
        yield plain(
            "it loads backends that serve clients, and ends at the first breach of their SLO", "yellow"
        )
    for line in ending_lines(job):
        yield plain(line, "yellow")
    if job["replay_of"] is not None:
        yield plain(f"repeats {job['replay_of'][:12]}; {len(job['differences'])} differences since then")
        for difference in job["differences"]:
            yield plain(f"  {difference}")
    if job.get("blocks"):
        yield _blocks(job["blocks"])
    yield from _findings(job["findings"] or {})
    yield plain(f"manifest {job['manifest'][:12]}: tiergate shadow manifest {job['job']}")


def _spent(progress: Mapping[str, Any]) -> str:
    budget = progress["seconds_budget"]
    tokens = progress["tokens_budget"]
    return (
        f"{progress['share']:.0%}: {progress['blocks_done']} of about {progress['blocks_expected']} blocks, "
        f"{span(progress['seconds_spent'])} of load{'' if budget is None else f' (budget {span(budget)})'}, "
        f"{progress['tokens_spent']:,} tokens{'' if tokens is None else f' (budget {tokens:,})'}"
    )


def _blocks(blocks: list[Document]) -> Table:
    table = _table("block", "part", "tier", "load", "met SLO", "tok/s", "TTFT P95", "TPOT P95", "state")
    for block in blocks:
        rate = block["rate"]
        load = f"{block['concurrency']} at once" if rate is None else f"{rate:.3g}/s"
        offered = block["offered"]
        # The whole reasons, with their numbers, are in --json and in the report.
        told = ", ".join(reason.split(":")[0] for reason in block["invalid"] or [block["state"]])
        table.add_row(
            plain(block["number"]),
            plain(block["part"]),
            plain(block["tier"]),
            plain(load),
            plain("" if offered is None else f"{block['passed']} of {offered}"),
            plain(_number(block["goodput"], "{:.1f}")),
            plain(_number(block["ttft_p95"], "{:.3f} s")),
            plain(_number(block["tpot_p95"], "{:.4f} s")),
            plain(told if block["attempts"] < 2 else f"{told} (attempt {block['attempts']})"),
        )
    return table


def _findings(findings: Mapping[str, Any]) -> Iterator[RenderableType]:
    for gate in findings.get("gates", ()):
        line = f"{gate['gate']} of {gate['tier']}: {gate['shown']}: {gate['reason']}"
        yield plain(line, SHOWN_STYLE.get(gate["shown"], ""))
    for best in findings.get("best", ()):
        yield plain(f"best rate of {best['tier']}: {best['told']}")
    for most in findings.get("concurrency", ()):
        yield plain(f"concurrency of {most['tier']}: {most['told']}")


def _number(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def _table(*names: str, whole: Collection[str] = ()) -> Table:
    """Columns of `whole` are never folded: what is to be copied, and what is read at a glance."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in names:
        table.add_column(name, overflow="fold", no_wrap=name in whole)
    return table
