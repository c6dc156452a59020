"""The part of `tiergate.yaml` under `models`: tiers, backends, service levels, probes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from service.settings.forms import (
    Amount,
    BaseUrl,
    Count,
    Duration,
    HeaderName,
    HeaderValue,
    Limit,
    Name,
    Section,
    Shape,
    Share,
    Size,
    Tokens,
    written,
)

GeneratingPath = Literal["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"]


class HeaderShape(Shape):
    """The value of a header; plain text stands for `{value: TEXT}`. Exactly one key."""

    value: HeaderValue | None = Field(default=None, description="Itself; for what is no secret.")
    file: str | None = Field(default=None, description="File whose first line is the value.")
    env: str | None = Field(default=None, description="Environment variable that holds the value.")


def _value_alone(written: object) -> object:
    return {"value": written} if isinstance(written, str) else written


HeaderForm = Annotated[
    HeaderShape, BeforeValidator(_value_alone, json_schema_input_type=HeaderValue | HeaderShape)
]


class BackendShape(Shape):
    """One inference server; a plain URL stands for `{url: URL}`."""

    url: BaseUrl = Field(description="Scheme, host and port, no path; or unix:/PATH/OF/SOCKET.")
    api_key_file: str | None = Field(
        default=None, description="File whose first line is the backend's API key."
    )
    api_key_env: str | None = Field(
        default=None, description="Environment variable that holds the backend's API key."
    )
    headers: dict[HeaderName, HeaderForm] = Field(
        default_factory=dict,
        description="Sent with every request, in place of what a client sent of those names.",
    )
    ca_file: str | None = Field(
        default=None, description="PEM file of certificates to trust instead of the system's; for https."
    )
    certificate_file: str | None = Field(
        default=None, description="PEM file of our certificate, for a backend that asks for one."
    )
    key_file: str | None = Field(default=None, description="PEM file of that certificate's private key.")
    insecure_skip_verify: bool = Field(
        default=False,
        description="Take whoever answers for the backend: prompts and keys go to anybody in between.",
    )
    max_concurrency: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Requests it can take at once."
    )


def _url_alone(written: object) -> object:
    return {"url": written} if isinstance(written, str) else written


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
    price_per_hour: Amount | None = Field(default=None, description="Of one backend, in `money.currency`.")
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
    planted: Annotated[int, Field(ge=0, le=4)] | None = Field(
        default=None,
        description="Most facts of our own written into a context, where a quarter of its depth has none; "
        "default 0.",
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
    tokens_per_day: Count | None = Field(
        default=None,
        description="Budget of one model's probes, within that of shadow traffic; "
        "without it, none of their own.",
    )


class KvGuardShape(Shape):
    """When a backend's KV cache is too full for new requests, as its metrics page tells."""

    above: Share = Field(description="Share of the cache in use from which new requests wait.")
    below: Share | None = Field(
        default=None, description="Share below which they go on; default a twentieth less than `above`."
    )
    every: Duration = written("1s", "Between two looks at a backend's metrics.")
    stale: Duration = written(
        "5s", "After the last word of a backend; from then on its guard is open and nobody waits for it."
    )


class PriorityShape(Shape):
    """Who of those that wait goes first."""

    short: Tokens = Field(
        description="Prompts of up to so many tokens, estimated, go before longer ones; tenants take turns "
        "among either."
    )
    ahead: Annotated[int, Field(ge=1)] = Field(
        default=4, description="So many in a row at most; then a longer one has its turn."
    )


class LimitsShape(Shape):
    """What one proxy takes of a model's requests, over all its processes."""

    concurrency: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Requests at backends at once; default no limit."
    )
    queue: Annotated[int, Field(ge=0)] = Field(
        default=100, description="Requests that wait for a place at a backend; one more is answered 429."
    )
    queue_timeout: Limit = written("30s", "Of waiting, then 429; `none` for as long as the client does.")
    max_request: Size | None = Field(
        default=None, description="Larger bodies are answered 413; default `proxy.max_request`."
    )
    max_prompt_tokens: Tokens | None = Field(
        default=None, description="Longer prompts are answered 400; estimated from the text."
    )
    max_output_tokens: Tokens | None = Field(
        default=None, description="Requests that ask for more are answered 400."
    )
    require_max_tokens: bool = Field(
        default=False, description="Whether requests that do not say how much they want are answered 400."
    )
    kv_guard: KvGuardShape | None = Field(
        default=None, description="New requests wait while a backend's KV cache is full; default off."
    )
    priority: PriorityShape | None = Field(
        default=None, description="Who waits goes by its turn; with this, short prompts before long ones."
    )
    fallback: Literal["line", "rung_below"] = Field(
        default="line",
        description="While every backend of its tier is full a request waits in `line`, or goes to the next "
        "rung below that has a place (`rung_below`), never above.",
    )


class StructuredShape(Shape):
    """What is expected of a model's answers, besides what its requests say."""

    expects: Literal["none", "json", "jsonl"] = Field(
        default="none",
        description="Answers are to be JSON, or one JSON value a line, though requests do not ask for it.",
    )
    paths: dict[GeneratingPath, Literal["none", "json", "jsonl"]] = Field(
        default_factory=dict,
        description="The same by path, such as /v1/completions: jsonl; the header x-tiergate-expects of a "
        "request goes before it.",
    )
    accept_recoverable: bool = Field(
        default=False, description="JSON in a fence, or with prose around it, passes."
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
    structured_output: Annotated[StructuredShape, Section] = Field(
        default=StructuredShape(), description="What is expected of this model's answers."
    )
    limits: Annotated[LimitsShape, Section] = Field(
        default=LimitsShape(), description="What is taken of this model's requests."
    )
