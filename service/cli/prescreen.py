"""`prescreen`: is a candidate surprised by what its baseline says? Before any traffic, never a verdict."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.asking import ModelArgument
from service.cli.configuration import ConfigOption, JsonOption, fail, load_or_exit
from service.cli.named import ladder_of

if TYPE_CHECKING:
    from service.fleet import Ladder, Tier
    from service.prescreen.asking import Screened

BROKEN = 1
"""Exit status: a tier gave log probabilities that are no numbers."""
WRONG = 2
NOTHING = 3
"""Exit status: no tier could be measured."""
ONLY = (
    "A pre-screen only: it approves nothing, rejects nothing and is kept nowhere. Perplexity moves by a "
    "hundredth while tool calls fall apart; what decides is `tiergate verdict`."
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Docs: docs/evaluators.md")(prescreen)


def prescreen(
    model: ModelArgument,
    tier: Annotated[
        str | None, typer.Argument(metavar="TIER", help="One candidate; all when left out.")
    ] = None,
    requests: Annotated[
        Path | None,
        typer.Option(
            "--requests",
            metavar="FILE.jsonl",
            help="Bodies of requests, one a line; a dozen of our own else.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many of them.")] = 50,
    max_tokens: Annotated[
        int, typer.Option(min=1, max=2048, help="Of each of the baseline's answers.")
    ] = 128,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare perplexities: how likely does a candidate think what its baseline answered?

    The baseline answers each request greedily; then baseline and candidates are made to say how likely each
    token of that answer is (vLLM by prompt_logprobs, /v1/completions by echo, llama.cpp by a grammar). A
    ratio of 1 is no surprise. It finds broken weights and kernels in a minute; it approves nothing.

    Exit status: 0 measured, 1 a tier gave log probabilities that are no numbers, 2 wrong command line or
    configuration, 3 nothing could be measured.

    \b
    Before shadow traffic begins:
      tiergate prescreen qwen3-32b
    On requests of your own, for one tier:
      tiergate prescreen qwen3-32b w4a16 --requests bodies.jsonl --limit 200 --json
    """
    settings = load_or_exit(config, make_key=False, judges=False)
    ladder = ladder_of(settings, model, before="tiergate prescreen: ")
    tiers = _tiers(ladder, tier)
    import asyncio

    from service.prescreen.asking import prescreen as screen
    from service.prescreen.texts import UnusableTexts, own_requests, read_requests

    try:
        asked = own_requests() if requests is None else read_requests(_read(requests), str(requests))
    except UnusableTexts as error:
        raise _wrong(str(error)) from None
    found = asyncio.run(screen(ladder, tiers, asked[:limit], max_tokens=max_tokens, told=_progress))
    if as_json:
        document = {"model": model, "baseline": ladder.baseline.name, "decides": False, "note": ONLY}
        typer.echo(json.dumps(document | {"tiers": [_told(each) for each in found]}, indent=2))
    else:
        for line in _lines(ladder, found):
            typer.echo(line)
    if any(each.broken for each in found):
        raise typer.Exit(BROKEN)
    if not any(each.found for each in found):
        raise typer.Exit(NOTHING)


def _tiers(ladder: Ladder, name: str | None) -> Sequence[Tier]:
    if not ladder.candidates:
        raise _wrong(f"model {ladder.model!r} has a baseline alone: nothing to compare it with")
    if name is None:
        return ladder.candidates
    found = [tier for tier in ladder.candidates if tier.name == name]
    if not found:
        known = ", ".join(tier.name for tier in ladder.candidates)
        raise _wrong(f"model {ladder.model!r} has no candidate {name!r}; candidates are: {known}")
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        told = error.strerror if isinstance(error, OSError) else str(error)
        raise _wrong(f"cannot read {path}: {told}") from None


def _wrong(message: str) -> typer.Exit:
    return fail(f"tiergate prescreen: {message}", WRONG)


def _progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        typer.echo(f"\r{done} of {of} texts{chr(10) * (done == of)}", err=True, nl=False)


def _told(screened: Screened) -> dict[str, Any]:
    return {
        "tier": screened.tier,
        "method": screened.method,
        "figures": None if screened.found is None else asdict(screened.found),
        "broken": screened.broken,
        "skipped": dict(screened.skipped),
    }


def _lines(ladder: Ladder, found: Sequence[Screened]) -> list[str]:
    lines = [f"{ladder.model}: perplexity of what {ladder.baseline.name} answers"]
    for each in found:
        figures = each.found
        if figures is None:
            lines.append(f"  {each.tier}: nothing could be measured")
        else:
            interval = (
                f"95 % interval {figures.lower:.4f} .. {figures.upper:.4f}"
                if figures.lower is not None and figures.upper is not None
                else "too few texts for an interval"
            )
            lines.append(
                f"  {each.tier}: {figures.candidate:.4f} beside {figures.baseline:.4f}, ratio "
                f"{figures.ratio:.4f} ({interval}); {figures.texts} texts, {figures.tokens} tokens, by "
                f"{each.method}, most on text {figures.worst + 1}"
            )
        if each.broken:
            lines.append(f"    {each.broken} log probabilities are no numbers: weights or kernels are broken")
        lines += [f"    {times} left out: {why}" for why, times in each.skipped.items()]
    return [*lines, ONLY]
