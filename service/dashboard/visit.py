"""One request to a page: who asks, for what, in which language; and the form that somebody sends."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request

from service.approval.access import Caller, Scope
from service.approval.errors import Problem, echo
from service.approval.schemas import storable
from service.dashboard.sessions import Session
from service.report.words import Language

LIVE = "x-tiergate-live"
"""Header of a page that asks for itself again."""
MOST_FIELDS = 100
MOST_TEXT = 4000
"""Characters of a field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What pages are made for."""

    request: Request
    caller: Caller
    """Whom the door let in; of an open page nobody."""
    session: Session | None
    """None for who reads without logging in: on this machine, or with a token in a header."""
    language: Language
    csrf: str
    """What a form has to send back; empty without a session."""
    now: float
    """Unix seconds."""
    models: tuple[str, ...]
    """Those the caller may know of, in the configuration's order."""

    def may(self, scope: Scope) -> bool:
        """Whether the caller may do here what takes this scope; all but reading takes a session."""
        return self.caller.may(scope) and (scope is Scope.READ or self.session is not None)

    @property
    def live(self) -> bool:
        """Whether the page asks for itself again, and nobody for it."""
        return self.request.headers.get(LIVE) == "1"

    @property
    def path(self) -> str:
        return self.request.url.path

    @property
    def led_by(self) -> str:
        """What led here, in the browser's words (Fetch Metadata): `same-origin` is a page of ours, `none` the
        visitor, anything else a page elsewhere. Empty where it does not say, as without a secure way to us.
        """
        return self.request.headers.get("sec-fetch-site", "")

    @property
    def note(self) -> str:
        """Which notice the page begins with; no link of somebody else's says that something was done."""
        return self.asked("note") if self.led_by in ("", "same-origin") else ""

    def asked(self, name: str, otherwise: str = "") -> str:
        """A parameter of the query."""
        return storable(self.request.query_params.get(name, otherwise))

    def needed(self, name: str) -> str:
        """A parameter of the query; 422 without it."""
        found = self.asked(name)
        if not found:
            raise Problem(422, "invalid_request", f"{name}: missing", hint="follow a link of the overview")
        return found

    def number(self, name: str, otherwise: int, *, least: int = 1, most: int = 1_000_000) -> int:
        """A whole number of the query; 422 for what is none, or is outside its limits."""
        text = self.asked(name)
        if not text:
            return otherwise
        if not (text.isascii() and text.isdecimal() and len(text) < 12 and least <= int(text) <= most):
            raise Problem(
                422, "invalid_request", f"{name}: {echo(text)} is no whole number from {least} to {most}"
            )
        return int(text)

    def one_of(self, name: str, choices: Collection[str], otherwise: str = "") -> str:
        """A parameter that is one of some words; 422 for another one."""
        text = self.asked(name)
        if text and text not in choices:
            raise Problem(
                422,
                "invalid_request",
                f"{name}: {echo(text)} is none of {', '.join(map(repr, choices))}",
            )
        return text or otherwise

    def url(self, **changes: object) -> str:
        """This page with some parameters changed; None takes one away. Neither language nor notice stay."""
        kept = {
            name: text
            for name, text in self.request.query_params.items()
            if name not in {"lang", "note", "download"}
        }
        # As a link, a path that begins with two slashes is of another host.
        return address("/" + self.path.lstrip("/"), **{**kept, **changes})


def address(path: str, **query: object) -> str:
    """A path of our own with parameters; those that are None are left out."""
    asked = urlencode([(name, str(text)) for name, text in query.items() if text is not None])
    return f"{path}?{asked}" if asked else path


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The fields that somebody sent, in their order."""

    fields: Sequence[tuple[str, str]]

    @classmethod
    def of(cls, body: bytes, *, most: int = MOST_TEXT) -> Form:
        """422 for what no browser sends, and for a field of more than `most` characters."""
        try:
            fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
            fields = [(name, storable(text.replace("\r\n", "\n"))) for name, text in fields]
        except ValueError:
            raise Problem(
                422, "invalid_request", "the body is not a form", hint="use the page's form"
            ) from None
        for name, text in fields:
            if len(text) > most:
                raise Problem(422, "invalid_request", f"{echo(name)} has more than {most} characters")
        return cls(fields=fields)

    def text(self, name: str, otherwise: str = "") -> str:
        """The first field of that name, without space around it."""
        return next((text.strip() for key, text in self.fields if key == name), otherwise)

    def needed(self, name: str) -> str:
        """The field; 422 where it is missing or empty."""
        found = self.text(name)
        if not found:
            raise Problem(422, "invalid_request", f"{name}: missing", hint="fill in the field")
        return found

    def all(self, name: str) -> tuple[str, ...]:
        """Every field of that name, such as ticked boxes."""
        return tuple(text for key, text in self.fields if key == name)

    @property
    def mapping(self) -> Mapping[str, str]:
        """The first field of each name."""
        return dict(reversed(self.fields))
