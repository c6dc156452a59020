"""`tiergate`: every command. One module a group; each adds its commands in `register`."""

from __future__ import annotations

import typer

app = typer.Typer(
    name="tiergate",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Decide from real traffic whether a quantized tier may replace the one that serves now.",
)


def main() -> None:
    """The console script."""
    app()
