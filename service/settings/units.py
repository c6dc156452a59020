"""Quantities as people write them: `1500ms`, `6h`, `8MiB`, `5%`, `1pp`, `20M`, `127.0.0.1:8080`.

Each reader takes what YAML made of the text and returns one number in the unit its name says; ValueError
names the form that was expected. Plain numbers are taken only where no unit can be meant (shares and counts).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
MULTIPLES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9}

DURATION_PATTERN = r"^\d+(\.\d+)?\s*(ms|s|m|h|d)$"
SIZE_PATTERN = r"^\d+(\.\d+)?\s*(B|kB|MB|GB|KiB|MiB|GiB)$"
SHARE_PATTERN = r"^\d+(\.\d+)?\s*%$"
POINTS_PATTERN = r"^\d+(\.\d+)?\s*(pp|%)$"
COUNT_PATTERN = r"^\d+(\.\d+)?\s*[kKMG]?$"
FACTOR_PATTERN = r"^\d+(\.\d+)?\s*x$"
RATE_PATTERN = r"^\d+(\.\d+)?\s*/\s*(s|m|h)$"
LISTEN_PATTERN = r"^(\[[0-9a-fA-F:]+\]|[^\s:\[\]]+):\d{1,5}$"
SOCKET_PATTERN = r"^unix:/[^\x00]+$"
MODE_PATTERN = r"^0?[0-7]{3}$"
LARGEST_FACTOR = 1e9
"""Beyond it no figure that is made with one has a meaning, and with much larger ones none is finite."""
LONGEST_SOCKET = 107
"""Bytes of a unix socket's path that the kernel takes."""

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z%]*)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """An address to bind."""

    host: str = ""
    port: int = 0
    """0 = any free port."""
    path: str | None = None
    """Of a unix socket, which has neither host nor port."""

    def __str__(self) -> str:
        if self.path is not None:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def url(self, scheme: str = "http") -> str:
        """By which this machine reaches a server that is bound here; `unix:/PATH` for a unix socket."""
        if self.path is not None:
            return str(self)
        # A server bound to every address is also on loopback.
        loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}
        return f"{scheme}://{Listen(host=loopback.get(self.host, self.host), port=self.port)}"


def seconds(written: object) -> float:
    """`1500ms`, `90s`, `3m`, `6h`, `7d`, in seconds."""
    number, unit = _split(written, "a duration with its unit, such as 1500ms, 90s, 6h")
    if unit not in SECONDS:
        raise ValueError(_unit_error(written, "duration", SECONDS))
    return number * SECONDS[unit]


def limit_seconds(written: object) -> float | None:
    """A duration, or `none` for no limit."""
    return None if written is None or written == "none" else seconds(written)


def size(written: object) -> int:
    """`8MiB`, `1GiB`, `500kB`, in bytes."""
    number, unit = _split(written, "a size with its unit, such as 8MiB, 1GiB")
    if unit not in BYTES:
        raise ValueError(_unit_error(written, "size", BYTES))
    return _whole(number * BYTES[unit], written)


def share(written: object) -> float:
    """`5%` or `0.05`, as a share from 0 to 1."""
    if _is_number(written):
        number = float(written)  # type: ignore[arg-type]
    else:
        number, unit = _split(written, "a share, such as 5% or 0.05")
        if unit not in ("%", ""):
            raise ValueError(_unit_error(written, "share", {"%": 1}))
        number = number / 100 if unit == "%" else number
    if not 0 <= number <= 1:
        bare = _is_number(written) or "%" not in str(written)
        hint = f"; write {number:g}% if that is meant" if bare and 1 < number <= 100 else ""
        raise ValueError(f"a share lies between 0% and 100%, got {written}{hint}")
    return number


def points(written: object) -> float:
    """`1pp` or `0.01`: percentage points, as a share."""
    as_share = written
    if isinstance(written, str) and written.strip().endswith("pp"):
        as_share = written.strip()[:-2].strip() + "%"
    try:
        return share(as_share)
    except ValueError:
        above = _is_number(written) and 1 < float(written) <= 100  # type: ignore[arg-type]
        hint = f"; write {written:g}pp if that is meant" if above else ""
        raise ValueError(
            f"expected percentage points from 0pp to 100pp, such as 1pp or 0.01, got {written!r}{hint}"
        ) from None


