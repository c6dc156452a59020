"""The shape of `tiergate.yaml`: every key, its form, its default and what it means.

Also the source of the JSON Schema.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from service.settings.adjudicating import AdjudicationSection, AdjudicationShape
from service.settings.corpus_shape import CorpusShape
from service.settings.fleet_shape import ModelShape, ProbeShape
from service.settings.forms import (
    Count,
    DatabaseUrl,
    Duration,
    Limit,
    Listen,
    ListenOrSocket,
    Mode,
    Name,
    RedisUrl,
    Section,
    Shape,
    Share,
    Size,
    written,
)
from service.settings.money_shape import MoneyShape
from service.settings.oidc import IssuerShape
from service.settings.pipelines import PipelinesShape
from service.settings.policy_shape import PolicyShape
from service.settings.shadow_job import ShadowJobShape
from service.settings.webhooks import WebhookShape


class CaptureShape(Shape):
    """What a stored exchange may be and for how long."""

    ttl: Duration = written("6h", "Time to live in Redis.")
    max_body: Size = written("8MiB", "Of request plus answer; larger ones are not captured.")
    max_bytes: Size = written("1GiB", "Of all captures waiting in Redis.")
    key_file: str | None = Field(
        default=None,
        description="Capture keys, 32 bytes in hex or base64, one a line; the first seals, the others "
        "still open. Without it a key is made in the state directory.",
    )


class MirrorShape(Shape):
    """Which requests are captured."""

    sample: Share = written("5%", "Of eligible requests.")
    conversation_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")] = Field(
        default="x-conversation-id", description="Request header that names the conversation."
    )
    buffer: Size = written("64MiB", "Of captures one proxy process may hold on to.")
    batch: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=16, description="Most captures per queued task."
    )
    capture: Annotated[CaptureShape, Section] = Field(
        default=CaptureShape(), description="Storage of captures."
    )


class ShadowShape(Shape):
    """How replays are sent."""

    on_serving: bool = Field(
        default=False,
        description="Whether replays may go to backends that serve clients, where a tier has no `shadow`.",
    )
    timeout: Duration = written("5m", "Of one replay.")
    concurrency: Annotated[int, Field(ge=1, le=1024)] = Field(
        default=8, description="Replays at once per worker child."
    )
    tokens_per_day: Count | None = Field(
        default=None, description="Budget of shadow traffic; without it, no limit."
    )
    retries: Annotated[int, Field(ge=0, le=20)] = Field(
        default=3, description="After a fault of the shadow infrastructure."
    )
    repeats: Share = written(
        "0%",
        "Of captures, of which each candidate is asked twice, so that its own noise and the energy distance "
        "are known; one more replay each.",
    )


class TimeoutsShape(Shape):
    """Limits on a backend that answers a client; `none` for no limit."""

    connect: Duration = written("5s", "To open a connection.")
    first_byte: Limit = written("10m", "Until the answer begins.")
    idle: Limit = written("2m", "Between two reads of one answer.")
    total: Limit = written("1h", "For the whole answer.")


class ClientsShape(Shape):
    """Patience with clients."""

    head: Duration = written("30s", "For the whole head of a request.")
    body: Duration = written(
        "1m", "Between two reads of a request body; in that time it must also bring 1KiB a second."
    )
    keep_alive: Duration = written("75s", "Without a request on an open connection.")
    stalled: Limit = written(
        "10m",
        "Without taking a byte of an answer that waits for it; `none` for no limit.",
    )
    max_head: Size = written("64KiB", "Larger heads are answered 431.")
    buffered: Size = written(
        "512MiB",
        "Of request bodies above 64KiB that one proxy process holds until their answers begin; "
        "one more is answered 503.",
    )
    connections: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="Open at once in one proxy process; by default half of the files that it may open. For "
        "one more the longest idle is closed.",
    )


class AccessLogShape(Shape):
    """A JSON line per drawn request, without content."""

    to: Annotated[str, Field(min_length=1)] = Field(
        default="none", description="`none`, `stderr`, `stdout`, or a file, relative to this one."
    )
    sample: Share = written("1%", "Of all requests.")
    errors: Share = written("100%", "Of requests that failed: status 400 and above, answers cut off or late.")


class TlsShape(Shape):
    """The proxy's own certificate; its files are read again when they change."""

    certificate_file: str = Field(description="PEM file of the certificate and its chain.")
    key_file: str = Field(description="PEM file of its private key, without a passphrase.")
    client_ca_file: str | None = Field(
        default=None,
        description="PEM file of authorities; clients without a certificate of theirs are turned away.",
    )


class RoutesShape(Shape):
    """The API, which a proxy asks for routes when Redis cannot tell it any."""

    url: Annotated[str, Field(pattern=r"^https?://[^/@?#\s]+$")] = Field(
        description="The API's base URL, such as `http://tiergate-api:8081`."
    )
    token_file: str | None = Field(
        default=None,
        description="File whose first line is a token of scope read; on one machine none is needed.",
    )


