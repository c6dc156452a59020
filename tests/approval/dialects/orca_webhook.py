"""Spinnaker's webhook stage as a client (source: orca-webhook, CreateWebhookTask and MonitorWebhookTask)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx

SUCCEEDED, RUNNING, TERMINAL, CANCELED = "SUCCEEDED", "RUNNING", "TERMINAL", "CANCELED"
RETRIED = (429,)
MISSING = object()


def create(stage: Mapping[str, Any], client: httpx.Client) -> tuple[str, str | None]:
    """The status of the first task, and where the second one polls."""
    payload = stage.get("payload")
    try:
        answer = client.request(
            stage.get("method", "POST"),
            stage["url"],
            headers=stage.get("customHeaders"),
            json=payload,
            follow_redirects=False,
        )
    except httpx.TimeoutException:
        return (RUNNING if stage.get("method", "POST") == "GET" else TERMINAL), None
    except httpx.TransportError:
        return TERMINAL, None
    if answer.status_code in stage.get("failFastStatusCodes", [504]):
        return TERMINAL, None
    if answer.status_code >= 500 or answer.status_code in RETRIED:
        return RUNNING, None
    if answer.status_code >= 400:
        return TERMINAL, None
    if not stage.get("waitForCompletion"):
        return SUCCEEDED, None
    kind = stage.get("statusUrlResolution", "getMethod")
    if kind == "getMethod":
        return SUCCEEDED, stage["url"]
    if kind == "locationHeader":
        return (SUCCEEDED, answer.headers["location"]) if "location" in answer.headers else (TERMINAL, None)
    found = read(answer.text, stage["statusUrlJsonPath"])
    return (TERMINAL, None) if found is MISSING else (SUCCEEDED, found)


def monitor(stage: Mapping[str, Any], url: str, client: httpx.Client) -> str:
    """The status of the second task after one poll."""
    try:
        answer = client.get(url, headers=stage.get("customHeaders"), follow_redirects=False)
    except httpx.TimeoutException:
        return RUNNING
    except httpx.TransportError:
        return TERMINAL  # a refused connection ends the stage
    if answer.status_code >= 400:
        asked_again = (*RETRIED, *stage.get("retryStatusCodes", []))
        return RUNNING if answer.status_code >= 500 or answer.status_code in asked_again else TERMINAL
    status = read(answer.text, stage["statusJsonPath"])
    if status is MISSING or not isinstance(status, str | int | float | bool):
        return TERMINAL
    if "progressJsonPath" in stage and not isinstance(read(answer.text, stage["progressJsonPath"]), str):
        return TERMINAL
    if isinstance(status, int | float) and not isinstance(status, bool):
        return SUCCEEDED if status == 100 and isinstance(status, int) else RUNNING
    for name, meaning in (
        ("successStatuses", SUCCEEDED),
        ("canceledStatuses", CANCELED),
        ("terminalStatuses", TERMINAL),
    ):
        words = [word.strip().upper() for word in stage.get(name, "").split(",")]
        if str(status).upper() in words:
            return meaning
    return RUNNING


def read(text: str, path: str) -> Any:
    """`$.NAME` in a JSON object."""
    assert path.startswith("$.")
    return json.loads(text).get(path[2:], MISSING)
