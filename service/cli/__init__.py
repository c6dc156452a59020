"""`tiergate`: every command. One module a group; each adds its commands in `register`.

`setup` init, check, schema, token · `up` · `demo` · `proxy` · `api` · `gate` the API's questions ·
`offline` stats, plan · `score`. A module imports what is slow to load (scipy, SQLAlchemy, pydantic) inside
the command that needs it, so that `tiergate --help` and a typing mistake are answered at once.
"""

from __future__ import annotations

import importlib
import importlib.util

import typer

GROUPS = ("setup", "up", "demo", "proxy", "api", "gate", "offline", "score")

app = typer.Typer(
    name="tiergate",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Decide from real traffic whether a quantized tier may replace the one that serves now.",
)

for _group in GROUPS:
    if importlib.util.find_spec(f"service.cli.{_group}") is not None:
        importlib.import_module(f"service.cli.{_group}").register(app)


def main() -> None:
    """The console script."""
    app()
