"""`tiergate proxy`: the data plane by itself."""

from __future__ import annotations

import logging

import typer

from service.cli.configuration import ConfigOption, load_or_exit


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(proxy)


def proxy(config: ConfigOption = None) -> None:
    """Run the reverse proxy until SIGTERM, then finish what is under way."""
    settings = load_or_exit(config)
    from service.proxy.run import run

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    raise typer.Exit(run(settings.proxy))
