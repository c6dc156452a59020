"""`tiergate capacity matrix`: prompts of some lengths, so many at once: what each does, where it turns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.configuration import ConfigOption, JsonOption, fail, load_or_exit
from service.cli.named import ladder_of, tier_of
from service.cli.quantities import duration
from service.cli.writing import write

if TYPE_CHECKING:
    from service.capacity.matrix_file import Matrix
    from service.cli.capacity_matrix_prompts import Prompts
    from service.fleet import Backend, Slo, Tier
    from service.launch.ask import Answered
    from service.settings import Settings
    from service.store.sql.database import Database

STOPPED = 1
WRONG = 2
PROMPTS = (512, 2048, 8192)
CONCURRENCIES = (1, 2, 4, 8, 16, 32, 64)


def register(group: typer.Typer) -> None:
    """Add the command to its group."""
    group.command(epilog="Docs: docs/capacity.md")(matrix)


def matrix(
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="The name that clients send.")] = None,
    tier: Annotated[str | None, typer.Argument(metavar="TIER", help="Its backends are loaded.")] = None,
    prompt: Annotated[
        list[int] | None, typer.Option(min=1, help="Tokens of a prompt; may be given again. 512, 2048, 8192.")
    ] = None,
    captured: Annotated[
        bool,
        typer.Option("--captured", help="Prompts of the corpus instead: its median, P90 and P99 by size."),
    ] = False,
    concurrency: Annotated[
        list[int] | None, typer.Option(min=1, help="Requests at once; may be given again. 1, 2, 4 ... 64.")
    ] = None,
    batch_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="max-num-batched-tokens that the engine runs with now: a row of its own."),
    ] = None,
    output_tokens: Annotated[int, typer.Option(min=2, help="Of each answer to a made prompt.")] = 128,
    ignore_eos: Annotated[
        bool, typer.Option(help="Ask for exactly so many; off where a backend refuses that word.")
    ] = True,
    window: Annotated[str, typer.Option(help="Counted, of each cell.")] = "30s",
    warm_up: Annotated[str, typer.Option(help="Sent before and not counted.")] = "10s",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="matrix-MODEL-TIER.json if left out."),
    ] = None,
    show: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Measure nothing: show what this file has.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with heat maps as well.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Load a tier with prompts of some lengths, so many at once, and show each cell and each row's knee.

    A row (one length under one budget) is tried upwards and left when a step gains less than 5 % of tokens a
    second that keep the SLO: the step before is its knee, once both have had two windows. Prompts are made of
    words, as long as the engine counts, and no two alike, so that no prefix cache helps. A cell is written
    down as soon as it is known; the same command goes on where it was stopped.

    Backends that serve clients are never loaded, as this overloads them on purpose: give the tier `shadow`
    ones. For another max-num-batched-tokens restart the engine and run again with --batch-tokens: its rows go
    into the same file.

    Exit status: 0 all cells that matter are there, 1 refused or stopped before, 2 wrong command line or
    configuration, 3 a backend does not answer, 130 interrupted.

    \b
    Three lengths, 1 to 64 at once:
      tiergate capacity matrix qwen3-32b w8a8 --html matrix.html
    A small one, then the same engine with smaller chunks:
      tiergate capacity matrix qwen3-32b w8a8 --prompt 2048 --concurrency 4 --batch-tokens 8192
      tiergate capacity matrix qwen3-32b w8a8 --prompt 2048 --concurrency 4 --batch-tokens 2048
    What a file has, and two files side by side:
      tiergate capacity matrix --show matrix-qwen3-32b-w8a8.json
      tiergate capacity compare monday.json tuesday.json
    """
    from service.cli.capacity_matrix_views import document, print_matrix, sentence

    if show is not None:
        if model is not None:
            raise typer.BadParameter("give MODEL and TIER, or --show FILE, not both")
        found = _shown(show)
    elif model is None or tier is None:
        raise typer.BadParameter("name a MODEL and a TIER, or --show FILE")
    else:
        found = _measured(
            config,
            model,
            tier,
            prompts=prompt,
            captured=captured,
            concurrencies=tuple(sorted(set(concurrency or CONCURRENCIES))),
            batch_tokens=batch_tokens,
            output_tokens=output_tokens,
            ignore_eos=ignore_eos,
            seconds=(duration(window, "--window"), duration(warm_up, "--warm-up")),
            path=output or Path(f"matrix-{_plain(model)}-{_plain(tier)}.json"),
            shown=sentence,
        )
    if html is not None:
        from service.cli.capacity_matrix_page import written

        write(html, written(found), status=WRONG)
    if as_json:
        typer.echo(json.dumps(document(found), indent=2, allow_nan=False))
    else:
        print_matrix(found)


def _shown(path: Path) -> Matrix:
    from service.capacity.matrix_file import read
    from service.cli.capacity_reports import json_of, wrong

    try:
        return read(json_of(path, "matrix"))
    except ValueError as error:
        raise wrong("matrix", f"{path}: {error}; `tiergate capacity matrix MODEL TIER` makes one") from None


