"""Reading the verdicts of a whole ladder (design section 12: at most 20 ms at a million pairs).

Three criteria, four candidates, 200 strata, a million pairs; SQLite and PostgreSQL, each filled anew. What is
measured is what the API does at every question: `read_standing`, from the tables to the verdicts. Run:
`python -m tests.benchmarks.verdict [--pairs N] [--looks N]`.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from service.decision.ladder import decide_ladder
from service.decision.policy import Criterion, Hypothesis, Policy
from service.fleet import Backend, Ladder, Tier
from service.store.scored.recount import recount
from service.store.sql.database import Database, open_database
from service.store.verdicts.standing import Question, Standing, read_standing
from tests.benchmarks.evidence_at_scale import BASELINE, EVALUATORS, MODEL, NOW, TIERS, Scale, fill, settle
from tests.benchmarks.rig import cpu_seconds, machine, publish, quantile
from tests.conftest import _postgres_binaries, _server_user
from tests.leash import Leashed
from tests.ports import free_port

FIGURE_MS = 20.0
"""Of design section 12."""
POLICY = Policy(
    criteria=tuple(
        Criterion(
            evaluator=name,
            hypothesis=Hypothesis.EQUIVALENT if name == "refusal" else Hypothesis.NON_INFERIOR,
        )
        for name in EVALUATORS
    )
)
LADDER = Ladder(
    model=MODEL,
    tiers=tuple(
        Tier(
            name=name,
            model=MODEL,
            backends=(Backend(url="http://127.0.0.1:9"),),
            shadow=(Backend(url="http://127.0.0.1:9"),),
        )
        for name in (BASELINE, *TIERS)
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Of one database, in milliseconds for all verdicts of the ladder."""

    kind: str
    pairs: int
    median: float
    p99: float
    cpu: float
    """Of this process for one reading."""
    server: float
    """Of the database's processes for one reading; SQLite works in this one."""
    deciding: float
    """Processor time of the part without the database."""
    strata_read: int
    """Histograms that were read because they could speak against a tier."""
    recounted: str


def measure(
    kind: str, db: Database, scale: Scale, *, looks: int, prove: bool, server: int | None = None
) -> Found:
    """Fill the database and look many times."""
    filled = fill(db, scale)
    settle(db)
    question = Question(
        policy=POLICY, epoch_of=lambda model, tier: f"epoch of {tier}", universe=scale.universe
    )

    def look() -> Standing:
        return read_standing(db, LADDER, question, now=NOW + 10)

    standing = look()  # numbers the epochs
    cpu, others = time.process_time(), _of_server(server)
    taken = _times(look, looks)
    spent = (time.process_time() - cpu) / looks * 1000
    served = (_of_server(server) - others) / looks * 1000
    evidence = [rung.evidence for rung in standing.rungs if rung.evidence is not None]
    cpu = time.process_time()
    _times(lambda: decide_ladder(POLICY, evidence), looks)
    deciding = (time.process_time() - cpu) / looks * 1000
    return Found(
        kind=kind,
        pairs=filled.pairs,
        median=quantile(taken, 0.5),
        p99=quantile(taken, 0.99),
        cpu=spent,
        server=served,
        deciding=deciding,
        strata_read=sum(len(strata) for each in evidence for strata in each.strata.values()),
        recounted=_proved(db) if prove else "-",
    )


def _of_server(pid: int | None) -> float:
    """Seconds of processor time of a process and its children so far."""
    return 0.0 if pid is None else cpu_seconds(pid)


def _times(look: Callable[[], object], looks: int) -> list[float]:
    """Milliseconds of each."""
    taken = []
    for _ in range(looks):
        began = time.perf_counter()
        look()
        taken.append((time.perf_counter() - began) * 1000)
    return taken


def _proved(db: Database) -> str:
    began = time.monotonic()
    found = recount(db)
    if not found.equal:
        differing = {each.table for each in found.differences} - {"takings", "pair_ledger"}
        assert not differing, f"counts differ from the pairs in {differing}"
    return f"{found.units} units in {time.monotonic() - began:.0f} s"


@contextmanager
def postgres() -> Iterator[tuple[str, int]]:
    """URL and process id of a server of its own, with the settings it comes with."""
    binaries = _postgres_binaries()
    if binaries is None:
        sys.exit("no PostgreSQL here: install a server (initdb, postgres), or give --only sqlite")
    user = _server_user()
    account = {} if user is None else {"user": user[0], "group": user[1], "extra_groups": []}
    with tempfile.TemporaryDirectory(prefix="tiergate-verdict-") as directory:
        cluster, port = Path(directory) / "cluster", free_port()
        if user is not None:
            Path(directory).chmod(0o711)
            cluster.mkdir(mode=0o700)
            os.chown(cluster, *user)
        subprocess.run(
            [
                *(str(binaries / "initdb"), "-D", str(cluster), "-U", "tiergate", "-A", "trust"),
                *("--no-sync", "-E", "UTF8", "--locale=C"),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=directory,
            **account,  # type: ignore[call-overload]
        )
        options = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": ""}
        arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        server = Leashed(
            [str(binaries / "postgres"), "-D", str(cluster), *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=directory,
            **account,  # type: ignore[call-overload]
        )
        url = f"postgresql://tiergate@127.0.0.1:{port}/postgres"
        try:
            while server.poll() is None:
                try:
                    psycopg.connect(url, connect_timeout=2).close()
                    break
                except psycopg.OperationalError:
                    time.sleep(0.05)
            yield url, server.pid
        finally:
            server.send_signal(signal.SIGINT)  # without waiting for who is still connected
            server.wait()


def report(found: list[Found]) -> str:
    """One row for each database, beside the figure."""
    lines = [
        "| database | pairs | all verdicts of the ladder: p50 / p99 | of the figure | figure | "
        "| CPU: asker | of it deciding | server | histograms of strata | recounted |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for each in found:
        met = "met" if each.median <= FIGURE_MS else "MISSED"
        lines.append(
            f"| {each.kind} | {each.pairs:,} | {each.median:.1f} / {each.p99:.1f} ms "
            f"| {each.median / FIGURE_MS:.2f} | <= {FIGURE_MS:g} ms | {met} | {each.cpu:.1f} ms "
            f"| {each.deciding:.1f} ms | {each.server:.1f} ms | {each.strata_read} | {each.recounted} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=Scale().pairs)
    parser.add_argument("--looks", type=int, default=200)
    parser.add_argument("--only", choices=("sqlite", "postgresql"))
    parser.add_argument("--prove", action="store_true", help="recount everything afterwards (minutes)")
    parser.add_argument("--output", type=Path, help="write the report there as well")
    asked = parser.parse_args()
    scale, described, found = Scale(pairs=asked.pairs), machine(), []
    if asked.only != "postgresql":
        with tempfile.TemporaryDirectory() as directory:
            db = open_database(f"sqlite:///{directory}/tiergate.db")
            try:
                found.append(measure("SQLite", db, scale, looks=asked.looks, prove=asked.prove))
            finally:
                db.close()
    if asked.only != "sqlite":
        with postgres() as (url, server):
            db = open_database(url)
            try:
                found.append(
                    measure("PostgreSQL", db, scale, looks=asked.looks, prove=asked.prove, server=server)
                )
            finally:
                db.close()
    publish(f"{described}\n\n{report(found)}", asked.output)
    if any(each.median > FIGURE_MS for each in found):
        sys.exit("missed a figure")


if __name__ == "__main__":
    main()
