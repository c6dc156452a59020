"""`make simulate`: how often the decision errs and how long it takes, simulated, as a Markdown table.

`make simulate SIMULATE="--long"` repeats everything three times as often; `--seed` draws other epochs. Exits
with 1 if an error rate is above its bound by more than three standard errors.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import fields, replace

import numpy as np

from tests.benchmarks.alarms import alarms
from tests.benchmarks.completion import order_of_completion
from tests.benchmarks.ends import ends
from tests.benchmarks.ladders import four_tiers, one_tier
from tests.benchmarks.load_runs import money, single_looks, slo
from tests.benchmarks.naive import naive_looks
from tests.benchmarks.rows import Row, Sizes
from tests.benchmarks.strata import worst_stratum
from tests.benchmarks.streams import boundary, clustered, clusters_to_pass, to_pass, to_reject
from tests.benchmarks.turns import late_damage
from tests.benchmarks.weeks import resubmitted
from tests.benchmarks.whole import whole

PARTS = (
    boundary,
    naive_looks,
    clustered,
    late_damage,
    order_of_completion,
    to_pass,
    clusters_to_pass,
    to_reject,
    one_tier,
    four_tiers,
    single_looks,
    slo,
    money,
    whole,
    worst_stratum,
    ends,
    resubmitted,
    alarms,
)
HORIZONS = ("horizon", "ladder_horizon", "alarm_horizon", "ladder_step")
"""Sizes that are lengths, not repeats."""
LONGER = 3


def written(row: Row) -> str:
    """One line of the table: rates with three digits, pairs as whole numbers."""

    is_rate = row.found <= 1

    def number(value: float | None, digits: int) -> str:
        if value is None:
            return "-"
        if not math.isfinite(value):
            return "never"
        return f"{value:.{digits}f}" if is_rate else f"{value:,.0f}"

    bound = "" if row.bound is None else f"at most {row.bound:g}"
    cells = (
        row.measured,
        row.case,
        number(row.found, 3),
        number(row.error, 4),
        bound,
        row.reference,
        row.source,
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make simulate SIMULATE=...", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--long", action="store_true", help=f"{LONGER} times the repeats")
    asked = parser.parse_args()
    sizes = Sizes()
    if asked.long:
        repeats = {each.name for each in fields(sizes)} - set(HORIZONS)
        sizes = replace(sizes, **{name: LONGER * getattr(sizes, name) for name in repeats})
    print(
        f"Seed {asked.seed}; {sizes.boundary:,} epochs at the margin, {sizes.clustered:,} of conversations,"
    )
    print(f"{sizes.pairs:,} for pairs, {sizes.ladders:,} ladders ({sizes.gated:,} with load runs).\n")
    print("| measured | case | found | standard error | must be | reference | source |")
    print("|---|---|---|---|---|---|---|")
    exceeded = []
    for part in PARTS:
        started = time.monotonic()
        # By name, so that a new part leaves the others' figures as they are.
        for row in part(np.random.default_rng([asked.seed, *part.__name__.encode()]), sizes):
            print(written(row), flush=True)
            exceeded += [row] if row.exceeded else []
        print(f"{part.__name__}: {time.monotonic() - started:.0f} s", file=sys.stderr)
    if exceeded:
        sys.exit("above its bound: " + "; ".join(f"{row.measured} ({row.case})" for row in exceeded))


if __name__ == "__main__":
    main()
