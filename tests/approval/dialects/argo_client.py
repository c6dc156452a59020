"""Argo Rollouts as a client, as small as its `web` and `kayenta` providers allow (source: its v1.7 to v1.10).

`measure` is one measurement, `Metric.assess` what a series of them amounts to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

SUCCESSFUL, FAILED, INCONCLUSIVE, ERROR, RUNNING = "Successful", "Failed", "Inconclusive", "Error", "Running"


def strict(text: str) -> Any:
    """JSON as Go's encoding/json takes it: no NaN, no Infinity; ValueError."""

    def refuse(literal: str) -> Any:
        raise ValueError(f"{literal} in JSON")

    return json.loads(text, parse_constant=refuse)


def resolved(template: Path, args: Mapping[str, str]) -> dict[str, Any]:
    """The first metric of an AnalysisTemplate with its arguments in; KeyError for one that is not given."""
    spec = yaml.safe_load(template.read_text(encoding="utf-8"))["spec"]
    known = {each["name"]: each.get("value") for each in spec["args"]} | dict(args)
    text = re.sub(r"\{\{args\.(\w+)\}\}", lambda found: known[found[1]], json.dumps(spec["metrics"][0]))
    metric: dict[str, Any] = json.loads(text)
    return metric


def measure(metric: Mapping[str, Any], client: httpx.Client) -> str:
    """The phase of one measurement of a web metric."""
    web = metric["provider"]["web"]
    assert ("body" in web) + ("jsonBody" in web) == 0 or web.get("method", "GET") != "GET"
    headers = {each["key"]: each["value"] for each in web.get("headers", [])}
    try:
        answer = client.request(web.get("method", "GET"), web["url"], headers=headers, follow_redirects=True)
    except httpx.TransportError:
        return ERROR
    if not 200 <= answer.status_code < 300:
        return ERROR
    try:
        body = strict(answer.text)
    except ValueError:
        return SUCCESSFUL  # up to v1.10.0-rc1, whatever the body says
    path = re.fullmatch(r"\{\$((?:\.\w+)*)\}", web.get("jsonPath", "{$}"))
    assert path is not None
    for name in path[1].split(".")[1:]:
        if name not in body:
            return ERROR
        body = body[name]
    return evaluate(body, metric.get("successCondition"), metric.get("failureCondition"))


def evaluate(selected: Any, success: str | None, failure: str | None) -> str:
    """A phase from the two conditions."""
    succeeded, failed = holds(selected, success), holds(selected, failure)
    if success is None and failure is None:
        return SUCCESSFUL
    if failure is None:
        failed = not succeeded
    if success is None:
        succeeded = not failed
    if failed:
        return FAILED
    return SUCCESSFUL if succeeded else INCONCLUSIVE


def holds(selected: Any, condition: str | None) -> bool:
    """`result.NAME == "TEXT"`, the only expression that the examples need."""
    if condition is None:
        return False
    parts = re.fullmatch(r'result\.(\w+) == "(\w+)"', condition)
    assert parts is not None, condition
    return bool(selected[parts[1]] == parts[2])


@dataclass
class Metric:
    """What the controller makes of the measurements of one metric."""

    spec: Mapping[str, Any]
    phases: list[str] = field(default_factory=list)

    def assess(self, phase: str) -> str:
        """The phase of the metric after one more measurement."""
        self.phases.append(phase)
        counted = [each for each in self.phases if each != ERROR]
        errors = self._last(ERROR, self.phases)
        if counted.count(FAILED) > self.spec.get("failureLimit", 0):
            return FAILED
        if counted.count(INCONCLUSIVE) > self.spec.get("inconclusiveLimit", 0):
            return INCONCLUSIVE
        if errors > self.spec.get("consecutiveErrorLimit", 4):
            return ERROR
        needed = self.spec.get("consecutiveSuccessLimit", 0)
        if needed and self._last(SUCCESSFUL, counted) >= needed:
            return SUCCESSFUL
        if len(counted) >= self.spec.get("count", 1):
            return INCONCLUSIVE if needed else SUCCESSFUL
        return RUNNING

    @staticmethod
    def _last(phase: str, phases: list[str]) -> int:
        """How many of the latest in a row."""
        count = 0
        for each in reversed(phases):
            if each != phase:
                break
            count += 1
        return count
