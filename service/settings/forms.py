"""The forms a value can have in `tiergate.yaml`, each with its JSON Schema, and what its mappings share."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from service.fleet import UNIX
from service.settings import units
from service.settings.cron import CRON_PATTERN, cron
from service.settings.urls import web_url

HEADERS_NOT_OURS = frozenset(
    {
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-request-id",
    }
)
"""They frame, describe or name one request, so that no configuration can know their value."""


def _text(pattern: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": list(examples)})


def _text_or_number(pattern: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema(
        {"anyOf": [{"type": "string", "pattern": pattern}, {"type": "number"}], "examples": list(examples)}
    )


def _base_url(written: str) -> str:
    if written.startswith(UNIX):
        return f"{UNIX}{units.socket_path(written)}"
    expected = f"expected http://HOST:PORT, https://HOST:PORT or unix:/PATH/OF/SOCKET, got {written!r}"
    own = "credentials do not belong in a URL; use api_key_file"
    parts = web_url(written, expected=expected, credentials=own)
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        rest = written.partition("://")[2].removeprefix(parts.netloc)
        raise ValueError(
            f"leave out {rest!r}: a backend's URL ends with the port, and the client's own path is appended"
        )
    return f"{parts.scheme}://{parts.netloc}"


def redis_url_of(written: str) -> str:
    """Checks a Redis URL; ValueError never repeats it, since it may hold a password."""
    expected = "expected redis://HOST:PORT/DATABASE or rediss://..."
    try:
        parts = urlsplit(written)
        usable = parts.scheme in ("redis", "rediss") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or (parts.path.strip("/") and not parts.path.strip("/").isdecimal()):
        raise ValueError(expected)
    return written


def database_url_of(written: str) -> str:
    """Checks the kind of database; ValueError never repeats the URL, since it may hold a password."""
    if not re.match(r"(sqlite(\+pysqlite)?:///|postgres(ql)?(\+psycopg)?://)", written):
        raise ValueError("expected sqlite:////PATH/tiergate.db or postgresql://USER:PASSWORD@HOST/NAME")
    return written


def _kept(name: str) -> str:
    if not name or " " in name or not name.isprintable():
        raise ValueError("a name is printable text without spaces")
    if "/" in name and name.strip("/") != name:
        raise ValueError("a name neither begins nor ends with a slash")
    if {".", ".."} & set(name.split("/")):
        raise ValueError("`.` and `..` are no names: they would change the path of the API's address")
    return name


def _header_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):
        raise ValueError("a header's name has letters, digits and -, no spaces and no colon")
    if name.lower() in HEADERS_NOT_OURS or name.lower().startswith("x-tiergate-"):
        raise ValueError(f"{name} is written by the proxy itself, for every request anew; leave it out")
    return name


HEADER_VALUE_EXPECTED = "a header's value is printable ASCII on one line, without spaces around it"


def is_header_value(value: str) -> bool:
    """Whether it can be sent as it is; who could write a line end could write another header."""
    return re.fullmatch(r"[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?", value) is not None


def _header_value(value: str) -> str:
    if not is_header_value(value):
        raise ValueError(HEADER_VALUE_EXPECTED)
    return value


def _cron(written: str) -> str:
    cron(written)
    return written


def _empty_means_defaults(written: object) -> object:
    return {} if written is None else written


Amount = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False, strict=False)]
"""Of a currency; figures that are made with more are none."""
Duration = Annotated[
    float, BeforeValidator(units.seconds), Field(gt=0), _text(units.DURATION_PATTERN, "1500ms", "6h")
]
Limit = Annotated[
    float | None,
    BeforeValidator(units.limit_seconds),
    _text(units.DURATION_PATTERN[:-1] + "$|^none$", "120s", "none"),
]
Age = Annotated[
    Annotated[float, Field(gt=0)] | None,
    BeforeValidator(units.limit_seconds),
    _text(units.DURATION_PATTERN[:-1] + "$|^none$", "30d", "none"),
]
"""A duration after which something ends: none at all, or more than nothing."""
Size = Annotated[int, BeforeValidator(units.size), Field(gt=0), _text(units.SIZE_PATTERN, "8MiB", "1GiB")]
Share = Annotated[float, BeforeValidator(units.share), _text_or_number(units.SHARE_PATTERN, "5%")]
Points = Annotated[float, BeforeValidator(units.points), _text_or_number(units.POINTS_PATTERN, "1pp")]
Count = Annotated[int, BeforeValidator(units.count), _text_or_number(units.COUNT_PATTERN, "20M", "300")]
Tokens = Annotated[
    int,
    BeforeValidator(units.count),
    Field(ge=1),
    _text_or_number(units.COUNT_PATTERN, "32k", "32768"),
]
Factor = Annotated[float, BeforeValidator(units.factor), _text_or_number(units.FACTOR_PATTERN, "6x")]
Rate = Annotated[
    float, BeforeValidator(units.rate), Field(gt=0, le=10_000), _text(units.RATE_PATTERN, "4/s", "30/m")
]
CronText = Annotated[str, AfterValidator(_cron), _text(CRON_PATTERN, "0 3 * * 1")]
Listen = Annotated[
    units.Listen, BeforeValidator(units.listen), _text(units.LISTEN_PATTERN, "127.0.0.1:8080", "[::1]:8080")
]
ListenOrSocket = Annotated[
    units.Listen,
    BeforeValidator(units.listen_or_socket),
    _text(f"{units.LISTEN_PATTERN}|{units.SOCKET_PATTERN}", "127.0.0.1:8080", "unix:/run/tiergate.sock"),
]
Mode = Annotated[int, BeforeValidator(units.mode), _text_or_number(units.MODE_PATTERN, "0660")]
HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[str, AfterValidator(_header_value)]
BaseUrl = Annotated[str, AfterValidator(_base_url)]
RedisUrl = Annotated[str, AfterValidator(redis_url_of)]
DatabaseUrl = Annotated[str, AfterValidator(database_url_of)]
Name = Annotated[str, AfterValidator(_kept)]
Section = BeforeValidator(_empty_means_defaults)
"""A key with nothing after it means its defaults."""


def written(default: str, description: str) -> Any:
    """A field whose default has the form that people write, as the JSON Schema shows it."""
    return Field(default=default, description=description)


class Shape(BaseModel):
    """Strict about keys, and about truth values and text: `"yes"` is no bool, 1 is no name."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)
