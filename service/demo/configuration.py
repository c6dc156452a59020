"""The demo's `tiergate.yaml`, written for every run, like one that a person would write."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from service.demo.models import ModelFile
from service.demo.plan import CLIENT_MODEL, MARGIN, MIN_PAIRS, DemoPlan
from service.demo.tiers import DemoTier, Scheme

HEADING = """\
# Written by `tiergate demo` for one run. The margin is wide and two gates are off so that minutes are enough;
# production keeps the defaults (1pp, 300 pairs, every gate required).
"""
MIN_CONTEXT_CHARS = 700
"""The notes are longer, the other prompts shorter: only a text of some length is asked about again."""
PROBE_TOKENS = 20
PRICE_PER_HOUR = 60.0
"""Of every tier: as if each had a machine of its own."""
STATE_DIR = "state"
"""Beside the file."""


def configuration(
    plan: DemoPlan,
    models: Mapping[Scheme, ModelFile],
    ports: Mapping[str, int],
    listen: Mapping[str, str],
) -> str:
    """The file's text. `ports` are the tiers' backends by tier; `listen` has `proxy`, `admin` and `api`."""
    content: dict[str, Any] = {
        "models": {
            CLIENT_MODEL: {
                "ladder": [_tier(tier, models[tier.weights], ports[tier.name]) for tier in plan.ladder],
                "probe": {
                    "per_capture": plan.probes,
                    "min_context_chars": MIN_CONTEXT_CHARS,
                    "max_tokens": PROBE_TOKENS,
                },
                "slo": {"ttft": "20s", "tpot": "1s"},
            }
        },
        # Batches of one: with so little traffic a worker would otherwise wait for the slowest of a batch.
        "mirror": {"sample": "100%", "batch": 1},
        # One baseline server answers the clients and the control; in production the control has its own.
        "shadow": {"on_serving": True, "timeout": "120s"},
        # For `tiergate shadow run MODEL --i-own-this-capacity`, once the verdicts are there.
        "shadow_job": {
            "warm_up": "5s",
            "settle": "2s",
            "window": "80s",
            "rate": "20/m",
            # So few requests a block that chance distances would drown what the tiers differ in.
            "arrivals": "constant",
            "parts": ["slo", "sweep", "cost"],
            "budget": {"time": "30m"},
        },
        "policy": {
            "margin": f"{100 * MARGIN:g}pp",
            "min_pairs": MIN_PAIRS,
            "criteria": {
                "structured_output": {},
                "long_context_recall": {},
                "refusal": {"hypothesis": "equivalent"},
            },
            "gates": {
                "control": "required",
                "coverage": "required",
                "attribution": "required",
                "slo": "off",
                "money": "off",
            },
            # A tier is submitted once per run: all of alpha on the first attempt.
            "alpha_spending": "first_attempt",
            # A single slot serves a few requests a minute.
            "load_runs": {"slo_margin": f"{100 * MARGIN:g}pp"},
            "on_harm": "ask",
        },
        "proxy": {"listen": listen["proxy"], "admin": listen["admin"]},
        "api": {"listen": listen["api"]},
        "store": {"state_dir": STATE_DIR},
    }
    return HEADING + yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def write_configuration(directory: Path, text: str) -> Path:
    """`tiergate.yaml` in a directory of this run."""
    path = directory / "tiergate.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def _tier(tier: DemoTier, model: ModelFile, port: int) -> dict[str, Any]:
    return {
        "tier": tier.name,
        "backends": [f"http://127.0.0.1:{port}"],
        "price_per_hour": PRICE_PER_HOUR,
        "declares": {
            "weights": tier.weights.value,
            "kv_cache": tier.kv.value,
            "engine": f"llama.cpp (xllamacpp {version('xllamacpp')})",
            "artifact": f"sha256:{model.sha256}",
        },
    }