class ProxyShape(Shape):
    """The data plane."""

    listen: ListenOrSocket = written("127.0.0.1:8080", "For clients; or unix:/PATH/OF/SOCKET.")
    socket_mode: Mode = written("0660", "Permissions of that unix socket.")
    tls: TlsShape | None = Field(default=None, description="Speak TLS with clients.")
    admin: Listen = written("127.0.0.1:8082", "For health checks, metrics and reloads.")
    admin_hosts: list[str] = Field(
        default_factory=list,
        description="Host names the admin address answers to, besides loopback and addresses in digits.",
    )
    processes: Annotated[int, Field(ge=1, le=256)] = Field(default=1, description="Sharing the port.")
    timeouts: Annotated[TimeoutsShape, Section] = Field(
        default=TimeoutsShape(), description="Limits on a backend."
    )
    clients: Annotated[ClientsShape, Section] = Field(
        default=ClientsShape(), description="Patience with clients."
    )
    health_every: Limit = written("5s", "Between two health checks of a backend; `none` for none at all.")
    default_model: Name | None = Field(
        default=None, description="Serves requests that name no model; with one model, that one does."
    )
    half_close: bool = Field(
        default=False, description="Whether a client may close its sending side and wait for the answer."
    )
    max_request: Size = written("32MiB", "Larger bodies are answered 413.")
    forward_paths: list[Annotated[str, Field(pattern=r"^/[!-~]*$")]] = Field(
        default_factory=list,
        description="Forwarded besides /v1/, /health, /version, /tokenize and /detokenize; "
        "a trailing slash forwards what is below, but for engines' administrative paths.",
    )
    drain: Duration = written("30s", "For answers under way when the proxy is told to stop.")
    routes: RoutesShape | None = Field(
        default=None, description="Ask the API for routes every 3 s, so that they change while Redis is gone."
    )
    access_log: Annotated[AccessLogShape, Section] = Field(
        default=AccessLogShape(), description="A JSON line per drawn request, without content."
    )


class ApiShape(Shape):
    """The approval API and the dashboard."""

    listen: Listen = written("127.0.0.1:8081", "For people and pipelines.")
    allowed_hosts: list[str] = Field(
        default_factory=list,
        description="Host names it answers to, besides loopback; by these even reading takes a token.",
    )
    allowed_origins: list[Annotated[str, Field(pattern=r"^https?://[^/\s]+$")]] = Field(
        default_factory=list, description="Origins of pages elsewhere that may write."
    )
    public_url: Annotated[str, Field(pattern=r"^https?://[^/\s?#@]+$")] | None = Field(
        default=None,
        description="Where browsers find the dashboard, without a path; with https its cookies are for https "
        "alone.",
    )
    attest_key_file: str | None = Field(
        default=None,
        description="File of the private key (`tiergate attest key`) that signs statements which people "
        "download from the log page.",
    )
    oidc: list[IssuerShape] = Field(
        default_factory=list, description="Issuers whose JSON Web Tokens are taken beside our own tokens."
    )


class StoreShape(Shape):
    """Where captures and evidence live; what is left out is embedded by `tiergate up`."""

    redis: RedisUrl | None = Field(
        default=None, description="URL of Redis (7 or later) or Valkey for captures, the ledger and routes."
    )
    broker: RedisUrl | None = Field(
        default=None,
        description="URL for the task queue; default `redis`. Its eviction policy must be noeviction.",
    )
    database: DatabaseUrl | None = Field(
        default=None, description="SQLAlchemy URL; default SQLite in the state directory."
    )
    state_dir: str = Field(
        default=".tiergate", description="Keys, the embedded database, logs and locks; relative to this file."
    )


class TiergateShape(Shape):
    """The configuration of Tiergate."""

    models: dict[Name, ModelShape] = Field(min_length=1, description="By the name clients send.")
    mirror: Annotated[MirrorShape, Section] = Field(
        default=MirrorShape(), description="Which requests are captured."
    )
    shadow: Annotated[ShadowShape, Section] = Field(
        default=ShadowShape(), description="How replays are sent."
    )
    shadow_job: Annotated[ShadowJobShape, Section] = Field(
        default=ShadowJobShape(), description="Load runs under equal load, and what tiers cost."
    )
    corpus: Annotated[CorpusShape, Section] = Field(
        default=CorpusShape(), description="Requests kept for shadow jobs, answers to be judged again."
    )
    probe: Annotated[ProbeShape, Section] = Field(
        default=ProbeShape(), description="Recall questions made from captured contexts."
    )
    policy: Annotated[PolicyShape, Section] = Field(
        default=PolicyShape(), description="What a tier must show."
    )
    adjudication: AdjudicationSection = Field(
        default=AdjudicationShape(), description="Pairs that people judge."
    )
    money: Annotated[MoneyShape, Section] = Field(
        default=MoneyShape(), description="What failures and operations cost."
    )
    proxy: Annotated[ProxyShape, Section] = Field(default=ProxyShape(), description="The data plane.")
    api: Annotated[ApiShape, Section] = Field(
        default=ApiShape(), description="The approval API and the dashboard."
    )
    pipelines: Annotated[PipelinesShape, Section] = Field(
        default=PipelinesShape(), description="Pipelines of GitHub and GitLab that are answered."
    )
    webhooks: list[WebhookShape] = Field(
        default_factory=list, description="Who is told of decisions, warnings, harm and jobs."
    )
    store: Annotated[StoreShape, Section] = Field(
        default=StoreShape(), description="Where captures and evidence live."
    )
