"""Plain HTTP: a status, a header, a line; and the script that we ship for it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from shutil import which

import httpx
import pytest

from tests.approval.live import LiveApi

SCRIPT = Path(__file__).parents[3] / "deploy" / "examples" / "plain" / "gate.sh"
PATH = "/gates/plain/models/org/model/tiers/w8a8"
APPROVAL = "/api/v1/models/org/model/tiers/w8a8/approval"
ARTIFACT = "ab" * 32


@pytest.fixture
def api(sqlite_api: LiveApi) -> LiveApi:
    """What a gate says does not depend on the database."""
    return sqlite_api


def told(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.headers["tiergate-state"]


def test_each_state_has_its_status_its_header_and_one_line(api: LiveApi) -> None:
    client = api.client("read")
    api.record("w8a8", clean=3)
    answer = client.get(PATH)
    assert told(answer) == (409, "inconclusive")
    assert answer.text.startswith("inconclusive: ")
    assert answer.text.count("\n") == 1
    assert answer.headers["content-type"].startswith("text/plain")
    api.accept("w8a8")
    assert api.client("approve").put(APPROVAL, json={"artifact": ARTIFACT}).status_code == 200
    assert told(client.get(PATH)) == (200, "approved")
    assert told(client.get(PATH, params={"artifact": "sha256:" + ARTIFACT.upper()})) == (200, "approved")
    assert told(client.get(PATH, params={"artifact": "cd" * 32})) == (409, "inconclusive")
    api.record("w8a8", harm=60)
    assert told(client.get(PATH)) == (403, "rejected")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/gates/plain/models/org/model/tiers/w8a9", 404),
        ("/gates/plain/models/org/model/tiers/bf16", 409),
        (PATH + "?artifact=", 422),
        (PATH + "?artefact=" + ARTIFACT, 422),
    ],
)
def test_what_is_no_judgement_has_no_such_header(shared_api: LiveApi, path: str, status: int) -> None:
    answer = shared_api.client("read").get(path)
    assert answer.status_code == status
    assert "tiergate-state" not in answer.headers
    assert answer.json()


def gate(api: LiveApi, *words: str, url: str | None = None) -> tuple[int, str]:
    environment = {
        "PATH": "/usr/bin:/bin",
        "TIERGATE_URL": url or api.url,
        "TIERGATE_TOKEN": api.secrets["read"],
    }
    ended = subprocess.run(
        ["/bin/sh", str(SCRIPT), *words], env=environment, capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stdout


@pytest.mark.skipif(which("curl") is None, reason="the script needs curl")
def test_the_script_exits_with_what_the_gate_says(api: LiveApi) -> None:
    api.accept("w8a8")
    assert gate(api, "org/model", "w8a8", ARTIFACT)[0] == 2
    assert api.client("approve").put(APPROVAL, json={"artifact": ARTIFACT}).status_code == 200
    status, text = gate(api, "org/model", "w8a8", ARTIFACT)
    assert (status, text[:9]) == (0, "approved:")
    assert gate(api, "org/model", "w8a8", "cd" * 32)[0] == 2
    assert gate(api, "org/model", "w8a8", "")[0] == 3  # a variable that was not set
    assert gate(api, "org/model", "w8a8")[0] == 0
    assert gate(api, "org/model", "w8a9")[0] == 3
    assert gate(api, "org/model", "bf16")[0] == 3
    assert gate(api, "org/model", "w8a8", url="http://127.0.0.1:9")[0] == 3
    api.record("w8a8", harm=60)
    assert gate(api, "org/model", "w8a8", ARTIFACT)[0] == 1
