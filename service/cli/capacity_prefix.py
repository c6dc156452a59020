"""`tiergate capacity prefix` and `replay`: what a prefix cache saves, and what one of another size would."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.capacity_stored import captured_prompts, observed_window
from service.cli.configuration import ConfigOption, JsonOption, fail

if TYPE_CHECKING:
    from service.capacity.prefix_gate import Window
    from service.capacity.prefix_replay import Prompt

WRONG = 2
ONE_SOURCE = "give metrics pages, or both --prefill-tokens and --reused-tokens, or --observed MODEL TIER"


def register(group: typer.Typer) -> None:
    """Add the commands to their group."""
    group.command(epilog="Docs: docs/capacity.md")(prefix)
    group.command(epilog="Docs: docs/capacity.md")(replay)


def prefix(
    pages: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PAGE", help="Metrics pages of one engine, oldest first, evenly spaced."),
    ] = None,
    hours: Annotated[
        float | None,
        typer.Option(
            help="From the first page to the last; else as their files were written. Of numbers: 24."
        ),
    ] = None,
    prefill_tokens: Annotated[
        int | None, typer.Option(min=0, help="Instead of pages: looked up in that time.")
    ] = None,
    reused_tokens: Annotated[int | None, typer.Option(min=0, help="Instead of pages: found.")] = None,
    prefill_share: Annotated[
        float | None, typer.Option(help="Prefill time by prefill and decode time, where pages do not tell.")
    ] = None,
    evictions: Annotated[int | None, typer.Option(min=0, help="Blocks pushed out, where known.")] = None,
    requests: Annotated[int | None, typer.Option(min=0, help="In that time.")] = None,
    requests_hit: Annotated[int | None, typer.Option(min=0, help="Of them, that reused anything.")] = None,
    prefix_tokens: Annotated[int | None, typer.Option(min=0, help="Of a typical shared prefix.")] = None,
    prefixes: Annotated[int | None, typer.Option(min=0, help="Distinct ones.")] = None,
    concurrency: Annotated[float | None, typer.Option(min=0, help="Requests at once, typically.")] = None,
    observed: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="MODEL TIER",
            help="Instead of pages: the last 24 hours of a tier, as the guard kept them.",
        ),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell whether a prefix cache is worth its memory, from a day of counters.

    The rate is reused by looked-up *tokens*: of two requests that hit, one may reuse 16 tokens and one 8,000.
    Below 25 % switch it off; 25 to 30 is noise; 30 to 85 gains in proportion; above 85 more cache gains
    little; above 60 with prefill above 40 % of the time the traffic deserves a pool of its own.

    Exit status: 0 judged, 2 wrong command line or pages that tell of no prefix cache, 3 not a day yet.

    \b
    Two pages of an engine, a day apart:
      curl -s http://127.0.0.1:8000/metrics > monday.prom    # and a day later > tuesday.prom
      tiergate capacity prefix monday.prom tuesday.prom --prefix-tokens 1800 --prefixes 40 --concurrency 24
    From numbers of your own:
      tiergate capacity prefix --prefill-tokens 9000000 --reused-tokens 5600000 --prefill-share 0.45
    The last day of a tier that Tiergate watches, with what captured prompts have in common:
      tiergate capacity prefix --observed my-model bf16
    """
    from service.capacity.prefix_gate import WINDOW_HOURS, Advice, Window, judge
    from service.cli.capacity_prefix_views import print_judged, window_document

    numbers = (prefill_tokens, reused_tokens)
    try:
        if pages:
            if observed is not None or any(each is not None for each in numbers):
                raise ValueError(f"{ONE_SOURCE}, not several")
            window = _window(pages, hours)
        elif observed is not None:
            if any(each is not None for each in numbers):
                raise ValueError(f"{ONE_SOURCE}, not several")
            window = observed_window(config, *observed)
        elif prefill_tokens is None or reused_tokens is None:
            raise ValueError(ONE_SOURCE)
        else:
            window = Window(
                hours=WINDOW_HOURS if hours is None else hours,
                prefill_tokens=prefill_tokens,
                reused_tokens=reused_tokens,
                prefill_share=None,
            )
        window = replace(
            window,
            prefill_share=window.prefill_share if prefill_share is None else prefill_share,
            evictions=window.evictions if evictions is None else evictions,
            requests=requests,
            requests_hit=requests_hit,
            prefix_tokens=window.prefix_tokens if prefix_tokens is None else prefix_tokens,
            prefixes=window.prefixes if prefixes is None else prefixes,
            concurrency=window.concurrency if concurrency is None else concurrency,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    judged = judge(window)
    if as_json:
        typer.echo(json.dumps(window_document(window, judged), indent=2, allow_nan=False))
    else:
        print_judged(window, judged)
    if judged.advice is Advice.WAIT:
        raise typer.Exit(3)


def _window(pages: list[Path], hours: float | None) -> Window:
    from service.capacity.prefix_gate import WINDOW_HOURS, window_of
    from service.engines.stages import prefix_reading

    readings = []
    for path in pages:
        reading = prefix_reading(_read(path, "prefix"))
        if reading is None:
            raise fail(
                f"tiergate capacity prefix: {path} tells of no prefix cache (vLLM, SGLang and llama.cpp do)",
                WRONG,
            )
        readings.append(reading)
    if len(pages) > 1 and hours is None:
        hours = _apart(pages[0], pages[-1])
    return window_of(readings, hours=WINDOW_HOURS if hours is None else hours)


def _apart(first: Path, last: Path) -> float:
    """Hours between the writing of two files, to a tenth: who fetches a page every day is seconds off."""
    hours = round((last.stat().st_mtime - first.stat().st_mtime) / 3600, 1)
    if hours <= 0:
        raise ValueError(f"{first} and {last} do not tell how far apart they were fetched: give --hours")
    return hours


def replay(
    traces: Annotated[
        list[Path] | None,
        typer.Argument(metavar="TRACE", help="Mooncake's JSON lines with hash_ids; one file a tenant."),
    ] = None,
    block: Annotated[int, typer.Option(min=1, help="Tokens of a block of the cache.")] = 16,
    unit: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens that one hash of the trace stands for; 512, as Mooncake's."),
    ] = None,
    token_bytes: Annotated[
        int | None, typer.Option(min=1, help="Of the KV cache, from `capacity kv`: sizes in GiB too.")
    ] = None,
    pool: Annotated[
        int | None,
        typer.Option(min=1, help="Tokens of a cache, to compare it with one for each tenant."),
    ] = None,
    captured: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Instead of traces: the captured prompts of a model.")
    ] = None,
    across_tenants: Annotated[
        bool, typer.Option(help="Tenants share what their prompts have in common, as engines do by default.")
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replay a trace through an LRU prefix cache of every size, and print the hit-rate curve and its knee.

    Nothing is sent anywhere. The rate is of tokens; hits per request are told beside it, since they mislead.
    A live cache also holds what is being answered: take the room of running requests off your memory first.

    Captured prompts are replayed by keyed hashes of their beginnings, which workers keep (`corpus.prefixes`):
    no text. Of a sample of traffic, sizes are told for all of it.

    Exit status: 0 replayed, 2 wrong command line, or no trace with hashes of prefixes, 3 nothing captured.

    \b
    The curve, with the memory it takes of a model of 147,456 bytes a token:
      tiergate capacity replay conversation_trace.jsonl --token-bytes 147456
    Two tenants in a pool of 200,000 tokens, and each in its part of it:
      tiergate capacity replay chat.jsonl batch.jsonl --pool 200000
    What was captured of a model's own traffic, tenant by tenant:
      tiergate capacity replay --captured my-model --pool 200000
    """
    from service.capacity.prefix_replay import of_all_traffic, split_of_all_traffic, split_pools
    from service.capacity.prefix_replay import replay as through
    from service.cli.capacity_prefix_views import print_captured, print_replay, replay_document
    from service.traces import BLOCK_TOKENS
    from service.wire.prompt_blocks import UNIT_TOKENS

    if bool(traces) == (captured is not None):
        raise typer.BadParameter("give traces, or --captured MODEL")
    if captured is not None and unit is not None:
        raise typer.BadParameter("--unit is of traces; captured prompts have their own")
    if across_tenants and captured is None:
        raise typer.BadParameter(
            "--across-tenants is of captured prompts: names of two traces mean nothing together"
        )
    if across_tenants and pool is not None:
        raise typer.BadParameter("--pool compares tenants, and with --across-tenants there is but one")
    own = None if captured is None else captured_prompts(config, captured)
    prompts = _prompts(traces or []) if own is None else list(own.prompts)
    if across_tenants:
        prompts = [replace(each, tenant="") for each in prompts]
    share = 1.0 if own is None else own.share
    unit = UNIT_TOKENS if own is not None else unit or BLOCK_TOKENS
    try:
        found = of_all_traffic(through(prompts, unit=unit, block=block), share)
        splits = (
            ()
            if pool is None
            else split_of_all_traffic(
                split_pools(prompts, unit=unit, block=block, blocks=max(1, round(pool // block * share))),
                share,
            )
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if as_json:
        document = replay_document(found, splits, token_bytes)
        document["captured"] = None if own is None else {"share": own.share, "whole": own.together}
        typer.echo(json.dumps(document, indent=2, allow_nan=False))
        return
    print_replay(found, splits, token_bytes)
    if own is not None:
        print_captured(own.share, own.together)


def _prompts(traces: list[Path]) -> list[Prompt]:
    from service.capacity.prefix_replay import Prompt
    from service.traces import NotATrace, read_trace

    names = [path.stem for path in traces]
    if len(set(names)) < len(names):
        raise typer.BadParameter("each file is a tenant: two of them have the same name")
    arrived: list[tuple[float, Prompt]] = []
    for path, name in zip(traces, names, strict=True):
        try:
            trace = read_trace(_read(path, "replay").split("\n"))
        except NotATrace as error:
            raise fail(f"tiergate capacity replay: {path}: {error}", WRONG) from None
        if not any(request.prefix for request in trace.requests):
            raise fail(
                f"tiergate capacity replay: {path} has no hash_ids: which prefixes are shared is not told",
                WRONG,
            )
        if trace.bad:
            typer.echo(f"{path}: {len(trace.bad)} lines left out, first {trace.bad[0]}", err=True)
        arrived += [
            (each.arrived, Prompt(tokens=each.prompt_tokens, named=each.prefix, tenant=name))
            for each in trace.requests
        ]
    arrived.sort(key=lambda each: each[0])
    return [prompt for _, prompt in arrived]


def _read(path: Path, command: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise fail(f"tiergate capacity {command}: cannot read {path}: {error.strerror}", WRONG) from None
    except UnicodeDecodeError:
        raise fail(f"tiergate capacity {command}: {path} is not UTF-8", WRONG) from None
