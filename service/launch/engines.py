"""What an inference server says about itself, read from its own pages. Pure: text in, facts out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

SIXTEEN_BITS = frozenset({"auto", "bf16", "bfloat16", "fp16", "float16", "f16", "half"})
"""Declared types that an engine's `auto` can mean; it follows the checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One server's own account; what it does not tell is None."""

    name: str
    version: str | None = None
    kv_dtype: str | None = None
    kv_tokens: int | None = None
    """Tokens that its KV cache holds; tells 8 bits from 16 where `kv_dtype` is `auto`."""

    def __str__(self) -> str:
        return f"{self.name} {self.version or '(version not told)'}"


def served_models(listing: str) -> tuple[str, ...]:
    """The model names in the answer to GET /v1/models; ValueError when it is no such answer."""
    models = _mapping(listing).get("data")
    if not isinstance(models, list):
        raise ValueError("no list of models")
    return tuple(str(model["id"]) for model in models if isinstance(model, dict) and "id" in model)


def vllm(version_page: str, metrics_page: str) -> Engine | None:
    """From GET /version and GET /metrics of vLLM; None when the first is not vLLM's."""
    version = _text(_mapping(version_page).get("version"))
    if version is None:
        return None
    labels = _cache_config(metrics_page)
    tokens = labels.get("kv_cache_size_tokens", "")
    return Engine(
        name="vllm",
        version=version,
        kv_dtype=labels.get("cache_dtype"),
        kv_tokens=int(tokens) if tokens.isdecimal() else None,
    )


def sglang(server_info: str) -> Engine | None:
    """From GET /server_info of SGLang; None when it is not SGLang's."""
    page = _mapping(server_info)
    if "mem_fraction_static" not in page and "kv_cache_dtype" not in page:
        return None
    tokens = page.get("max_total_num_tokens")
    return Engine(
        name="sglang",
        version=_text(page.get("version")),
        kv_dtype=_text(page.get("kv_cache_dtype")),
        kv_tokens=tokens if isinstance(tokens, int) else None,
    )


def llama_cpp(props: str) -> Engine | None:
    """From GET /props of llama.cpp, which does not tell its KV cache type; None when it is not its page."""
    page = _mapping(props)
    if "build_info" not in page and "total_slots" not in page:
        return None
    return Engine(name="llama.cpp", version=_text(page.get("build_info")))


def same_kv_dtype(declared: str, told: str) -> bool:
    """Whether an engine's word for its KV cache type is what was declared; `fp8` is any 8-bit float."""
    one, other = declared.lower(), told.lower()
    if other == "auto":
        return one in SIXTEEN_BITS
    if one == other:
        return True
    families = [SIXTEEN_BITS - {"auto"}, {"fp8", "fp8_e4m3", "fp8_e4m3fn"}, {"fp8", "fp8_e5m2"}]
    return any(one in family and other in family for family in families)


def same_engine(declared: str, engine: Engine) -> bool:
    """Whether `vllm`, `vllm 0.32` or `vllm-0.32.0` describes it; a short version covers longer ones."""
    text = declared.lower().replace("-", " ").replace("=", " ").replace(":", " ")
    name, _, version = text.partition(" ")
    if name != engine.name:
        return False
    wanted, told = version.strip().removeprefix("v"), (engine.version or "").lower().removeprefix("v")
    return not wanted or _begins(told.replace("-", " "), wanted)


def mixed(engines: Sequence[Engine]) -> bool:
    """Whether replicas of one tier differ in what must be the same."""
    return len({(engine.name, engine.version, engine.kv_dtype) for engine in engines}) > 1


def _begins(told: str, wanted: str) -> bool:
    return told.startswith(wanted) and not told[len(wanted) :][:1].isalnum()


def _cache_config(metrics_page: str) -> dict[str, str]:
    # The set of labels grows with each version of vLLM, so only those that are there are read.
    try:
        for family in text_string_to_metric_families(metrics_page):
            for sample in family.samples:
                if sample.name == "vllm:cache_config_info":
                    return dict(sample.labels)
    except ValueError:
        return {}
    return {}


def _mapping(page: str) -> dict[str, object]:
    try:
        content = json.loads(page)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _text(told: object) -> str | None:
    return told if isinstance(told, str) and told else None
