"""What serves: models, their ladders of tiers, the backends behind each tier, and the route of the moment.

Pure values, built by `service.settings` from the configuration file and handed down to the proxy, the worker
and the API. Backends come from configuration only, never from a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

UNIX = "unix:"
"""Begins the URL of a backend behind a unix socket; its absolute path follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendTls:
    """How a backend proves to us who it is, and we to it; PEM text."""

    ca: str | None = None
    """Trusted instead of the system's certificates."""
    certificate: str | None = None
    """Ours, with its chain."""
    key: str | None = field(default=None, repr=False)
    insecure_skip_verify: bool = False
    """Whoever answers is taken for the backend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One inference server, by base URL (scheme, host, port; no path) or `unix:/PATH/OF/SOCKET`."""

    url: str
    api_key: str | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Sent with every request, in place of what a client sent of those names."""
    tls: BackendTls = BackendTls()
    max_concurrency: int | None = None
    """Requests it can take at once, None when not declared."""

    @property
    def socket(self) -> str | None:
        """The path of its unix socket, None when it is reached by TCP."""
        return self.url.removeprefix(UNIX) if self.url.startswith(UNIX) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One precision configuration of a model behind one or more backends."""

    name: str
    backends: tuple[Backend, ...]
    shadow: tuple[Backend, ...] = ()
    """Where replays, the control and probes go; empty = `backends`, if these serve nobody."""
    model: str
    """What the backends call the model."""
    price_per_hour: float | None = None
    """Per backend, in the policy's currency."""
    declares: Mapping[str, str] = field(default_factory=dict)
    """Recipe as declared: weights, activations, kv_cache, engine, artifact ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """Limits that a request must keep for its tokens to count, in seconds."""

    ttft_seconds: float
    tpot_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KvGuard:
    """When a backend's KV cache is too full for new requests, as its metrics tell."""

    above: float
    """Share in use from which new requests wait."""
    below: float
    """Share in use below which they go on."""
    every: float = 1.0
    """Seconds between two looks."""
    stale: float = 5.0
    """Seconds after its last word from which nobody waits any more."""


class Fallback(StrEnum):
    """What becomes of requests for a tier whose backends are all full."""

    LINE = "line"
    """They wait for it."""
    RUNG_BELOW = "rung_below"
    """They go to the next rung below that has a place, and wait where none has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Priority:
    """Of those who wait, prompts that find room soon go before those that need much of it."""

    short: int
    """Tokens of a prompt, estimated, up to which it goes first."""
    ahead: int = 4
    """So many in a row at most; then a longer one has its turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one proxy takes of a model's requests, over all its processes; None = no limit."""

    concurrency: int | None = None
    """Requests at backends at once."""
    queue: int = 100
    """Requests that wait for a place at a backend; one more is refused."""
    queue_seconds: float | None = 30.0
    """Of waiting, after which a request is refused."""
    max_request: int | None = None
    """Bytes of a request body."""
    max_prompt_tokens: int | None = None
    """Estimated from the text, see `service.proxy.entry.prompts`."""
    max_output_tokens: int | None = None
    """That a request may ask for, over all its answers."""
    require_max_tokens: bool = False
    """Whether a request that generates must say how much."""
    kv_guard: KvGuard | None = None
    """None = backends are not asked for their KV cache."""
    priority: Priority | None = None
    """None = whoever came first, tenants in turn."""
    fallback: Fallback = Fallback.LINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """A model's tiers, least to most aggressive. Rung 0 is the baseline and never moves."""

    model: str
    tiers: tuple[Tier, ...]
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if not self.tiers:
            raise ValueError(f"model {self.model!r} has no tiers")
        names = [tier.name for tier in self.tiers]
        if len(set(names)) != len(names):
            raise ValueError(f"model {self.model!r} names a tier twice: {names}")

    @property
    def baseline(self) -> Tier:
        return self.tiers[0]

    @property
    def candidates(self) -> tuple[Tier, ...]:
        return self.tiers[1:]

    def tier(self, name: str) -> Tier:
        """The tier of that name; KeyError when the ladder has none."""
        for tier in self.tiers:
            if tier.name == name:
                return tier
        raise KeyError(name)

    def rung(self, name: str) -> int:
        """0 for the baseline; KeyError when the ladder has no such tier."""
        return self.tiers.index(self.tier(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Which tiers answer clients of a model now, by weight in per cent (they sum to 100)."""

    model: str
    weights: Mapping[str, int]
    version: int = 0
    """Grows by one with every change in one database."""
    issued_at: float = field(default=0.0, compare=False)
    """Unix seconds at which it was decided, later than any before it in its database; 0 before the first.

    Proxies follow the latest: a database that was made anew or restored begins with a low version, and its
    decisions count all the same.
    """

    def __post_init__(self) -> None:
        if sum(self.weights.values()) != 100 or any(w < 0 for w in self.weights.values()):
            raise ValueError(f"weights of {self.model!r} must be 0..100 and sum to 100: {dict(self.weights)}")

    def is_before(self, other: Route) -> bool:
        """Whether it was decided earlier."""
        return (self.issued_at, self.version) < (other.issued_at, other.version)

    @property
    def serving(self) -> str:
        """The tier with the most weight."""
        return max(self.weights, key=lambda name: self.weights[name])

    @classmethod
    def only(cls, model: str, tier: str, version: int = 0) -> Route:
        return cls(model=model, weights={tier: 100}, version=version)
