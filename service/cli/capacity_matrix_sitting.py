"""One sitting at a workload matrix: cell after cell is measured and written down, until none matters."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from service.cli.capacity_matrix_prompts import Prompts
from service.cli.capacity_reports import json_of, wrong
from service.cli.configuration import fail
from service.cli.writing import write

if TYPE_CHECKING:
    from service.capacity.matrix import Axes, Spot
    from service.capacity.matrix_cells import Cell
    from service.capacity.matrix_file import Matrix, Question
    from service.fleet import Backend, Slo

COMMAND = "matrix"
STOPPED = 1
ASK_SECONDS = 2.0
"""Between two questions whether a backend has come into service."""
LOOK_SECONDS, LEAST_LOOKS = 5.0, 6
"""Between two looks at the engines, and how many a window has at least."""
UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """What one sitting measures, and where it writes it down."""

    axes: Axes
    path: Path
    backends: tuple[Backend, ...]
    served_model: str
    """What they call the model."""
    slo: Slo
    prompts: Prompts
    objection: Callable[[], str]
    """Why no more load may be sent; empty while it may."""
    kv_bytes: float | None
    request_seconds: float


def begun(path: Path, question: Question, manifest: Mapping[str, Any]) -> Matrix:
    """What the file has of the same question and the same engines, or a matrix without cells.

    Ends the command where it is of others: cells that cannot be put side by side do not go into one file.
    """
    from service.capacity.matrix_file import Matrix, read

    if not path.exists():
        return Matrix(question=question, manifest=manifest)
    try:
        found = read(json_of(path, COMMAND))
    except ValueError as error:
        raise wrong(COMMAND, f"{path}: {error}; give another -o") from None
    unlike = [*found.question.differences(question), *_engines_differ(found.manifest, manifest)]
    if unlike:
        lines = "\n".join(f"  {each}" for each in unlike)
        raise wrong(COMMAND, f"{path} was measured otherwise:\n{lines}\ngive another -o, or ask the same")
    return found


def _engines_differ(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Prices of a look, such as tokens of a cache that is measured at every start, are no difference."""
    from service.capacity.experiment import compared

    tier = str(now["tiers"][0]["tier"])
    try:
        found = compared(was, now, tier=tier, force=True)
    except KeyError:
        return [f"no tier {tier!r} in it"]
    measured = (".kv_tokens:", ".kv_bytes:")
    others = [each for each in found.others if not any(name in each for name in measured)]
    return [*map(str, found.changed), *others]


def measure_all(
    sitting: Sitting, matrix: Matrix, *, say: Callable[[str], None], shown: Callable[[Cell], str]
) -> Matrix:
    """Every cell that matters, each written down once it is known; ends the command where it must stop."""
    from service.capacity.matrix import next_spot

    name = secrets.token_hex(3)
    number = 0
    while (spot := next_spot(sitting.axes, matrix.cells)) is not None:
        number += 1
        seconds = matrix.question.warm_up_seconds + matrix.question.window_seconds
        say(f"{spot.row}, {spot.concurrency} at once: {seconds:g} s and its last answers ...")
        cell = _one(sitting, matrix, spot, f"{name}-{number}")
        matrix = replace(matrix, cells=(*matrix.cells, cell))
        keep(sitting.path, matrix)
        say(f"  {shown(cell)}")
    return matrix


def _one(sitting: Sitting, matrix: Matrix, spot: Spot, name: str) -> Cell:
    from service.load.block import Aborted, Load, run_block
    from service.load.cells import cell_of, plan_of

    question = matrix.question
    plan = plan_of(
        question.tier,
        spot,
        seed=len(matrix.cells),
        warm_up_seconds=question.warm_up_seconds,
        window_seconds=question.window_seconds,
    )
    load = Load(
        backends=sitting.backends,
        model=sitting.served_model,
        requests=sitting.prompts(spot, name),
        slo=sitting.slo,
        request_seconds=sitting.request_seconds,
        engine_seconds=min(LOOK_SECONDS, question.window_seconds / LEAST_LOOKS),
        watch_seconds=ASK_SECONDS,
    )

    async def watch() -> str:
        return await asyncio.to_thread(sitting.objection)

    try:
        block = run_block(plan, load, watch=watch)
    except Aborted as error:
        raise fail(f"stopped: {error}. {_again(sitting.path)}", STOPPED) from None
    except KeyboardInterrupt:
        raise fail(f"stopped. {_again(sitting.path)}", 130) from None
    failed = block.figures.failed
    if failed and set(failed) == {UNREACHABLE} and failed[UNREACHABLE] == block.figures.offered:
        raise fail(f"stopped: no backend can be reached any more. {_again(sitting.path)}", STOPPED)
    return cell_of(spot, block, kv_bytes=sitting.kv_bytes)


def _again(path: Path) -> str:
    return f"What was measured is in {path}; the same command goes on from there."


def keep(path: Path, matrix: Matrix) -> None:
    """Write the file whole or not at all; ends the command where that fails."""
    text = json.dumps(matrix.document(), indent=1, allow_nan=False) + "\n"
    write(path, text, status=2)


def tell(message: str) -> None:
    """Progress, beside what is printed."""
    typer.echo(message, err=True)
