"""A tier at the margin, submitted again every week with fresh evidence: is it approved at least once?

Every week is an epoch of its own, looked at every ten pairs. The j-th may spend alpha 6 / (pi^2 j^2); for
contrast, every week gets all of alpha: with the e-process, and with one Tango test at the end of the week.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from service.decision import tango
from service.decision.eprocess import G10, log_factors
from service.decision.multiplicity import attempt_alpha
from tests.benchmarks.crossings import mixtures
from tests.benchmarks.rows import ALPHA, MARGIN, PASS, Row, Sizes, share

PAIRS_A_WEEK, STEP = 5000, 10
DISCORDANCE = 0.02
YEAR = 52
REFERENCE = {12: ".435", 52: ".917"}


def week_ends(generator: np.random.Generator, weeks: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each week: the largest log E_NI(margin) at any look, and the p of Tango's test at its end."""
    harm, benefit = (DISCORDANCE + MARGIN) / 2, (DISCORDANCE - MARGIN) / 2
    drawn = generator.multinomial(
        STEP, [harm, benefit, 1 - harm - benefit], size=(weeks, PAIRS_A_WEEK // STEP)
    )
    counts = drawn.cumsum(axis=1).astype(np.float64)
    factors = log_factors(np.array([1.0, -1.0, 0.0]), MARGIN, G10)
    peaks = mixtures(counts @ factors.T, G10).max(axis=1)
    last = counts[:, -1]
    p_values = ndtr(tango.score(last[:, 0], last[:, 1], PAIRS_A_WEEK, MARGIN))
    return np.asarray(peaks), np.asarray(p_values)


def resubmitted(generator: np.random.Generator, sizes: Sizes) -> Iterator[Row]:
    """Approved at least once in 12 and in 52 weeks."""
    ended = [week_ends(generator, YEAR) for _ in range(sizes.years)]
    peaks, p_values = (np.array(each) for each in zip(*ended, strict=True))
    held_to = -np.log([attempt_alpha(ALPHA, attempt) for attempt in range(1, YEAR + 1)])
    rules = (
        ("wrongly approved at least once, alpha spent over attempts", peaks >= held_to, ALPHA, "-", "-"),
        ("for contrast: all of alpha every week", peaks >= PASS, None, "-", "-"),
        ("for contrast: one Tango test a week", p_values <= ALPHA, None, None, "B2.2"),
    )
    for weeks, published in REFERENCE.items():
        for measured, approved, bound, reference, source in rules:
            yield share(
                approved[:, :weeks].any(axis=1),
                measured=measured,
                case=f"a fresh epoch every week, {weeks} weeks, true rise 1 pp",
                bound=bound,
                reference=published if reference is None else reference,
                source=source,
            )
