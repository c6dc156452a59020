"""The first view of a tier's page over a million pairs: under 1 s of the server's time, under 300 KB of HTML.

Three criteria, four candidates, 200 strata, a look for every twentieth of the pairs, one shadow job with its
report; SQLite and PostgreSQL, each filled anew. What is measured is a browser's request, from its first byte
to the last of the answer, on the loopback: the first one of a fresh app, and the median of those that follow.
Run: `python -m tests.benchmarks.tier_page [--pairs N] [--views N] [--only sqlite]`.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from service.approval.app import create_app
from service.approval.config import ApiConfig
from service.dashboard.rooms import front_of
from service.decision.verdict import Verdict
from service.report.gathering.composing import Sources
from service.report.gathering.kept import report_of
from service.store.redis.captures import open_captures
from service.store.sql.database import Database, open_database
from service.store.verdicts.looks import GROWTH, keep_looks
from service.store.verdicts.standing import Question, read_standing
from tests.approval.live import serving
from tests.benchmarks.evidence_at_scale import EVALUATORS, MODEL, NOW, Scale, fill, settle
from tests.benchmarks.rig import machine, publish, quantile
from tests.benchmarks.verdict import LADDER, POLICY, postgres
from tests.report.gathering.jobs import job_over, run

TIER = "w8a8"
MOST_SECONDS = 1.0
MOST_BYTES = 300_000
"""Of the contract: first view, and its HTML before any compression."""
DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewed:
    """Of one database."""

    kind: str
    pairs: int
    first: float
    """Seconds."""
    median: float
    cpu: float
    """Seconds of processor time of the first view, the client's included."""
    bytes: int

    @property
    def met(self) -> bool:
        return self.first <= MOST_SECONDS and self.bytes <= MOST_BYTES


def epoch_of(model: str, tier: str) -> str:
    """As `evidence_at_scale` names it."""
    return f"epoch of {tier}"


def furnish(db: Database, scale: Scale) -> int:
    """Pairs, looks and a load run in an empty database; how many pairs of candidates."""
    filled = fill(db, scale)
    manifest, blocks = run()
    job = job_over(db, manifest, blocks, began=NOW - DAY)
    question = Question(policy=POLICY, epoch_of=epoch_of)
    sources = Sources(db=db, captures=None, ladders={MODEL: LADDER}, question=question)
    report_of(sources, job.job_id, now=NOW - DAY / 2)  # as the guard does when a job is over
    verdicts = [rung.verdict for rung in read_standing(db, LADDER, question, now=NOW).rungs if rung.verdict]
    pairs, days = 1, 0.0
    most = max(finding.n for verdict in verdicts for finding in verdict.findings)
    while pairs < most:
        keep_looks(db, [_at(verdict, pairs) for verdict in verdicts], at=NOW - 60 * DAY + days * DAY)
        pairs, days = max(pairs + 1, math.ceil(GROWTH * pairs)), days + 0.2
    return filled.pairs


def _at(verdict: Verdict, pairs: int) -> Verdict:
    """The verdict when it had so many pairs."""
    return replace(
        verdict, findings=tuple(replace(each, n=pairs, conversations=pairs) for each in verdict.findings)
    )


@contextmanager
def site_over(db: Database) -> Iterator[str]:
    """The URL of a fresh API with its pages."""
    config = ApiConfig(
        ladders={MODEL: LADDER},
        policy=POLICY,
        epoch_of=epoch_of,
        evaluators=dict.fromkeys(EVALUATORS, "1"),
    )
    captures = open_captures("redis://127.0.0.1:9/0")  # no page of a tier asks for any
    try:
        with serving(create_app(config, db, captures, front=front_of(), now=lambda: NOW + 10)) as url:
            yield url
    finally:
        captures.close()


def view(url: str) -> tuple[float, str]:
    """Seconds that one view takes, and its HTML."""
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        began = time.perf_counter()
        answer = client.get("/tier", params={"model": MODEL, "tier": TIER})
        taken = time.perf_counter() - began
    answer.raise_for_status()
    return taken, answer.text


def measure(kind: str, db: Database, scale: Scale, *, views: int) -> Viewed:
    """Fill the database and look."""
    pairs = furnish(db, scale)
    settle(db)
    with site_over(db) as url:
        spent = time.process_time()
        first, html = view(url)
        spent = time.process_time() - spent
        others = [view(url)[0] for _ in range(views)]
    return Viewed(
        kind=kind,
        pairs=pairs,
        first=first,
        median=quantile(others, 0.5),
        cpu=spent,
        bytes=len(html.encode()),
    )


def report(found: list[Viewed]) -> str:
    """One row for each database."""
    lines = [
        "| database | pairs | first view | limit | CPU of it | later views, p50 | HTML | limit | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {each.kind} | {each.pairs:,} | {1000 * each.first:.0f} ms | {1000 * MOST_SECONDS:.0f} ms "
        f"| {1000 * each.cpu:.0f} ms | {1000 * each.median:.0f} ms "
        f"| {each.bytes / 1000:.0f} KB | {MOST_BYTES / 1000:.0f} KB "
        f"| {'met' if each.met else 'MISSED'} |"
        for each in found
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=Scale().pairs)
    parser.add_argument("--views", type=int, default=20)
    parser.add_argument("--only", choices=("sqlite", "postgresql"))
    parser.add_argument("--output", type=Path, help="write the report there as well")
    asked = parser.parse_args()
    scale, described, found = Scale(pairs=asked.pairs), machine(), []
    if asked.only != "postgresql":
        with tempfile.TemporaryDirectory() as directory:
            db = open_database(f"sqlite:///{directory}/tiergate.db")
            try:
                found.append(measure("SQLite", db, scale, views=asked.views))
            finally:
                db.close()
    if asked.only != "sqlite":
        with postgres() as (url, _):
            db = open_database(url)
            try:
                found.append(measure("PostgreSQL", db, scale, views=asked.views))
            finally:
                db.close()
    publish(f"{described}\n\n{report(found)}", asked.output)
    if not all(each.met for each in found):
        sys.exit("missed a limit")


if __name__ == "__main__":
    main()
