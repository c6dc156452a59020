"""The part of `tiergate.yaml` under `webhooks`, and the values it becomes: who is told of what.

Only what is written here is ever called; URLs of chat tools are secrets and come from files.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from service.settings.forms import Name, Shape
from service.settings.nearest import nearest
from service.settings.pipelines import ca_of
from service.settings.problems import Findings, Place
from service.settings.secrets import SecretUnreadable, read_secret, read_secrets
from service.settings.urls import CalledUrl, called_url
from service.store.outgoing.webhook_terms import Form, Told, WebhookTerms

PLACE: Place = ("webhooks",)
MOST_SECRETS = 2
"""While they are rotated."""
FormName = Literal["plain", "slack", "feishu", "dingtalk"]
EventName = Literal["decision", "warn", "harm", "job"]


class WebhookShape(Shape):
    """One receiver."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$")] = Field(
        description="Of the receiver, in commands and metrics."
    )
    shape: FormName = Field(
        default="plain", description="Of what is posted: `plain` JSON, `slack`, `feishu` or `dingtalk`."
    )
    url: CalledUrl | None = Field(default=None, description="Of a `plain` receiver, if it is no secret.")
    url_file: str | None = Field(
        default=None, description="File whose first line is the URL; URLs of chat tools are secrets."
    )
    secret_file: str | None = Field(
        default=None,
        description="Signing secret; two lines while it is rotated, the new one first. `slack` has none.",
    )
    ca_file: str | None = Field(
        default=None, description="PEM file of authorities to trust there instead of the system's."
    )
    events: Annotated[list[EventName], Field(min_length=1)] = Field(
        default=["decision", "warn", "harm", "job"], description="What it is told of."
    )
    models: list[Name] = Field(default_factory=list, description="It is told of these; left out, of all.")
    language: Literal["en", "zh"] = Field(default="en", description="Of the text for people.")


def build_webhooks(
    shapes: Sequence[WebhookShape], models: Collection[str], *, beside: Path, findings: Findings
) -> tuple[WebhookTerms, ...]:
    """The terms; `findings` says what stands in their way."""
    found: dict[str, WebhookTerms] = {}
    for index, shape in enumerate(shapes):
        place: Place = (*PLACE, index)
        if shape.name in found:
            findings.add((*place, "name"), "another webhook has this name")
        for model in shape.models:
            if model not in models:
                meant = nearest(model, models) if models else "none"
                findings.add((*place, "models"), f"no model is called {model!r}; did you mean `{meant}`?")
        found[shape.name] = WebhookTerms(
            name=shape.name,
            form=Form(shape.shape),
            url=_url(shape, beside, place, findings),
            secrets=_secrets(shape, beside, place, findings),
            kinds=frozenset(map(Told, shape.events)),
            models=frozenset(shape.models),
            language=shape.language,
            ca=ca_of(beside, shape.ca_file, (*place, "ca_file"), findings),
        )
    return tuple(found.values())


def _url(shape: WebhookShape, beside: Path, place: Place, findings: Findings) -> str:
    if (shape.url is None) == (shape.url_file is None):
        findings.add(place, "name either `url` or `url_file`")
        return ""
    if shape.url is not None:
        if shape.shape != "plain":
            findings.add(
                (*place, "url"),
                "who knows the URL of a chat tool can write there: name a file that holds it in `url_file`",
            )
        return shape.url
    try:
        return called_url(read_secret(beside / Path(str(shape.url_file)).expanduser()), secret=True)
    except (SecretUnreadable, ValueError) as error:
        findings.add((*place, "url_file"), str(error))
        return ""


def _secrets(shape: WebhookShape, beside: Path, place: Place, findings: Findings) -> tuple[str, ...]:
    if shape.secret_file is None:
        if shape.shape == "plain":
            findings.add(place, "what is posted is signed: name the file of its secret in `secret_file`")
        return ()
    here = (*place, "secret_file")
    if shape.shape == "slack":
        findings.add(here, "Slack verifies no signature of what it is sent; leave this out")
        return ()
    try:
        return read_secrets(beside / Path(shape.secret_file).expanduser(), most=MOST_SECRETS)
    except SecretUnreadable as error:
        findings.add(here, str(error))
        return ()
