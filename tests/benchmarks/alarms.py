"""After approval: how soon the e-detector notices a tier that has become worse, and how often it errs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from service.decision.detector import LOG_ALARM
from service.decision.eprocess import H5, log_factors
from tests.benchmarks.procedure import Rates
from tests.benchmarks.rows import MARGIN, Row, Sizes, share, typical

EARLY = 20_000
"""Units within which a false alarm has at most the chance EARLY / 100,000 (R minus the units: Doob)."""
REFERENCE_LOOKS = 100
"""Units from look to look with which the reference's figures come out."""
BLOCK = 1000
"""Units drawn at a time."""
BACKGROUND = 0.002
"""Chance of harm and of benefit in a tier that is as it was."""


def alarm_units(
    generator: np.random.Generator, rates: Rates, *, streams: int, units: int, every: int = 1
) -> NDArray[np.float64]:
    """The unit of the first alarm of each stream, infinite without one; many streams at once.

    Looked at after `every` so many units.
    """
    factors = np.exp(log_factors(np.array([-1.0, 1.0, 0.0]), -MARGIN, H5)).T
    weights, alarm = np.array(H5.weights), math.exp(LOG_ALARM)
    found = np.full(streams, math.inf)
    running = np.arange(streams)
    state = np.zeros((streams, factors.shape[1]))
    drawn = np.empty((0, 0), dtype=np.int8)
    for unit in range(units):
        at = unit % BLOCK
        if at == 0:
            drawn = outcomes(generator, rates, running.size)
        state = (state + 1) * factors[drawn[at]]
        if (unit + 1) % every:
            continue
        rung = state @ weights >= alarm
        if rung.any():
            found[running[rung]] = unit + 1
            running, state, drawn = running[~rung], state[~rung], drawn[:, ~rung]
            if not running.size:
                break
    return found


def outcomes(generator: np.random.Generator, rates: Rates, streams: int) -> NDArray[np.int8]:
    """0 for a harm, 1 for a benefit, 2 for neither; a row for each of the next units."""
    drawn = generator.random((BLOCK, streams), dtype=np.float32)
    return np.where(drawn < rates.harm, 0, np.where(drawn < rates.harm + rates.benefit, 1, 2)).astype(np.int8)


def alarms(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """Delays after a rise; alarms of tiers that are equal, and exactly at the margin."""
    for rise, median in ((0.04, 593), (0.02, 2381)):
        yield typical(
            alarm_units(
                generator,
                Rates(harm=BACKGROUND + rise, benefit=BACKGROUND),
                streams=sizes.delays,
                units=sizes.horizon,
            ),
            measured="pairs to the alarm, median",
            case=f"after approval, +{rise * 100:g} pp",
            reference=f"{median:,}",
            source="B2.5",
        )
    for rise, name, published in ((0.0, "equal", "0"), (MARGIN, "exactly at the margin", "-")):
        rates = Rates(harm=0.01 + rise / 2, benefit=0.01 - rise / 2)
        found = alarm_units(generator, rates, streams=sizes.delays, units=sizes.alarm_horizon)
        case = f"after approval, {name}, discordance 2 %"
        yield share(
            found <= EARLY,
            measured=f"false alarm within {EARLY:,} units",
            case=case,
            bound=EARLY / math.exp(LOG_ALARM),
            reference="-",
            source="-",
        )
        yield share(
            found <= sizes.alarm_horizon,
            measured=f"false alarm within {sizes.alarm_horizon:,} units",
            case=case,
            reference=published,
            source="B2.5" if published != "-" else "-",
        )
    found = alarm_units(
        generator, rates, streams=sizes.delays, units=sizes.alarm_horizon, every=REFERENCE_LOOKS
    )
    yield share(
        found <= sizes.alarm_horizon,
        measured=f"looked at every {REFERENCE_LOOKS} units: false alarm within {sizes.alarm_horizon:,}",
        case=case,
        reference=".53",
        source="B2.5",
    )
