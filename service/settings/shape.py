"""The shape of `tiergate.yaml`: every key, its form, its default and what it means.

Also the source of the JSON Schema.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from service.settings import units

T = TypeVar("T")


def _text(pattern: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": list(examples)})


def _text_or_number(pattern: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema(
        {"anyOf": [{"type": "string", "pattern": pattern}, {"type": "number"}], "examples": list(examples)}
    )


def _base_url(written: str) -> str:
    parts = urlsplit(written)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"expected http://HOST:PORT or https://HOST:PORT, got {written!r}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("credentials do not belong in a URL; use api_key_file")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(
            f"leave out {written.partition(parts.netloc)[2]!r}: a backend's URL ends with the port,"
            " and the client's own path is appended"
        )
    if parts.port == 0:
        raise ValueError("port 0 cannot be connected to")
    return f"{parts.scheme}://{parts.netloc}"


def _url_alone(written: object) -> object:
    return {"url": written} if isinstance(written, str) else written


def _kept(name: str) -> str:
    if not name or any(ord(character) < 0x21 or ord(character) == 0x7F for character in name):
        raise ValueError("a name is printable text without spaces")
    if "/" in name and name.strip("/") != name:
        raise ValueError("a name neither begins nor ends with a slash")
    return name


def _empty_means_defaults(written: object) -> object:
    return {} if written is None else written


Duration = Annotated[
    float, BeforeValidator(units.seconds), Field(gt=0), _text(units.DURATION_PATTERN, "1500ms", "6h")
]
Limit = Annotated[
    float | None,
    BeforeValidator(units.limit_seconds),
    _text(units.DURATION_PATTERN[:-1] + "$|^none$", "120s", "none"),
]
Size = Annotated[int, BeforeValidator(units.size), Field(gt=0), _text(units.SIZE_PATTERN, "8MiB", "1GiB")]
Share = Annotated[float, BeforeValidator(units.share), _text_or_number(units.SHARE_PATTERN, "5%")]
Points = Annotated[float, BeforeValidator(units.points), _text_or_number(units.POINTS_PATTERN, "1pp")]
Count = Annotated[int, BeforeValidator(units.count), _text_or_number(units.COUNT_PATTERN, "20M", "300")]
Factor = Annotated[float, BeforeValidator(units.factor), _text_or_number(units.FACTOR_PATTERN, "6x")]
Listen = Annotated[
    units.Listen, BeforeValidator(units.listen), _text(units.LISTEN_PATTERN, "127.0.0.1:8080", "[::1]:8080")
]
BaseUrl = Annotated[str, AfterValidator(_base_url)]
Name = Annotated[str, AfterValidator(_kept)]
Section = BeforeValidator(_empty_means_defaults)
"""A key with nothing after it means its defaults."""


class Shape(BaseModel):
    """Strict about keys, and about truth values and text: `"yes"` is no bool, 1 is no name."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class BackendShape(Shape):
    """One inference server; a plain URL stands for `{url: URL}`."""

    url: BaseUrl = Field(description="Scheme, host and port; no path.")
    api_key_file: str | None = Field(
        default=None, description="File whose first line is the backend's API key."
    )
    api_key_env: str | None = Field(
        default=None, description="Environment variable that holds the backend's API key."
    )
    max_concurrency: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Requests it can take at once."
    )


BackendForm = Annotated[
    BackendShape,
    BeforeValidator(_url_alone, json_schema_input_type=BaseUrl | BackendShape),
]


class TierShape(Shape):
    """One precision configuration of a model."""

    tier: Name = Field(description="Name of the tier, such as bf16 or w8a8.")
    backends: list[BackendForm] = Field(min_length=1, description="Where clients' requests go.")
    shadow: list[BackendForm] = Field(
        default_factory=list,
        description="Where replays, the control and probes go; default: `backends`, if these serve nobody.",
    )
    model: Name | None = Field(
        default=None, description="What the backends call the model, if otherwise than clients."
    )
    price_per_hour: Annotated[float, Field(ge=0, strict=False)] | None = Field(
        default=None, description="Of one backend, in `money.currency`."
    )
    declares: dict[str, str] = Field(
        default_factory=dict,
        description="The recipe: weights, activations, kv_cache, engine, artifact ...; "
        "a change starts a new epoch of evidence.",
    )


class SloShape(Shape):
    """Limits a request must keep for its tokens to count."""

    ttft: Duration = Field(description="Time to first token.")
    tpot: Duration = Field(description="Time per output token after the first.")


