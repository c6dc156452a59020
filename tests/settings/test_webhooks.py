"""Who is told: what is read of it, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.settings import Settings
from service.store.outgoing.webhook_terms import Form, Told, WebhookTerms

Loaded = Callable[..., Settings]
Problems = Callable[..., list[str]]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "one").write_text("s1\n")
    (tmp_path / "two").write_text("fresh-1\nstale-1\n")
    (tmp_path / "three").write_text("a\nb\nc\n")
    (tmp_path / "url").write_text("https://oapi.dingtalk.com/robot/send?access_token=abc\n")
    (tmp_path / "bare").write_text("http://oapi.dingtalk.com/robot/send?access_token=abc\n")
    (tmp_path / "odd").write_text("https://oapi.dingtalk.com/robot send?access_token=abc\n")
    return tmp_path


def named(minimal: dict[str, Any], *webhooks: dict[str, Any]) -> dict[str, Any]:
    return {**minimal, "webhooks": list(webhooks)}


PLAIN = {"name": "ops", "url": "https://ops.example/hook", "secret_file": "one"}
ROBOT = {"name": "robot", "shape": "dingtalk", "url_file": "url", "secret_file": "two"}


def test_nobody_is_told_unless_the_configuration_says_whom(minimal: dict[str, Any], loaded: Loaded) -> None:
    assert loaded(minimal).webhooks == ()


def test_a_receiver_is_read_with_its_secrets(minimal: dict[str, Any], loaded: Loaded, files: Path) -> None:
    told = {"events": ["harm"], "models": ["qwen"], "language": "zh"}
    plain, robot = loaded(named(minimal, PLAIN, {**ROBOT, **told})).webhooks
    assert plain == WebhookTerms(
        name="ops", form=Form.PLAIN, url="https://ops.example/hook", secrets=("s1",), kinds=frozenset(Told)
    )
    assert robot.url == "https://oapi.dingtalk.com/robot/send?access_token=abc"
    assert (robot.secrets, robot.kinds, robot.language) == (("fresh-1", "stale-1"), {Told.HARM}, "zh")
    assert robot.wants(Told.HARM, "qwen")
    assert not robot.wants(Told.HARM, "")
    assert plain.wants(Told.JOB, "")
    for secret in ("stale-1", "access_token"):
        assert secret not in repr(robot)


@pytest.mark.parametrize(
    ("webhook", "why"),
    [
        ({**PLAIN, "url": "http://ops.example"}, "a token is sent there: write https://"),
        ({**PLAIN, "url": "https://ops.example?x=1"}, "expected https://HOST"),
        ({**PLAIN, "url_file": "url"}, "name either `url` or `url_file`"),
        ({"name": "ops", "secret_file": "one"}, "name either `url` or `url_file`"),
        ({"name": "ops", "url": "https://ops.example"}, "what is posted is signed"),
        ({**PLAIN, "secret_file": "nowhere"}, "there is no file"),
        ({**PLAIN, "secret_file": "three"}, "holds 3 secrets, one a line; 2 at most"),
        ({**PLAIN, "models": ["qwem"]}, "did you mean `qwen`?"),
        ({**PLAIN, "ca_file": "one"}, "webhooks"),
        ({**PLAIN, "events": []}, "needs at least one entry"),
        ({**PLAIN, "name": "Ops team"}, "name"),
        ({**ROBOT, "shape": "slack"}, "Slack verifies no signature"),
        ({"name": "team", "shape": "slack", "url": "https://hooks.slack.com/services/T/B/x"}, "url_file"),
        ({**ROBOT, "url_file": "bare"}, "write https://"),
        ({**ROBOT, "url_file": "odd"}, "expected https://HOST"),
    ],
)
def test_what_cannot_be_told_safely_is_refused(
    webhook: dict[str, Any], why: str, minimal: dict[str, Any], problems: Problems, files: Path
) -> None:
    said = "\n".join(problems(named(minimal, webhook)))
    assert why in said
    assert "access_token" not in said


def test_two_receivers_of_one_name_are_refused(
    minimal: dict[str, Any], problems: Problems, files: Path
) -> None:
    assert "another webhook has this name" in "\n".join(problems(named(minimal, PLAIN, PLAIN)))
