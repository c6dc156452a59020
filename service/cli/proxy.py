"""`tiergate proxy`: the data plane by itself."""

from __future__ import annotations

import logging
import os
import signal

import typer

from service.cli.configuration import ConfigOption, load_or_exit


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(proxy)


def proxy(config: ConfigOption = None) -> None:
    """Run the reverse proxy until SIGTERM, then finish what is under way.

    SIGHUP makes it read its configuration again.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # one that comes too early must not end it
    settings = load_or_exit(config)
    from service.proxy.config import ProxyConfig
    from service.proxy.processes.run import run
    from service.settings import load

    def reread() -> ProxyConfig:
        return load(settings.path, os.environ).proxy

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    raise typer.Exit(run(settings.proxy, reread))