class ProbeShape(Shape):
    """Recall questions made from captured contexts; what a model leaves out is taken from the top level."""

    per_capture: Annotated[int, Field(ge=0, le=64)] | None = Field(
        default=None, description="Most probes per captured request; default 4."
    )
    min_context_chars: Count | None = Field(
        default=None, description="Shorter contexts get no probes; default 2000."
    )
    max_tokens: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Of a probe's answer; thinking models need 1024. Default 128."
    )
    extra_body: dict[str, object] | None = Field(
        default=None,
        description="Added to a probe's body, such as chat_template_kwargs: {enable_thinking: false}.",
    )


class ModelShape(Shape):
    """One model: its ladder of tiers."""

    ladder: list[TierShape] = Field(
        min_length=1, description="Least to most aggressive; the first is the baseline and never moves."
    )
    slo: SloShape | None = Field(default=None, description="Service level that tokens must meet to count.")
    probe: Annotated[ProbeShape, Section] = Field(
        default=ProbeShape(), description="This model's own probe settings."
    )


class CaptureShape(Shape):
    """What a stored exchange may be and for how long."""

    ttl: Duration = Field(default=6 * 3600.0, description="Time to live in Redis.")
    max_body: Size = Field(
        default=8 * 2**20, description="Of request plus answer; larger ones are not captured."
    )
    max_bytes: Size = Field(default=2**30, description="Of all captures waiting in Redis.")
    key_file: str | None = Field(
        default=None,
        description="Capture keys, 32 bytes in hex or base64, one a line; the first seals, the others "
        "still open. Without it a key is made in the state directory.",
    )


class MirrorShape(Shape):
    """Which requests are captured."""

    sample: Share = Field(default=0.05, description="Of eligible requests.")
    conversation_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]+$")] = Field(
        default="x-conversation-id", description="Request header that names the conversation."
    )
    buffer: Size = Field(default=64 * 2**20, description="Of captures one proxy process may hold on to.")
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
    timeout: Duration = Field(default=300.0, description="Of one replay.")
    concurrency: Annotated[int, Field(ge=1, le=1024)] = Field(
        default=8, description="Replays at once per worker child."
    )
    tokens_per_day: Count | None = Field(
        default=None, description="Budget of shadow traffic; without it, no limit."
    )
    retries: Annotated[int, Field(ge=0, le=20)] = Field(
        default=3, description="After a fault of the shadow infrastructure."
    )


class CriterionShape(Shape):
    """One evaluator's hypothesis; what it leaves out is taken from the policy."""

    hypothesis: Literal["non_inferior", "equivalent"] | None = Field(
        default=None, description="Default non_inferior, for refusal equivalent."
    )
    margin: Points | None = Field(default=None, description="Largest tolerable rise of the failure rate.")
    min_pairs: Annotated[Count, Field(ge=1)] | None = Field(
        default=None, description="Fewer pairs decide nothing."
    )
    baseline_failure_cap: Share | None = Field(
        default=None,
        description="Above this share of baseline failures the criterion measures nothing. Default 50%.",
    )


class AlphaShape(Shape):
    """Error rates."""

    accept: Share = Field(default=0.05, description="Of accepting a tier that is worse than the margin.")
    harm: Share = Field(
        default=0.05, description="Of rejecting a tier that is not worse, over all criteria and tiers."
    )
    warn: Share = Field(default=0.05, description="Of warning of a tier that is not worse at all.")


Asking = Literal["required", "off"]


class GatesShape(Shape):
    """Conditions besides quality; `off` is printed as `not asked` with every verdict."""

    control: Asking = Field(
        default="required", description="The baseline against itself shows no difference."
    )
    coverage: Asking = Field(
        default="required", description="Every stratum of the traffic is in the evidence."
    )
    slo: Asking = Field(
        default="required", description="A load run shows that the SLO pass rate did not drop."
    )
    money: Asking = Field(default="required", description="A load run shows a net benefit.")


