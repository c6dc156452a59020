"""`tiergate capacity compare`: two runs, or two matrices, side by side if they differ in one variable."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from service.cli.capacity_reports import json_of, report_in, wrong
from service.cli.capacity_views import table_of
from service.cli.configuration import JsonOption, fail

if TYPE_CHECKING:
    from service.capacity.experiment import Experiment, Limits, Side
    from service.report.document import Report
    from service.report.measured import Figure

REFUSED = 1
Figures = Mapping[str, "Limits"]
"""By name."""
FiguresOf = Callable[[str], Figures]
"""Of a tier."""


def register(group: typer.Typer) -> None:
    """Add the command to its group."""
    group.command(epilog="Docs: docs/capacity.md")(compare)


def compare(
    before: Annotated[
        Path, typer.Argument(metavar="BEFORE", help="A report in JSON, a matrix, or a manifest.")
    ],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="Of another run, or the same file.")],
    tier: Annotated[str | None, typer.Option(help="Of BEFORE; by default the first of its manifest.")] = None,
    to: Annotated[str | None, typer.Option(help="Of AFTER; by default the one of the same name.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Compare although more than one variable changed; it is labelled.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Put two runs side by side, unless more than one variable changed between them.

    The variables are hardware, model, precision, mix of lengths, arrival rate and SLO. With two of them
    changed no difference comes from either, so that is refused, or with --force labelled. Everything else
    that differs is listed: flags of engines, versions, prices. A figure is higher or lower only where the
    limits have no number in common. Manifests alone tell what was varied, and have no figures. Of two
    matrices cells of the same prompts and as many at once are put side by side.

    Exit status: 0 compared, 1 refused, 2 wrong command line or file.

    \b
    Before and after a flag was changed:
      tiergate capacity compare monday.json tuesday.json --tier w8a8
    Two tiers of one run:
      tiergate capacity compare report.json report.json --tier bf16 --to w8a8
    Two workload matrices, of one engine with two budgets:
      tiergate capacity compare chunks-8192.json chunks-2048.json
    """
    from service.capacity.experiment import MoreThanOneVariable, compared

    (was, figures_was), (now, figures_now) = _told(before), _told(after)
    first = tier or _first(was, before)
    second = to or first
    sides = _sides(figures_was(first), figures_now(second))
    try:
        experiment = compared(was, now, tier=first, tier_now=second, sides=sides, force=force)
    except MoreThanOneVariable as error:
        lines = "\n".join(f"  {each}" for each in error.changed)
        raise fail(
            f"refused: {len(error.changed)} variables changed, so no difference comes from one of them:\n"
            f"{lines}\nchange one at a time, or give --force, which is labelled",
            REFUSED,
        ) from None
    except KeyError as error:
        raise wrong("compare", f"no tier {error.args[0]!r} in one of the manifests") from None
    if as_json:
        typer.echo(json.dumps(_document(experiment), indent=2, allow_nan=False))
    else:
        _print(experiment)


def _told(path: Path) -> tuple[Mapping[str, Any], FiguresOf]:
    """The manifest in a file, and its figures where it is a report or a matrix."""
    from service.capacity import matrix_file
    from service.store.load.manifest import Manifest

    told = json_of(path, "compare")
    if matrix_file.is_matrix(told):
        try:
            matrix = matrix_file.read(told)
        except ValueError as error:
            raise wrong("compare", f"{path}: {error}") from None
        return matrix_file.manifest_of(matrix), lambda tier: matrix_file.figures(matrix)
    if "schema" in told:
        report = report_in(told, path, "compare")
        return report.manifest, lambda tier: _figures(report, tier)
    inner = told.get("manifest")
    try:
        return Manifest.of(inner if isinstance(inner, dict) else told).document, lambda tier: {}
    except ValueError as error:
        raise wrong("compare", f"{path} is no report, matrix or manifest: {error}") from None


def _first(manifest: Mapping[str, Any], path: Path) -> str:
    tiers = manifest.get("tiers")
    for each in tiers if isinstance(tiers, list) else ():
        if isinstance(each, Mapping) and isinstance(each.get("tier"), str):
            return str(each["tier"])
    raise wrong("compare", f"the manifest of {path} names no tier")


def _sides(was: Figures, now: Figures) -> tuple[Side, ...]:
    from service.capacity.experiment import Side

    names = [*was, *(name for name in now if name not in was)]
    return tuple(Side(figure=name, was=was.get(name), now=now.get(name)) for name in names)


def _figures(report: Report, tier: str) -> Figures:
    from service.report.changes import key_figures

    found = next((each for each in report.tiers if each.name == tier), None)
    figures = {} if found is None else key_figures(found)
    return {name: _limits(each) for name, each in figures.items()}


def _limits(figure: Figure) -> Limits:
    from service.capacity.experiment import Limits

    return Limits(value=figure.value, lower=figure.lower, upper=figure.upper, level=figure.level)


def _document(experiment: Experiment) -> dict[str, Any]:
    return {
        "label": experiment.label,
        "forced": experiment.forced,
        "changed": [asdict(each) for each in experiment.changed],
        "others": list(experiment.others),
        "figures": [{**asdict(each), "verdict": each.verdict} for each in experiment.sides],
    }


def _print(experiment: Experiment) -> None:
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    console.print(Text(experiment.label, style="bold"))
    for changed in experiment.changed:
        console.print(Text(f"  {changed}"))
    if experiment.sides:
        table = table_of("", "before", "after", "")
        for side in experiment.sides:
            table.add_row(side.figure, _shown(side.was), _shown(side.now), side.verdict.value)
        console.print(table)
    else:
        console.print(Text("No figures: manifests tell what was varied; give reports for what came of it."))
    if experiment.others:
        console.print(Text("Differs too:"))
        for other in experiment.others:
            console.print(Text(f"  {other}"))


def _shown(limits: Limits | None) -> str:
    if limits is None:
        return "-"
    if limits.lower is None or limits.upper is None:
        return f"{limits.value:.4g}"
    return f"{limits.value:.4g} [{limits.lower:.4g}, {limits.upper:.4g}]"