def count(written: object) -> int:
    """`20M`, `500k`, `300`."""
    if _is_number(written):
        return _whole(float(written), written)  # type: ignore[arg-type]
    number, unit = _split(written, "a count, such as 300, 500k, 20M")
    if unit not in MULTIPLES:
        raise ValueError(_unit_error(written, "count", MULTIPLES))
    return _whole(number * MULTIPLES[unit], written)


def factor(written: object) -> float:
    """`6x` or `6`: a multiple of something named by the key."""
    if _is_number(written):
        number = float(written)  # type: ignore[arg-type]
    else:
        number, unit = _split(written, "a multiple, such as 6x")
        if unit not in ("x", ""):
            raise ValueError(_unit_error(written, "multiple", {"x": 1}))
    if not 0 <= number <= LARGEST_FACTOR:
        raise ValueError(f"a multiple lies between 0x and {LARGEST_FACTOR:,.0f}x, got {written}")
    return number


def rate(written: object) -> float:
    """`4/s`, `30/m`, in requests a second."""
    match = (
        re.fullmatch(r"(\d+(?:\.\d+)?)\s*/\s*([smh])", written.strip()) if isinstance(written, str) else None
    )
    if match is None:
        raise ValueError(f"expected requests by time, such as 4/s or 30/m, got {written!r}")
    return float(match[1]) / SECONDS[match[2]]


def listen(written: object) -> Listen:
    """`127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`."""
    if not isinstance(written, str) or not re.fullmatch(LISTEN_PATTERN.strip("^$"), written):
        raise ValueError(f"expected HOST:PORT, such as 127.0.0.1:8080, got {written!r}")
    host, _, port = written.rpartition(":")
    if int(port) > 65535:
        raise ValueError(f"a port is at most 65535, got {port}")
    return Listen(host=host.strip("[]"), port=int(port))


def socket_path(written: str) -> str:
    """The path of `unix:/run/tiergate.sock`."""
    path = written.removeprefix("unix:")
    if not path.startswith("/") or "\0" in path or path.endswith("/"):
        raise ValueError(f"expected unix:/ABSOLUTE/PATH of a socket, got {written!r}")
    if len(path.encode()) > LONGEST_SOCKET:
        raise ValueError(f"the path of a unix socket has at most {LONGEST_SOCKET} bytes, got {written!r}")
    return path


def listen_or_socket(written: object) -> Listen:
    """`127.0.0.1:8080`, `[::1]:8080`, or `unix:/run/tiergate.sock`."""
    if isinstance(written, str) and written.startswith("unix:"):
        return Listen(path=socket_path(written))
    return listen(written)


def mode(written: object) -> int:
    """`0660`, with or without quotes: permissions as chmod has them."""
    text = str(written)
    if isinstance(written, bool) or not re.fullmatch(MODE_PATTERN.strip("^$"), text):
        raise ValueError(f"expected permissions in octal, such as 0660, got {written!r}")
    return int(text, 8)


def _is_number(written: object) -> bool:
    return isinstance(written, int | float) and not isinstance(written, bool)


def _split(written: object, expected: str) -> tuple[float, str]:
    match = _QUANTITY.fullmatch(str(written).strip()) if isinstance(written, str | int | float) else None
    if match is None or isinstance(written, bool):
        raise ValueError(f"expected {expected}, got {written!r}")
    number = float(match[1])
    if not math.isfinite(number):
        raise ValueError(f"expected {expected}, got a number beyond all measure")
    return number, match[2]


def _unit_error(written: object, what: str, units: dict[str, int] | dict[str, float]) -> str:
    known = ", ".join(unit for unit in units if unit)
    return f"{written!r} is not a {what}: write a number with one of {known}"


def _whole(number: float, written: object) -> int:
    if not math.isfinite(number) or number < 0 or number != round(number):
        raise ValueError(f"expected a whole number of at least 0, got {written!r}")
    return round(number)