def _measured(
    config: Path | None,
    model: str,
    name: str,
    *,
    prompts: list[int] | None,
    captured: bool,
    concurrencies: tuple[int, ...],
    batch_tokens: int | None,
    output_tokens: int,
    ignore_eos: bool,
    seconds: tuple[float, float],
    path: Path,
    shown: Callable[..., str],
) -> Matrix:
    from service.capacity.matrix import Axes, told_of
    from service.capacity.matrix_cells import PromptClass
    from service.capacity.matrix_file import Question
    from service.cli import capacity_matrix_prompts as texts
    from service.cli.capacity_matrix_sitting import Sitting, begun, measure_all, tell
    from service.cli.corpus_access import database_of
    from service.store.verdicts.serving import targets_of

    if captured and prompts:
        raise typer.BadParameter("give --prompt or --captured, not both")
    settings = load_or_exit(config, make_key=False)
    tier, slo = _found(settings, model, name)
    backends = targets_of(tier)
    with database_of(settings) as db:
        objection = _objection(settings, db, backends)
        if why := objection():
            raise fail(
                f"refused: {why}. A matrix overloads a tier on purpose: give {name} `shadow` backends that "
                "serve nobody",
                STOPPED,
            )
        answers = _answers(backends, tier)
        question = Question(
            model=model,
            tier=name,
            ttft_seconds=slo.ttft_seconds,
            tpot_seconds=slo.tpot_seconds,
            output_tokens=output_tokens,
            window_seconds=seconds[0],
            warm_up_seconds=seconds[1],
            source=settings.corpus.use if captured else "made",
        )
        matrix = begun(path, question, _manifest(model, tier, answers))
        classes = tuple(PromptClass(name=str(each), tokens=each) for each in sorted(set(prompts or PROMPTS)))
        source: Prompts
        if captured:
            classes, source = texts.captured(settings, db, model)
        else:
            asked = texts.Asked(model=tier.model, output_tokens=output_tokens, ignore_eos=ignore_eos)
            source = texts.made(texts.measured(backends[0], tier.model), asked)
        sitting = Sitting(
            axes=Axes(
                prompts=classes,
                concurrencies=concurrencies,
                batch_tokens=batch_tokens,
                longest=_longest(answers, tier),
                output_tokens=output_tokens,
            ),
            path=path,
            backends=backends,
            served_model=tier.model,
            slo=slo,
            prompts=source,
            objection=objection,
            kv_bytes=_kv_bytes(answers, tier),
            request_seconds=settings.shadow.timeout_seconds,
        )
        matrix = measure_all(sitting, matrix, say=tell, shown=shown)
    for row in sitting.axes.rows:
        end = told_of(sitting.axes, matrix.cells, row)
        tell(f"{row}: {f'knee at {end.knee} at once: ' if end.knee else ''}{end.reason}")
    tell(f"written to {path}")
    return matrix


def _found(settings: Settings, model: str, name: str) -> tuple[Tier, Slo]:
    tier = tier_of(ladder_of(settings, model), name)
    slo = settings.slo.get(model)
    if slo is None:
        raise fail(
            f"{model!r} has no service level, so nothing says which tokens count: give it one, such as "
            "`slo: {ttft: 1500ms, tpot: 80ms}` under the model",
            WRONG,
        )
    return tier, slo


def _objection(settings: Settings, db: Database, backends: tuple[Backend, ...]) -> Callable[[], str]:
    """Asked before the first cell and all through each: routes move, jobs begin."""
    from service.store.load.jobs import active_job
    from service.store.redis.addresses import address_of
    from service.store.verdicts.serving import serving_now

    def objection() -> str:
        serving = serving_now(db, settings.ladders)
        found = [
            f"{each.url} {serving[place]}" for each in backends if (place := address_of(each)) in serving
        ]
        if found:
            return "; ".join(found)
        for model in settings.ladders:
            if (job := active_job(db, model)) is not None:
                return f"the shadow job {job.job_id} of {model} is running, and would measure this load too"
        return ""

    return objection


def _answers(backends: tuple[Backend, ...], tier: Tier) -> dict[Backend, Answered]:
    from service.launch.ask import Answered, ask_all

    found: dict[Backend, Answered] = {}
    for backend, answer in ask_all(backends).items():
        if not isinstance(answer, Answered):
            raise fail(f"{backend.url} {answer}", 3)
        if tier.model not in answer.models:
            raise fail(f"{backend.url} serves {', '.join(answer.models)}, not {tier.model}", WRONG)
        found[backend] = answer
    return found


def _longest(answers: dict[Backend, Answered], tier: Tier) -> int | None:
    """Tokens that all backends take; None where one does not tell."""
    told = []
    for each in answers.values():
        engine = each.engine_of(tier.model)
        told.append(None if engine is None else engine.max_model_len)
    return None if None in told else min((each for each in told if each is not None), default=None)


def _kv_bytes(answers: dict[Backend, Answered], tier: Tier) -> float | None:
    told = [engine.kv_bytes if (engine := each.engine_of(tier.model)) else None for each in answers.values()]
    return None if None in told else float(sum(each for each in told if each is not None))


def _manifest(model: str, tier: Tier, answers: dict[Backend, Answered]) -> dict[str, Any]:
    """As a shadow job's manifest has it."""
    engines = {
        backend.url: {name: told for name, told in asdict(engine).items() if told is not None}
        for backend, each in answers.items()
        if (engine := each.engine_of(tier.model)) is not None
    }
    arm = {
        "tier": tier.name,
        "model": tier.model,
        "declares": dict(tier.declares),
        "hardware": tier.declares.get("hardware", ""),
        "backends": sorted(backend.url for backend in answers),
        "engines": engines,
    }
    return {"model": model, "tiers": [arm]}


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "x"
