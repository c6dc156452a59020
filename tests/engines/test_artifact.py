"""An artifact's digest: the same for the same, however it is spelt; another for anything else."""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import sha256
from typing import Any

import pytest

from service.engines.artifact import ArtifactUnclear, contradictions, declared, told
from service.engines.facts import EngineFacts

DECLARED: dict[str, Any] = {
    "model": "Qwen/Qwen3-32B@9216db5781bf21249d130ec9da846c4624c16137",
    "recipe": {"weights": "int8", "activations": "int8", "kv_cache": "fp8"},
    "engine": {"name": "vllm", "version": "0.11.0"},
    "flags": {"max_model_len": 32768, "gpu_memory_utilization": 0.9, "enable_prefix_caching": True},
    "parallelism": {"tensor": 2},
}
DIGEST = declared(DECLARED).digest


def changed(**changes: Any) -> str:
    return declared(DECLARED | changes).digest


def test_the_digest_is_sha256_of_the_documented_text() -> None:
    artifact = declared(DECLARED)
    assert artifact.canonical == (
        '{"engine":"vllm","flags":{"enable-prefix-caching":"true","gpu-memory-utilization":"0.9",'
        '"max-model-len":"32768"},"model":"Qwen/Qwen3-32B@9216db5781bf21249d130ec9da846c4624c16137",'
        '"parallelism":{"tensor":2},"recipe":{"activations":"int8","kv-cache":"fp8","weights":"int8"},'
        '"version":"0.11.0"}'
    )
    assert artifact.digest == sha256(artifact.canonical.encode()).hexdigest() == DIGEST


@pytest.mark.parametrize(
    "changes",
    [
        {
            "flags": {
                "enable_prefix_caching": "true",
                "gpu-memory-utilization": "0.90",
                "max_model_len": "32768",
            }
        },
        {"flags": ["--max-model-len=32768", "--gpu-memory-utilization 0.9", "--enable-prefix-caching"]},
        {"flags": {**DECLARED["flags"], "port": 8001, "host": "0.0.0.0", "api_key": "secret"}},
        {"parallelism": {"pipeline": 1, "tensor": 2}},
        {"engine": {"version": "0.11.0", "name": "vLLM"}},
        {"recipe": {"kv-cache": "fp8", "activations": "int8", "weights": " int8 "}},
    ],
)
def test_another_spelling_is_the_same_artifact(changes: dict[str, Any]) -> None:
    assert changed(**changes) == DIGEST


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "Qwen/Qwen3-32B"},
        {"recipe": {"weights": "int8"}},
        {"recipe": {**DECLARED["recipe"], "group_size": 128}},
        {"engine": {"name": "vllm", "version": "0.11.1"}},
        {"engine": {"name": "sglang", "version": "0.11.0"}},
        {"flags": {}},
        {"flags": {**DECLARED["flags"], "enforce_eager": True}},
        {"flags": {**DECLARED["flags"], "gpu_memory_utilization": 0.91}},
        {"flags": {**DECLARED["flags"], "speculative_config": {"num_speculative_tokens": 3}}},
        {"parallelism": {}},
        {"parallelism": {"tensor": 2, "data": 2}},
    ],
)
def test_anything_else_is_another_artifact(changes: dict[str, Any]) -> None:
    assert changed(**changes) != DIGEST


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"modle": "x"}, "'modle' is no part"),
        ({"model": ""}, "'model' is missing"),
        ({"engine": "vllm"}, "engine: expected names and values"),
        ({"engine": {"name": "vllm"}}, "name and version"),
        ({"engine": {"name": "vllm", "version": [1]}}, r"engine\.version"),
        ({"flags": {"a_b": 1, "a-b": 2}}, "twice"),
        ({"flags": ["--a", "--a=1"]}, "twice"),
        ({"flags": ["max-model-len"]}, "--name=value"),
        ({"flags": {"a": None}}, r"flags\.a"),
        ({"flags": {"a": float("nan")}}, r"flags\.a"),
        ({"flags": {"--": 1}}, "empty"),
        ({"parallelism": {"tp": 2}}, "'tp' is none of tensor"),
        ({"parallelism": {"tensor": 0}}, "from 1"),
        ({"parallelism": {"tensor": True}}, "from 1"),
        ({"recipe": [1]}, "recipe: expected names"),
    ],
)
def test_a_declaration_that_is_unclear_says_where(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ArtifactUnclear, match=complaint):
        changed(**changes)


FACTS = EngineFacts(
    engine="vllm",
    version="0.11.0",
    kv_dtype="fp8_e4m3",
    max_model_len=32768,
    prefix_caching=True,
    kv_tokens=1000,
)


def test_a_backend_tells_an_artifact_and_what_it_measures_anew_at_each_start_is_no_part() -> None:
    artifact = told(FACTS, model="q", words={"weights": "int8", "artifact": "ab" * 32, "engine": "vllm"})
    assert artifact.recipe == {"weights": "int8", "kv-cache (told)": "fp8_e4m3"}
    assert artifact.flags == {"max-model-len": "32768", "prefix-caching": "true"}
    other = EngineFacts(**{**asdict(FACTS), "kv_tokens": 1001})
    assert told(other, model="q", words={"weights": "int8"}).digest == artifact.digest
    upgraded = EngineFacts(**{**asdict(FACTS), "version": "0.11.1"})
    assert told(upgraded, model="q", words={"weights": "int8"}).digest != artifact.digest
    assert json.loads(artifact.canonical)["parallelism"] == {}


def test_an_engine_without_a_version_is_no_artifact() -> None:
    with pytest.raises(ArtifactUnclear, match="does not tell its version"):
        told(EngineFacts(engine="sglang"), model="q", words={})


def test_a_backend_that_tells_something_else_contradicts_and_silence_does_not() -> None:
    artifact = declared(DECLARED)
    assert contradictions(artifact, FACTS) == []
    assert contradictions(artifact, EngineFacts(engine="vllm", version="0.11.0")) == []
    other = EngineFacts(
        engine="vllm", version="0.12.0", kv_dtype="bf16", max_model_len=8192, prefix_caching=False
    )
    found = contradictions(artifact, other)
    assert [line.partition(":")[0] for line in found] == [
        "engine",
        "recipe.kv_cache",
        "flags.max_model_len",
        "flags.enable_prefix_caching",
    ]
