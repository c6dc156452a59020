"""Watching a shadow job to its end: a bar on a terminal, else a line when something has changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from service.cli.asking import tell
from service.cli.gate import MAY_PASS
from service.client.jobs import OVER, job_view, state_line
from service.client.tables import plain

if TYPE_CHECKING:
    from service.client.connection import TiergateClient
    from service.client.readings import Document

NOT_WELL = 1
LOOK_SECONDS = 2.0
OUTAGE_SECONDS = 300.0
"""How long a watch waits for an API that does not answer: a job of an hour outlives its restart."""


def follow(client: TiergateClient, job: Document, *, detach: bool, as_json: bool) -> None:
    """Watch until it is over, with a bar on a terminal, else a line when something has changed."""
    name = job["job"]
    if detach:
        tell(
            job,
            lambda: plain(f"{name}: begun; `tiergate shadow status {name} --watch` shows it"),
            as_json=as_json,
        )
        return
    told = Console(stderr=True)
    try:
        ended = _bar(client, name, told) if told.is_terminal else _lines(client, name, told)
    except KeyboardInterrupt:
        told.print(plain(f"{name} goes on; `tiergate shadow cancel {name}` ends it"))
        raise typer.Exit(NOT_WELL) from None
    tell(ended, lambda: job_view(ended), as_json=as_json)
    if ended["state"] != "done":
        raise typer.Exit(NOT_WELL)


def _bar(client: TiergateClient, name: str, told: Console) -> Document:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    with Progress(*columns, console=told, transient=True) as progress:
        task = progress.add_task(name, total=1.0)

        def show(job: Document) -> None:
            progress.update(task, completed=job["progress"]["share"], description=f"{name} {state_line(job)}")

        def miss(problem: str) -> None:
            progress.update(task, description=f"{name} waiting for the API: {problem}")

        return _until_over(client, name, show, miss)


def _lines(client: TiergateClient, name: str, told: Console) -> Document:
    last = ""

    def show(job: Document) -> None:
        nonlocal last
        if (line := f"{job['state']} {job['part']} {job['progress']['blocks_done']}") != last:
            told.print(plain(f"{time.strftime('%H:%M:%S')}  {name} {state_line(job)}"), soft_wrap=True)
        last = line

    def miss(problem: str) -> None:
        nonlocal last
        if problem != last:
            told.print(plain(f"{time.strftime('%H:%M:%S')}  waiting for the API: {problem}"), soft_wrap=True)
        last = problem

    return _until_over(client, name, show, miss)


def _until_over(
    client: TiergateClient, name: str, show: Callable[[Document], None], miss: Callable[[str], None]
) -> Document:
    """The job at its end. What the API fails to answer is told, and raised once it has lasted too long."""
    from service.client.errors import AnswerUnreadable, ApiRefused, ApiUnreachable

    heard = time.monotonic()
    while True:
        try:
            job = client.shadow_job(name)
        except (ApiUnreachable, AnswerUnreadable, ApiRefused) as error:
            passes = not isinstance(error, ApiRefused) or error.status in MAY_PASS
            if not passes or time.monotonic() - heard > OUTAGE_SECONDS:
                raise
            miss(str(error))
        else:
            heard = time.monotonic()
            show(job)
            if job["state"] in OVER:
                return job
        time.sleep(LOOK_SECONDS)
