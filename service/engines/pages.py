"""Reading the pages on which engines describe themselves: text in, facts out, None for a page of another.

Sets of labels and keys grow with every version, and some are renamed: each is looked up by name where it is
there, and nothing is made of its absence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256

from prometheus_client.parser import text_string_to_metric_families

from service.engines.facts import EngineFacts

_CACHE_CONFIG = "vllm:cache_config_info"
_LONGEST_WORD = 200
"""Characters of one word of an engine."""
_LONGEST_DEFAULTS = 4000
"""Characters of all defaults of sampling."""
_LLAMA_SAMPLING = frozenset(
    {
        "temperature", "dynatemp_range", "dynatemp_exponent", "top_k", "top_p", "min_p", "top_n_sigma",
        "xtc_probability", "xtc_threshold", "typical_p", "typ_p", "repeat_last_n", "repeat_penalty",
        "presence_penalty", "frequency_penalty", "dry_multiplier", "dry_base", "dry_allowed_length",
        "dry_penalty_last_n", "mirostat", "mirostat_tau", "mirostat_eta", "adaptive_target", "adaptive_decay",
        "n_predict", "ignore_eos", "min_keep", "samplers", "seed",
    }
)  # fmt: skip
"""Of all that llama.cpp lists there; the rest changes with the page and not with the answers."""


def served_models(listing: str) -> dict[str, int | None]:
    """The models in the answer to GET /v1/models with the longest context of each, None where it is not told.

    ValueError when it is no such answer.
    """
    models = _mapping(listing).get("data")
    if not isinstance(models, list):
        raise ValueError("no list of models")
    return {
        str(model["id"]): _count(model.get("max_model_len"))
        for model in models
        if isinstance(model, dict) and "id" in model
    }


def vllm(version_page: str, metrics_page: str) -> EngineFacts | None:
    """From GET /version and GET /metrics of vLLM; None when the first is not vLLM's."""
    version = _text(_mapping(version_page).get("version"))
    if version is None:
        return None
    labels = _cache_config(metrics_page)
    return EngineFacts(
        engine="vllm",
        version=version,
        kv_dtype=_label(labels, "cache_dtype"),
        kv_tokens=_count(_label(labels, "kv_cache_size_tokens")) or _blocks(labels),
        kv_bytes=_count(_label(labels, "kv_cache_memory_bytes")),
        prefix_caching={"True": True, "False": False}.get(labels.get("enable_prefix_caching", "")),
        memory_utilisation=_share(_label(labels, "gpu_memory_utilization")),
    )


def sglang(server_info: str) -> EngineFacts | None:
    """From GET /server_info of SGLang; None when it is not SGLang's."""
    page = _mapping(server_info)
    if "mem_fraction_static" not in page and "kv_cache_dtype" not in page:
        return None
    without_cache = page.get("disable_radix_cache")
    sampling = {
        name: page[name] for name in ("sampling_defaults", "preferred_sampling_params") if page.get(name)
    }
    return EngineFacts(
        engine="sglang",
        version=_text(page.get("version")),
        weights=_text(page.get("quantization")),
        kv_dtype=_text(page.get("kv_cache_dtype")),
        kv_tokens=_count(page.get("max_total_num_tokens")),
        max_model_len=_count(page.get("context_length")),
        # A name or a path: SGLang does not tell the text, nor what the checkpoint brings along.
        chat_template=_text(page.get("chat_template")),
        prefix_caching=not without_cache if isinstance(without_cache, bool) else None,
        memory_utilisation=_share(page.get("mem_fraction_static")),
        sampling=_canonical(sampling),
    )


def llama_cpp(props: str) -> EngineFacts | None:
    """From GET /props of llama.cpp, which does not tell its KV cache; None when it is not its page."""
    page = _mapping(props)
    if "build_info" not in page and "total_slots" not in page:
        return None
    template = page.get("chat_template")
    settings = page.get("default_generation_settings")
    settings = settings if isinstance(settings, dict) else {}
    # Older builds list the parameters beside n_ctx, newer ones below `params`.
    params = settings.get("params", settings)
    sampling = {
        name: params[name] for name in params if name in _LLAMA_SAMPLING
    } if isinstance(params, dict) else {}  # fmt: skip
    return EngineFacts(
        engine="llama.cpp",
        version=_text(page.get("build_info")),
        weights=_text(page.get("model_ftype")),
        max_model_len=_count(settings.get("n_ctx")),
        chat_template=_digest(template) if isinstance(template, str) and template else None,
        sampling=_canonical(sampling),
    )


def _cache_config(metrics_page: str) -> dict[str, str]:
    """Labels of vLLM's cache configuration; what stands in the rest of a page of 60 KB does not matter."""
    for line in metrics_page.splitlines():
        if line.startswith((f"{_CACHE_CONFIG}{{", f"{_CACHE_CONFIG} ")):
            try:
                for family in text_string_to_metric_families(f"{line}\n"):
                    return dict(family.samples[0].labels)
            except (ValueError, IndexError):
                continue
    return {}


def _blocks(labels: Mapping[str, str]) -> int | None:
    """Tokens by number and size of blocks, as versions tell that have no `kv_cache_size_tokens`."""
    blocks, size = (_count(_label(labels, name)) for name in ("num_gpu_blocks", "block_size"))
    return blocks * size if blocks and size else None


def _label(labels: Mapping[str, str], name: str) -> str | None:
    """A label's value; Python's None, which vLLM writes out, is not told."""
    told = labels.get(name)
    return None if told == "None" else _text(told)


def _digest(text: str) -> str:
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _canonical(told: Mapping[str, object]) -> str | None:
    """ASCII; None without anything in it, and for what is too long to be somebody's defaults."""
    text = json.dumps(told, sort_keys=True, separators=(",", ":"))
    return text if told and len(text) <= _LONGEST_DEFAULTS else None


def _mapping(page: str) -> dict[str, object]:
    try:
        content = json.loads(page)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _text(told: object) -> str | None:
    """As it can be stored and printed, whatever a server sends."""
    if not isinstance(told, str) or not told:
        return None
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in told[:_LONGEST_WORD])


def _count(told: object) -> int | None:
    """A positive number that may be written as text."""
    if isinstance(told, str) and told.isascii() and told.isdecimal() and len(told) < 19:
        told = int(told)
    return told if isinstance(told, int) and not isinstance(told, bool) and 0 < told < 10**18 else None


def _share(told: object) -> float | None:
    if isinstance(told, bool) or not isinstance(told, int | float | str):
        return None
    try:
        share = float(told)
    except (ValueError, OverflowError):
        return None
    return share if 0 < share <= 1 else None
