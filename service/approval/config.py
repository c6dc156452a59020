"""What the API is told at its start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evaluators.rubrics import Rubric
from service.decision.evidence import Attribution
from service.decision.policy import Policy
from service.decision.ramp import AT_ONCE, Promotion
from service.fleet import Ladder
from service.store.access.issuer_terms import IssuerTerms
from service.store.load.job_terms import JobTerms
from service.store.outgoing.gate_terms import NO_GATES, GateTerms
from service.store.redis.capture import Keyring

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjudicating:
    """What adjudication needs: who opens the texts, and what is asked of a side."""

    keyring: Keyring = field(repr=False)
    rubrics: Mapping[str, Rubric]
    """By evaluator."""
    queued: tuple[str, ...]
    """Evaluators whose pairs are queued."""


class WrittenReport(Protocol):
    """A report in one of its forms."""

    @property
    def text(self) -> str: ...
    @property
    def media_type(self) -> str: ...
    @property
    def policy(self) -> str:
        """Content-Security-Policy under which a browser shows it; empty where it is not shown by one."""
        ...

    @property
    def file_name(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When shadow jobs begin by themselves."""

    cron: str
    """As it is configured."""
    timezone: str
    """By whose clock."""
    next_after: Callable[[float], float | None]
    """The first time later than a moment, both unix seconds; None when there is none for years."""


ReportMaker = Callable[[str, str, str, float], WrittenReport]
"""By job, or how its name begins; html, md or json; en or zh; unix seconds. KeyError for an unknown job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiConfig:
    """Everything the API needs besides its stores."""

    ladders: Mapping[str, Ladder]
    policy: Policy
    epoch_of: Callable[[str, str], str]
    """The epoch of (model, tier) that counts now."""
    attribution_of: Callable[[str, str], Attribution | None] = lambda model, tier: None
    """What differs between (model, tier) and its baseline besides the precision; None when not told."""
    evaluators: Mapping[str, str] = field(default_factory=dict)
    """Version by evaluator name; kept with every approval."""
    control_on_serving: bool = False
    """Whether the control may run on backends that serve clients."""
    allowed_hosts: tuple[str, ...] = LOOPBACK_NAMES
    """Host headers answered, without port; a page that rebinds its own name to 127.0.0.1 has another."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of pages elsewhere that may write, such as `https://ops.example`."""
    public_url: str | None = None
    """Where others find this API, `https://HOST[:PORT]`; None: nobody said, and requests alone tell."""
    issuers: tuple[IssuerTerms, ...] = ()
    """Whose JSON Web Tokens are taken beside tokens of ours; each is there once."""
    loopback_reads: bool = True
    """Whether a caller on this machine may read without a token."""
    max_body: int = 64 * 1024
    """Bytes of a request body; larger is 413."""
    body_seconds: float = 10.0
    """How long a body may take to arrive; slower is 408."""
    jobs: JobTerms | None = None
    """What shadow jobs are held to; None: none can begin."""
    schedule: Schedule | None = None
    """None: shadow jobs begin when somebody asks for one."""
    reports: ReportMaker | None = None
    """Writes the reports of shadow jobs; None: there are none."""
    adjudication: Adjudicating | None = None
    """None where texts cannot be opened: then nobody is given any."""
    promotion: Promotion = AT_ONCE
    """How approved tiers get their share of the clients."""
    gates: GateTerms = NO_GATES
    """Gates of GitHub and GitLab that are answered here."""
    attest_key: Ed25519PrivateKey | None = field(default=None, repr=False)
    """Signs statements of decisions that people download; None: none are signed here."""
    probe_seconds: float = 2.0
    """How long a backend may take to say that it is up before a route moves to it."""
