"""One run of the demo, from models to verdicts, in a directory of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from service.client.connection import TiergateClient
from service.client.errors import ClientError
from service.demo.configuration import configuration, write_configuration
from service.demo.driver import Driver
from service.demo.llama_server import command
from service.demo.models import ModelFile, cache_dir, prepare
from service.demo.places import listen_addresses, own_environ, run_directory
from service.demo.plan import CLIENT_MODEL, DemoPlan
from service.demo.prompt import Prompt
from service.demo.published import SMOLLM2, Source
from service.demo.report import Timings, report, write_report
from service.demo.screen import print_addresses, print_verdicts, progress
from service.demo.tiers import Scheme
from service.demo.walk import WalkBroken, Walked, walk
from service.demo.workload import workload
from service.launch import (
    Part,
    Running,
    StopSignals,
    everything,
    free_port,
    http_ok,
)
from service.settings import load


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the command line asked for."""

    plan: DemoPlan
    seed: int
    stay: bool
    """Whether to keep everything running after the verdicts."""
    report_to: Path | None
    source: Source = SMOLLM2


def run(wanted: Wanted, environ: Mapping[str, str], told: StopSignals, console: Console) -> None:
    """The whole demo; returns when told to stop, or after the verdicts when it is not to stay.

    Raises `ModelUnavailable`, `WalkBroken`, or what `everything` and the client raise.
    """
    plan, say = wanted.plan, _sayer(console)
    cache, began = cache_dir(environ), time.monotonic()
    models = prepare([tier.weights for tier in plan.ladder], cache, say, source=wanted.source)
    prepared = time.monotonic()
    prompts = workload(plan.load, wanted.seed)
    with run_directory(cache / "demo") as directory:
        ports = {tier.name: free_port() for tier in plan.ladder}
        text = configuration(plan, models, ports, listen_addresses(say))
        settings = load(write_configuration(directory, text), own_environ(environ))
        say(f"starting {len(plan.ladder)} llama.cpp servers, and Tiergate around them")
        with everything(
            settings,
            own_environ(environ),
            say=_quietly(say),
            hurry=told.hurry,
            extra_parts=_backends(plan, models, ports),
        ) as running:
            started = time.monotonic()
            say(f"everything runs; sending at most {len(prompts)} requests to {running.proxy_url}")
            with _client(running) as client:
                try:
                    walked = _walk(plan, prompts, running, client, console)
                except (ClientError, WalkBroken):
                    say(f"the logs are kept in {running.log_dir}")
                    raise
            timings = Timings(
                prepare=round(prepared - began, 1),
                start=round(started - prepared, 1),
                traffic=round(time.monotonic() - started, 1),
            )
            print_verdicts(console, walked, plan)
            if wanted.report_to is not None:
                content = report(
                    plan,
                    walked,
                    source=wanted.source,
                    models=models,
                    prompts=prompts,
                    seed=wanted.seed,
                    timings=timings,
                    configuration=text,
                    evaluators=settings.evaluators,
                )
                say(f"wrote {write_report(wanted.report_to, content)}")
            if wanted.stay:
                print_addresses(console, running)
                running.supervisor.wait()


def _walk(
    plan: DemoPlan, prompts: tuple[Prompt, ...], running: Running, client: TiergateClient, console: Console
) -> Walked:
    with (
        Driver(prompts, proxy_url=running.proxy_url, model=CLIENT_MODEL, clients=plan.clients) as driver,
        progress(console, plan) as show,
    ):
        return walk(plan, driver, client, show=show)


def _client(running: Running) -> TiergateClient:
    return TiergateClient(running.api_url, running.token_file.read_text(encoding="ascii").strip())


def _backends(
    plan: DemoPlan, models: Mapping[Scheme, ModelFile], ports: Mapping[str, int]
) -> tuple[Part, ...]:
    return tuple(
        Part(
            name=f"llama-{tier.name}",
            command=command(models[tier.weights].path, port=ports[tier.name], name=CLIENT_MODEL, kv=tier.kv),
            ready=http_ok(f"http://127.0.0.1:{ports[tier.name]}/health"),
            advice="The demo needs about 700 MB of free memory per tier; --quick has the fewest.",
        )
        for tier in plan.ladder
    )


def _sayer(console: Console) -> Callable[[str], None]:
    def say(text: str) -> None:
        console.print(f"{time.strftime('%H:%M:%S')}  {text}", highlight=False, markup=False, soft_wrap=True)

    return say


def _quietly(say: Callable[[str], None]) -> Callable[[str], None]:
    """Leaves out the parts that start as they should, and tells once that everything stops."""
    stopping = False

    def quietly(text: str) -> None:
        nonlocal stopping
        if text.startswith("stopping "):
            if not stopping:
                say("stopping everything, which takes some seconds; Ctrl-C does not wait")
            stopping = True
        elif not text.endswith(" is ready"):
            say(text)

    return quietly
