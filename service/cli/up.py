"""`tiergate up`: everything on this machine, until it is told to stop."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.configuration import ConfigOption, fail, load_or_exit
from service.cli.whereabouts import DEFAULT_URL

if TYPE_CHECKING:
    from service.launch import Running
    from service.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(up)


def up(
    config: ConfigOption = None,
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Start although no backend of a baseline answers.")
    ] = False,
) -> None:
    """Run proxy, API, workers and their stores on this machine until Ctrl-C or SIGTERM.

    Redis and the database are embedded unless the configuration or the environment names one. SIGHUP makes
    the proxy read its configuration again.
    """
    settings = load_or_exit(config)
    from service.launch import (
        Aside,
        PortUnusable,
        RedisUnusable,
        StartFailed,
        StateDirInUse,
        ToldToStop,
        everything,
        stop_signals,
    )
    from service.store.sql.database import StoreUnusable

    # A terminal that is stopped or gone must neither hold up what runs nor end it.
    tell = Aside(typer.echo)

    def say(text: str) -> None:
        tell(f"{time.strftime('%H:%M:%S')}  {text}")

    try:
        with stop_signals() as told:
            told.on_reload = lambda: say("everything is still starting, and reads its configuration now")
            _ask_backends(settings, go_on=no_check)
            with everything(settings, os.environ, say=say, hurry=told.hurry) as running:
                told.on_reload = lambda: _reload_proxy(running, say)
                tell(welcome(running))
                running.supervisor.wait()
    except ToldToStop:
        say("everything is stopped")
    except (PortUnusable, RedisUnusable, StartFailed, StateDirInUse, StoreUnusable) as error:
        raise fail(str(error)) from None
    except OSError as error:
        raise fail(f"{error.filename or 'this machine'}: {error.strerror}") from None
    finally:
        tell.settle()


def welcome(running: Running) -> str:
    """Where everything is."""
    elsewhere = (
        f"  shell      export TIERGATE_URL={running.api_url}\n" if running.api_url != DEFAULT_URL else ""
    )
    return (
        "\nTiergate runs.\n"
        f"  proxy      {running.proxy_url}/v1        base URL for clients\n"
        f"  dashboard  {running.api_url}/\n"
        f"  API        {running.api_url}/api/v1      documentation: {running.api_url}/docs\n"
        f"  metrics    {' '.join(running.metrics_urls)}\n"
        f"  token      {running.token_file}\n"
        f"{elsewhere}"
        f"  logs       {running.log_dir}\n"
        "Ctrl-C stops everything in order; a second one does not wait.\n"
    )


def _reload_proxy(running: Running, say: Callable[[str], None]) -> None:
    if running.supervisor.signal("proxy", signal.SIGHUP):
        say(
            f"the proxy reads its configuration again: {running.log_dir / 'proxy.log'} tells what came of it;"
        )
        say("the other parts keep theirs until everything is started again")
    else:
        say("the proxy is just being started again, and reads its configuration now")


def _ask_backends(settings: Settings, *, go_on: bool) -> None:
    from service.launch.ask import ask_all
    from service.launch.check import (
        Level,
        all_backends,
        backend_lines,
        dead_baselines,
        guarded_backends,
        setup_lines,
    )

    answers = ask_all(all_backends(settings), guarded_backends(settings))
    for line in [*backend_lines(settings, answers), *setup_lines(settings)]:
        if line.level is not Level.OK:
            typer.echo(str(line), err=True)
    if (dead := dead_baselines(settings, answers)) and not go_on:
        raise fail(
            f"no backend of the baseline of {', '.join(dead)} can be used, so nobody could be answered."
            " Correct that, or start anyway with --no-check"
        )
