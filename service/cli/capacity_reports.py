"""What `tiergate capacity` reads of a shadow job: its report, its blocks, and figures from both."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from service.cli.configuration import fail

if TYPE_CHECKING:
    from service.capacity.batch import Step
    from service.report.document import Report, TierReport
    from service.report.measured import Metric

WRONG = 2
Json = Mapping[str, Any]


def json_of(path: Path, command: str) -> Json:
    """The object in a file; exits with 2 where there is none."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise wrong(command, f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise wrong(command, f"{path} is not JSON") from None
    if not isinstance(told, dict):
        raise wrong(command, f"{path} is not a JSON object")
    return told


def report_of(path: Path, command: str) -> Report:
    """The report in a file; exits with 2 where there is none."""
    return report_in(json_of(path, command), path, command)


def report_in(told: Json, path: Path, command: str) -> Report:
    """The report in JSON that was read from a file; exits with 2 where it is none."""
    from service.report.codec import decode
    from service.report.document import DocumentError, Report

    try:
        return decode(Report, told)
    except DocumentError as error:
        raise wrong(
            command, f"{path}: {error}; `tiergate report RUN --format json -o FILE` writes one"
        ) from None


def blocks_of(path: Path | None, report: Report, command: str) -> tuple[Json, ...]:
    """Valid blocks that are over, of that report's job; exits with 2 for another job's, or none."""
    if path is None:
        return ()
    told = json_of(path, command)
    blocks = told.get("blocks")
    if not isinstance(blocks, list) or not all(isinstance(each, dict) for each in blocks):
        raise wrong(
            command, f"{path} has no blocks; `tiergate shadow status {report.run.id} --json` tells them"
        )
    if told.get("job") != report.run.id:
        raise wrong(command, f"{path} is of job {told.get('job')}, the report of {report.run.id}")
    return tuple(each for each in blocks if each.get("invalid") == [])


def tiers_of(report: Report, named: Sequence[str], command: str) -> list[TierReport]:
    """Those that are named, or all; exits with 2 for one that the report has not."""
    known = {each.name: each for each in report.tiers}
    for name in named:
        if name not in known:
            raise wrong(command, f"no tier {name!r} in the report, which has {', '.join(known) or 'none'}")
    return [known[name] for name in named] or list(report.tiers)


def steps_of(tier: TierReport, blocks: Sequence[Json]) -> tuple[Step, ...]:
    """TPOT and throughput of the report, goodput of the job's blocks; `ValueError` for what is no number."""
    from service.capacity.batch import Step

    told = () if tier.concurrency is None else tier.concurrency.points
    steps = [
        Step(concurrency=each.concurrency, tpot_p95=each.tpot_p95_seconds, throughput=each.throughput)
        for each in told
        if not each.invalid
    ]
    for each in blocks:
        if each.get("tier") == tier.name and each.get("concurrency") is not None:
            steps.append(
                Step(
                    concurrency=int(_number(each, "concurrency") or 0),
                    tpot_p95=_number(each, "tpot_p95"),
                    goodput=_number(each, "goodput"),
                )
            )
    return tuple(steps)


def quantile(tier: TierReport, metric: Metric, share: str) -> float | None:
    """In seconds; infinite where too many never came so far to have it, `None` where it is not told."""
    latency = None if tier.load is None else tier.load.latency(metric)
    if latency is None:
        return None
    found = latency.quantiles.get(share)
    if found is not None:
        return found.value
    return math.inf if latency.n and latency.never / latency.n > 1 - float(share) else None


def limit(tier: TierReport, metric: Metric) -> float | None:
    """What the SLO allows, in seconds."""
    latency = None if tier.load is None else tier.load.latency(metric)
    return None if latency is None else latency.limit_seconds


def engine_in_slo(report: Report, tier: TierReport, blocks: Sequence[Json]) -> dict[str, list[list[float]]]:
    """What the tier's engine told during blocks of the SLO part: by name, for each block, the numbers known.

    A report's series cover the whole run, and the sweep overloads a tier on purpose: only blocks tell when.
    """
    windows = [
        (_moment(each, "started_at") - report.run.began_at, _moment(each, "ended_at") - report.run.began_at)
        for each in blocks
        if each.get("tier") == tier.name and each.get("part") == "slo"
    ]
    return {
        series.metric: [
            numbers
            for begin, end in windows
            if (numbers := [told for at, told in series.points if told is not None and begin <= at <= end])
        ]
        for series in tier.engine
    }


def wrong(command: str, message: str) -> typer.Exit:
    """Says what is wrong with what was given."""
    return fail(f"tiergate capacity {command}: {message}", WRONG)


def _number(block: Json, name: str) -> float | None:
    told = block.get(name)
    if told is None:
        return None
    if isinstance(told, bool) or not isinstance(told, int | float):
        raise ValueError(f"{name} of a block is a number, got {told!r}")
    if not abs(told) < 1e300:
        raise ValueError(f"{name} of a block is finite")
    return float(told)


def _moment(block: Json, name: str) -> float:
    told = block.get(name)
    if not isinstance(told, str):
        raise ValueError(f"{name} of a block is a moment, got {told!r}")
    return datetime.fromisoformat(told).timestamp()
