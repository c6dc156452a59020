"""`tiergate proxy`: the data plane by itself."""

from __future__ import annotations

import os
import signal
from typing import Annotated

import typer

from service.cli.configuration import ConfigOption, load_or_exit


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(proxy)


def proxy(
    config: ConfigOption = None,
    pinned: Annotated[
        list[str] | None,
        typer.Option(hidden=True, help="A variable that `tiergate up` set, not whoever started that."),
    ] = None,
) -> None:
    """Run the reverse proxy until SIGTERM, then finish what is under way.

    SIGHUP makes it read its configuration again.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # one that comes too early must not end it
    settings = load_or_exit(config, judges=False)
    from service.proxy.config import ProxyConfig
    from service.proxy.processes.reloading import naming_what_is_pinned
    from service.proxy.processes.run import run
    from service.settings import load
    from service.settings.build import NO_REDIS

    if settings.redis_url == NO_REDIS and settings.redis_embedded and settings.proxy.mirroring.sample:
        typer.echo(
            "tiergate proxy: no Redis is named (store.redis, TIERGATE_REDIS_URL) and no `tiergate up` runs in"
            f" {settings.state_dir}: captures are dropped unless one is at {NO_REDIS}",
            err=True,
        )
    unpinned = {name: text for name, text in os.environ.items() if name not in (pinned or ())}
    before = load(settings.path, unpinned, judges=False).proxy if pinned else settings.proxy

    def reread() -> ProxyConfig:
        wanted = load(settings.path, os.environ, judges=False).proxy
        now = load(settings.path, unpinned, judges=False).proxy if pinned else wanted
        return naming_what_is_pinned(wanted, before=before, now=now)

    raise typer.Exit(run(settings.proxy, reread))
