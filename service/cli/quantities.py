"""Numbers on a command line, written as in `tiergate.yaml`: `1pp`, `5%`, `200k`, `90s`; or `0.01`.

Read when they are given, so that `--help` does not wait for pydantic.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import typer


def points(written: str | float) -> float:
    """`1pp` or `0.01`."""
    from service.settings import units

    return _read(units.points, written)


def signed_points(written: str | float) -> float:
    """`-0.3pp`, `0.3pp` or `0.003`: a difference may be for the better."""
    text = str(written).strip()
    return -points(text[1:]) if text.startswith("-") else points(text)


def share(written: str | float) -> float:
    """`5%` or `0.05`."""
    from service.settings import units

    return _read(units.share, written)


def count(written: str | float) -> float:
    """`200k` or `200000`; not always whole, as an average is."""
    from service.settings import units

    return _read(units.count, written)


def factor(written: str | float) -> float:
    """`2.1x` or `2.1`."""
    from service.settings import units

    return _read(units.factor, written)


def duration(written: str | float, option: str = "") -> float:
    """`90s` or `2h`, in seconds; of an option that is named where Typer does not."""
    from service.settings import units

    if isinstance(written, float):
        return written
    try:
        return float(units.seconds(written))
    except ValueError as error:
        raise typer.BadParameter(f"{option}: {error}" if option else str(error)) from None


def _read(read: Callable[[object], float], written: str | float) -> float:
    number: object = written
    with suppress(ValueError):
        number = float(written)  # every way in which Python writes a number, such as 1e-3
    try:
        return float(read(number))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
