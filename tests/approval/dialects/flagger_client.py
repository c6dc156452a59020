"""Flagger as a client, as small as its sources allow (pkg/controller/webhook.go, scheduler_hooks.go).

`post` is one call of a webhook; `Canary.advance` what one round of the scheduler makes of its hooks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

GATES = ("confirm-rollout", "confirm-traffic-increase", "confirm-promotion")


class HookFailed(Exception):
    """What Flagger logs, and for some hooks sends as an event."""


def post(hook: Mapping[str, Any], client: httpx.Client, *, phase: str = "Progressing") -> None:
    """Raises HookFailed unless the status is 200, 201 or 202: 204 is a failure in its code."""
    payload: dict[str, Any] = {
        "name": "qwen3-32b",
        "namespace": "serving",
        "phase": phase,
        "checksum": "85d557f47b",
    }
    if hook.get("metadata"):
        payload["metadata"] = dict(hook["metadata"])
    for _ in range(1 + hook.get("retries", 0)):
        try:
            answer = client.post(hook["url"], json=payload)
        except httpx.TransportError:
            continue
        if answer.status_code == 429 or answer.status_code >= 500:
            continue  # go-retryablehttp: asked again, and the body is lost
        if answer.status_code > 202:
            raise HookFailed(answer.text)
        return
    raise HookFailed(f"giving up after {1 + hook.get('retries', 0)} attempt(s)")


@dataclass
class Canary:
    """One canary under analysis."""

    hooks: Sequence[Mapping[str, Any]]
    client: httpx.Client
    phase: str = "Progressing"
    failed_checks: int = 0
    threshold: int = 2
    events: list[str] = field(default_factory=list)

    def advance(self) -> str:
        """The phase after one round."""
        for hook in self._of("rollback"):
            if self._passes(hook):
                self.phase = "Failed"  # 200 to 202: roll back now
                return self.phase
        for kind in ("confirm-rollout",):
            if not all(self._passes(hook) for hook in self._of(kind)):
                self.phase = "Waiting"
                return self.phase
        for kind in ("pre-rollout", "rollout"):
            for hook in self._of(kind):
                if not self._passes(hook, tells=True):
                    self.failed_checks += 1
                    if self.failed_checks >= self.threshold:
                        self.phase = "Failed"
                    return self.phase
        if not all(self._passes(hook) for hook in self._of("confirm-traffic-increase")):
            self.phase = "WaitingTrafficIncrease"
            return self.phase
        if not all(self._passes(hook) for hook in self._of("confirm-promotion")):
            self.phase = "WaitingPromotion"
            return self.phase
        self.phase = "Succeeded"
        for hook in self._of("post-rollout"):
            self._passes(hook)
        return self.phase

    def _of(self, kind: str) -> list[Mapping[str, Any]]:
        return [hook for hook in self.hooks if hook["type"] == kind]

    def _passes(self, hook: Mapping[str, Any], *, tells: bool = False) -> bool:
        try:
            post(hook, self.client, phase=self.phase)
        except HookFailed as error:
            self.events.append(str(error) if tells else f"Halt: {hook['name']}")
            return False
        return True
