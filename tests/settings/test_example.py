"""`tiergate init` writes a file that teaches every key and is right in every line, switched on or off."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import resources

import yaml

from service.settings import Settings
from service.settings.complaints import all_places
from service.settings.document import read_document
from service.settings.shape import TiergateShape

TEXT = resources.files("service.settings").joinpath("example.yaml").read_text(encoding="utf-8")

ABSENT = frozenset(
    {
        "criteria",
        "default_model",
        "tls",
        "tenant_share_cap",
        "routes",
        "oidc",
        "public_url",
        "attest_key_file",
    }
)
"""Keys that are absent by default; what is shown is an example."""


def switched_on(text: str) -> str:
    """Every setting that is commented out taken in; prose has one space after its `#`."""
    while True:
        taken_in = re.sub(r"^(\s*)#((?:  |[^ #\n]).*)$", r"\1\2", text, flags=re.MULTILINE)
        if taken_in == text:
            return text
        text = taken_in


def test_the_example_is_valid_as_it_is(loaded: Callable[..., Settings]) -> None:
    assert list(loaded(TEXT).ladders) == ["my-model"]


def test_every_setting_that_is_commented_out_is_valid() -> None:
    document = read_document(switched_on(TEXT))
    assert document.problems == []
    TiergateShape.model_validate(document.content)


def test_every_key_is_taught() -> None:
    text = switched_on(TEXT)
    missing = {place[-1] for place in all_places()} - set(re.findall(r"(\w+):", text)) - {"*"}
    assert missing == set()


def test_what_is_switched_off_shows_the_default_unless_there_is_none() -> None:
    shown = read_document(switched_on(TEXT)).content
    own = TiergateShape.model_validate(yaml.safe_load(TEXT))
    for section in ("mirror", "policy", "money", "proxy", "api"):
        said = getattr(
            TiergateShape.model_validate({"models": shown["models"], section: shown[section]}), section
        )
        default = getattr(own, section)
        for name in type(said).model_fields:
            if name in ABSENT:
                continue
            if name == "capture":
                said_capture = said.capture.model_copy(update={"key_file": None})
                assert said_capture == default.capture
                continue
            if name == "load_runs":
                assert said.load_runs.model_copy(update={"failure_weight": None}) == default.load_runs
                continue
            if name == "clients":
                assert said.clients.model_copy(update={"connections": None}) == default.clients
                continue
            assert getattr(said, name) == getattr(default, name), (section, name)