class PolicyShape(Shape):
    """What a tier must show."""

    margin: Points = Field(
        default=0.01, description="Largest tolerable rise of a failure rate; per criterion below."
    )
    min_pairs: Annotated[Count, Field(ge=1)] = Field(default=300, description="Fewer pairs decide nothing.")
    alpha: Annotated[AlphaShape, Section] = Field(default=AlphaShape(), description="Error rates.")
    criteria: dict[str, Annotated[CriterionShape, Section]] = Field(
        default_factory=dict, description="By evaluator; without it, every evaluator."
    )
    gates: Annotated[GatesShape, Section] = Field(
        default=GatesShape(), description="Conditions besides quality."
    )
    on_harm: Literal["roll_back", "ask"] = Field(
        default="roll_back", description="What the guard does when a promoted tier is shown to harm."
    )
    max_unscored: Share = Field(default=0.01, description="Largest share of pairs without a score.")


class FailureShape(Shape):
    """What a failed answer costs, in multiples of the baseline's cost of one request."""

    retry: Factor = Field(default=1.0, description="Each failure is tried again.")
    escalate: Factor = Field(default=6.0, description="Some go to a bigger model.")
    escalate_share: Share = Field(default=0.5, description="How many of them.")


class MoneyShape(Shape):
    """What failures and operations cost."""

    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = Field(
        default="USD", description="ISO 4217 code."
    )
    failure: Annotated[FailureShape, Section] = Field(
        default=FailureShape(), description="Cost of one failure."
    )
    operations_per_request: Annotated[float, Field(ge=0, strict=False)] = Field(
        default=0.0, description="Cost of running one more tier, per request, in the currency."
    )


class TimeoutsShape(Shape):
    """Limits on a backend that answers a client; `none` for no limit."""

    connect: Duration = Field(default=5.0, description="To open a connection.")
    first_byte: Limit = Field(default=600.0, description="Until the answer begins.")
    idle: Limit = Field(default=120.0, description="Between two reads of one answer.")
    total: Limit = Field(default=3600.0, description="For the whole answer.")


class ProxyShape(Shape):
    """The data plane."""

    listen: Listen = Field(default=units.Listen(host="127.0.0.1", port=8080), description="For clients.")
    admin: Listen = Field(
        default=units.Listen(host="127.0.0.1", port=8082), description="For health checks and metrics."
    )
    processes: Annotated[int, Field(ge=1, le=256)] = Field(default=1, description="Sharing the port.")
    timeouts: Annotated[TimeoutsShape, Section] = Field(
        default=TimeoutsShape(), description="Limits on a backend."
    )
    max_request: Size = Field(default=32 * 2**20, description="Larger bodies are answered 413.")
    forward_paths: list[Annotated[str, Field(pattern=r"^/[!-~]*$")]] = Field(
        default_factory=list,
        description="Forwarded besides /v1/, /health, /version, /tokenize and /detokenize; "
        "a trailing slash forwards everything below.",
    )
    drain: Duration = Field(default=30.0, description="For answers under way when the proxy is told to stop.")


class ApiShape(Shape):
    """The approval API and the dashboard."""

    listen: Listen = Field(
        default=units.Listen(host="127.0.0.1", port=8081), description="For people and pipelines."
    )
    allowed_hosts: list[str] = Field(
        default_factory=list, description="Host names it answers to, besides loopback."
    )
    allowed_origins: list[Annotated[str, Field(pattern=r"^https?://[^/\s]+$")]] = Field(
        default_factory=list, description="Origins of pages elsewhere that may write."
    )


class StoreShape(Shape):
    """Where captures and evidence live; what is left out is embedded by `tiergate up`."""

    redis: Annotated[str, Field(pattern=r"^(rediss?|unix)://")] | None = Field(
        default=None, description="URL of Redis or Valkey for captures, the ledger and routes."
    )
    broker: Annotated[str, Field(pattern=r"^rediss?://")] | None = Field(
        default=None,
        description="URL for the task queue; default `redis`. Its eviction policy must be noeviction.",
    )
    database: Annotated[str, Field(pattern=r"^(sqlite|postgresql)(\+\w+)?://")] | None = Field(
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
    probe: Annotated[ProbeShape, Section] = Field(
        default=ProbeShape(), description="Recall questions made from captured contexts."
    )
    policy: Annotated[PolicyShape, Section] = Field(
        default=PolicyShape(), description="What a tier must show."
    )
    money: Annotated[MoneyShape, Section] = Field(
        default=MoneyShape(), description="What failures and operations cost."
    )
    proxy: Annotated[ProxyShape, Section] = Field(default=ProxyShape(), description="The data plane.")
    api: Annotated[ApiShape, Section] = Field(
        default=ApiShape(), description="The approval API and the dashboard."
    )
    store: Annotated[StoreShape, Section] = Field(
        default=StoreShape(), description="Where captures and evidence live."
    )
