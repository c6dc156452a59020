"""The drill's own `tiergate.yaml`: the user's policy and probes, on ladders and stores of the drill's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from service.decision.policy import Gate
from service.drill.arms import Arm, Stage
from service.settings import Settings
from service.settings.document import read_document
from service.settings.values import ProbePlan

HEADING = "# Written by `tiergate drill` for one run.\n"
STATE_DIR = "state"
"""Beside the file."""
PROXY_SOCKET = "proxy.sock"
SWITCHED_OFF = tuple(gate.value for gate in Gate if gate not in (Gate.QUALITY, Gate.CONTROL))
"""About traffic, engines and load runs, of which a drill has none; `control` is as the policy says."""
BATCH = 4


def own_policy(settings: Settings) -> dict[str, Any]:
    """The policy as the user wrote it, but for what a drill of minutes cannot have."""
    content = read_document(settings.path.read_text(encoding="utf-8")).content
    written = content.get("policy")
    policy: dict[str, Any] = dict(written) if isinstance(written, dict) else {}
    gates = policy.get("gates")
    policy["gates"] = {**(gates if isinstance(gates, dict) else {}), **dict.fromkeys(SWITCHED_OFF, "off")}
    # Closed conversations would take half an hour to close.
    policy["units"] = "first_sampled"
    policy.pop("longest", None)
    return policy


def configuration(
    settings: Settings,
    stages: Mapping[str, Stage],
    sockets: Mapping[str, Path],
    *,
    probe: ProbePlan,
    directory: Path,
    admin: str,
) -> str:
    """The file's text. `sockets` are the arms'; `admin` is where the proxy's admin address is."""

    def backend(arm: Arm) -> str:
        return f"unix:{sockets[arm.name]}"

    def ladder(stage: Stage) -> list[dict[str, Any]]:
        return [
            {"tier": tier.name, "backends": [backend(tier.serving)]}
            | ({"shadow": [backend(tier.shadow)]} if tier.shadow else {})
            for tier in stage.tiers
        ]

    content: dict[str, Any] = {
        "models": {model: {"ladder": ladder(stage)} for model, stage in stages.items()},
        "mirror": {"sample": "100%", "batch": BATCH},
        "shadow": {
            "on_serving": True,
            "timeout": f"{settings.shadow.timeout_seconds:g}s",
            "concurrency": settings.shadow.concurrency,
            "retries": settings.shadow.retries,
        },
        "probe": {
            "per_capture": probe.per_capture,
            "min_context_chars": probe.min_context_chars,
            "max_tokens": probe.max_tokens,
            "extra_body": dict(probe.extra_body),
        },
        "policy": own_policy(settings),
        "proxy": {"listen": f"unix:{directory / PROXY_SOCKET}", "admin": admin, "health_every": "none"},
        "store": {"state_dir": STATE_DIR},
    }
    return HEADING + yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
