"""Numbers as people read them in a reason. Two numbers that differ never look alike."""

from __future__ import annotations

import math
from collections.abc import Callable

from service.decision.tally import Tally
from service.decision.verdict import Correction


def e_value(log_e: float) -> str:
    """An e-value from its logarithm; as a power of ten where it would not fit."""
    return _e_value(log_e, 3)


def compared_e_values(log_e: float, log_threshold: float) -> tuple[str, str]:
    """Both e-values, with as many digits as it takes to tell them apart."""
    return _apart(log_e, log_threshold, _e_value)


def compared_shares(first: float, second: float) -> tuple[str, str]:
    """Both shares, with as many digits as it takes to tell them apart."""
    return _apart(first, second, lambda value, digits: f"{value:.{digits}g}")


def units(tally: Tally) -> str:
    """The histogram of conversations by pairs, harms and benefits: `(1, 0, 0) x 978, (1, 1, 0) x 22`."""
    return ", ".join(
        f"({triple.pairs}, {triple.harm}, {triple.benefit}) x {count}"
        for triple, count in sorted(tally.units.items())
        if count
    )


def points(share: float) -> str:
    """A share as percentage points."""
    return f"{100 * share:.3g} pp"


def span(seconds: float) -> str:
    """How long, in the unit that leaves a number people can see: `40 s`, `12 min`, `5 h`, `14 d`."""
    for length, unit in ((86_400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if abs(seconds) >= 2 * length or (abs(seconds) >= length and not seconds % length):
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.0f} s"


def ago(seconds: float) -> str:
    """`5 h ago`."""
    return f"{span(seconds)} ago"


def signed_points(share: float) -> str:
    """A difference in percentage points, with its sign and without the unit."""
    return f"{100 * share:+.2g}" if 0.0 < abs(share) < 0.001 else f"{100 * share:+.1f}"


def corrected(correction: Correction) -> str:
    """What people's labels say of a difference, in one clause."""
    limits = correction.interval
    found = (
        f"{correction.labels} labels: raw {signed_points(correction.raw_estimate)} pp, "
        f"corrected {signed_points(correction.estimate)} pp "
        f"[{signed_points(limits.lower)}, {signed_points(limits.upper)}]"
    )
    if correction.suffices:
        return f"corrected by {found}"
    return f"not yet corrected by {found}: {correction.missing}"


def _apart(first: float, second: float, write: Callable[[float, int], str]) -> tuple[str, str]:
    for digits in range(3, 17):
        texts = write(first, digits), write(second, digits)
        if texts[0] != texts[1] or first == second:
            break
    return texts


def _e_value(log_e: float, digits: int) -> str:
    if log_e == math.inf:
        return "infinity"
    if abs(log_e) > math.log(1e6):
        exponent = math.floor(log_e / math.log(10))
        return f"{math.exp(log_e - exponent * math.log(10)):.{digits}g}e{exponent:+d}"
    text = f"{math.exp(log_e):.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text else text
