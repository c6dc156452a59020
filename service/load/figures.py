"""What one block showed: figures over its window, whether they may be used, and what they were made of.

    goodput = output tokens of the offered requests that met the SLO / seconds of the window
    pass rate = those requests / requests offered

Offered are the requests scheduled in the window. What failed, in whatever way, is a miss and has no tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from service.engines.load import EngineLoad
from service.load.plan import BlockPlan

OVER_SATURATED, LAGGED = "over_saturated", "generator_lag"
"""How reasons begin that say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Of one time over the requests of the window, in seconds; None where so many never came so far."""

    n: int = 0
    """Requests that have the time or never came so far."""
    mean: float | None = None
    """Of those that have it."""
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p95_lower: float | None = None
    """Limits of level .95 by order statistics; None too with fewer than 72 values."""
    p95_upper: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """How something grew over the window, per second, with limits; it grew if `lower` is above 0."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSample:
    """One look at one backend's engine."""

    at: float
    """Seconds from the start of the block; below 0 before it."""
    backend: str
    load: EngineLoad | None
    """None when it did not answer, or tells nothing that we know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The requests of the window in order of schedule, a column a figure: blocks of equal arrivals pair."""

    scheduled: tuple[float, ...] = ()
    request: tuple[int, ...] = ()
    ttft: tuple[float | None, ...] = ()
    """None when it never had a token, or failed later."""
    tpot: tuple[float | None, ...] = ()
    """None for a failure and with fewer than two tokens."""
    e2e: tuple[float | None, ...] = ()
    tokens: tuple[int, ...] = ()
    """Of output; 0 for a failure."""
    met: tuple[bool, ...] = ()
    """The SLO."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFigures:
    """One block of one arm, over its window."""

    plan: BlockPlan
    offered: int
    passed: int
    """Met the SLO."""
    answered: int = 0
    """Complete answers to anything that was sent, warm-up and cool-down included."""
    failed: Mapping[str, int] = field(default_factory=dict)
    """How many, by fault."""
    without_tpot: int = 0
    """Complete with fewer than two tokens."""
    ttft: Quantiles = Quantiles()
    tpot: Quantiles = Quantiles()
    e2e: Quantiles = Quantiles()
    goodput: float = 0.0
    """Output tokens that met the SLO, a second."""
    throughput: float = 0.0
    """Output tokens of complete answers, a second, whether they met it or not."""
    mean_output_tokens: float | None = None
    """Of a complete answer."""
    without_usage: int = 0
    """Complete answers whose tokens had to be counted by events."""
    count_ratio: float | None = None
    """Events with output for one token of usage: 1 where each token is an event of its own."""
    contradicted: int = 0
    """Complete answers with more events than usage tells of tokens."""
    bytes_per_token: float | None = None
    """Of the output of complete answers, in UTF-8; None where nothing tells."""
    identity_error: float = 0.0
    """Largest |E2E - (TTFT + TPOT (n - 1))|, in seconds; by their definitions no more than rounding."""
    lag_p50: float | None = None
    lag_p99: float | None = None
    """Of how late requests were taken up, in seconds; in a closed loop, of how late its clock rang."""
    asked_rate: float | None = None
    """Requests a second that the schedule has over the window; None in a closed loop."""
    achieved_rate: float = 0.0
    """Requests a second taken up during the window."""
    repeated: int = 0
    """Requests of the window that the block had sent before: a prefix cache may know them."""
    spent_prompt_tokens: int = 0
    spent_output_tokens: int = 0
    """By everything that was sent, warm-up and cool-down included, as far as usage tells."""
    concurrency_slope: Slope | None = None
    """Requests in flight, per second."""
    ttft_slope: Slope | None = None
    """Seconds of TTFT, per second."""
    mean_concurrency: float = 0.0
    """Requests in flight, over the window."""
    invalid: tuple[str, ...] = ()
    """Why the block must not be used; empty when it may."""
    busy_before: tuple[str, ...] = ()
    """Backends that were at work for others when it began, however long they were given to end that."""
    engine: tuple[EngineSample, ...] = ()
    columns: Columns = Columns()

    @property
    def valid(self) -> bool:
        return not self.invalid

    @property
    def over_saturated(self) -> bool:
        """Whether more came than the tier could serve, so that its queue grew."""
        return any(reason.startswith(OVER_SATURATED) for reason in self.invalid)

    @property
    def lagged(self) -> bool:
        """Whether the generator itself was too slow."""
        return any(reason.startswith(LAGGED) for reason in self.invalid)

    @property
    def missed(self) -> int:
        """Did not meet the SLO, failures included."""
        return self.offered - self.passed

    @property
    def pass_rate(self) -> float | None:
        """None when nothing was offered."""
        return self.passed / self.offered if self.offered else None

    def document(self) -> dict[str, object]:
        """As JSON objects have it; `of` reads it."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, object]) -> BlockFigures:
        """From what `document` gave, also after it was JSON; ValueError for anything else."""
        try:
            return _read(document)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no figures of a block: {error!r}") from error


def _read(document: Mapping[str, object]) -> BlockFigures:
    told: dict[str, object] = dict(document)
    told["plan"] = BlockPlan.of(_mapping(told["plan"]))
    for name in ("ttft", "tpot", "e2e"):
        told[name] = Quantiles(**_mapping(told[name]))  # type: ignore[arg-type]
    for name in ("concurrency_slope", "ttft_slope"):
        if told.get(name) is not None:
            told[name] = Slope(**_mapping(told[name]))  # type: ignore[arg-type]
    told["invalid"] = tuple(_listed(told["invalid"]))
    told["busy_before"] = tuple(_listed(told.get("busy_before", ())))
    told["engine"] = tuple(_sample(_mapping(each)) for each in _listed(told["engine"]))
    columns = {name: tuple(_listed(column)) for name, column in _mapping(told["columns"]).items()}
    told["columns"] = Columns(**columns)  # type: ignore[arg-type]
    return BlockFigures(**told)  # type: ignore[arg-type]


def _sample(told: Mapping[str, object]) -> EngineSample:
    load = told["load"]
    return EngineSample(
        at=float(told["at"]),  # type: ignore[arg-type]
        backend=str(told["backend"]),
        load=None if load is None else EngineLoad(**_mapping(load)),  # type: ignore[arg-type]
    )


def _mapping(told: object) -> Mapping[str, object]:
    if not isinstance(told, Mapping):
        raise TypeError(f"an object was expected, not {type(told).__name__}")
    return told


def _listed(told: object) -> list[object]:
    if not isinstance(told, (list, tuple)):
        raise TypeError(f"a list was expected, not {type(told).__name__}")
    return list(told)
