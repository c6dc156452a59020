from __future__ import annotations

from dataclasses import replace

import pytest

from service.engines.attribution import changed, compare, differences, disagreement
from service.engines.facts import UNTOLD, EngineFacts
from tests.engines.test_pages import LLAMA_CPP_FACTS, vllm_facts

BASELINE = replace(
    vllm_facts("auto", 46592),
    max_model_len=32768,
    chat_template="sha256:" + "a" * 64,
    sampling='{"temperature":0.7,"top_p":0.8}',
)


def test_precision_may_differ_it_is_what_is_under_test() -> None:
    candidate = replace(
        BASELINE, weights="compressed-tensors", kv_dtype="fp8_e5m2", kv_tokens=93184, kv_bytes=1
    )
    attribution = compare(BASELINE, candidate)
    assert attribution is not None
    assert attribution.differences == ()
    assert attribution.not_told == ()
    assert attribution.unsettled is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"version": "0.31.0"}, "engine: baseline vllm 0.32.0, candidate vllm 0.31.0"),
        ({"engine": "sglang"}, "engine: baseline vllm 0.32.0, candidate sglang 0.32.0"),
        ({"engine": "x", "version": None}, "engine: baseline vllm 0.32.0, candidate x (version not told)"),
        (
            {"chat_template": "sha256:" + "b" * 64},
            "chat template: baseline sha256:aaaaaaaaaaaa, candidate sha256:bbbbbbbbbbbb",
        ),
        ({"max_model_len": 8192}, "max_model_len: baseline 32768, candidate 8192"),
        (
            {"sampling": '{"temperature":0.6,"top_p":0.8}'},
            'sampling defaults: baseline {"temperature": 0.7}, candidate {"temperature": 0.6}',
        ),
        ({"prefix_caching": False}, "prefix caching: baseline on, candidate off"),
        ({"memory_utilisation": 0.9}, "memory utilisation: baseline 0.92, candidate 0.9"),
    ],
)
def test_each_fact_of_the_stack_that_differs_is_one_sentence_with_both_values(
    changes: dict[str, object], sentence: str
) -> None:
    attribution = compare(BASELINE, replace(BASELINE, **changes))  # type: ignore[arg-type]
    assert attribution is not None
    assert attribution.differences == (sentence,)


def test_what_either_does_not_tell_is_listed_and_not_compared() -> None:
    candidate = replace(BASELINE, chat_template=None, version=None)
    attribution = compare(replace(BASELINE, sampling=None, chat_template=None), candidate)
    assert attribution is not None
    assert attribution.differences == ()
    assert attribution.not_told == (
        "engine version (by the candidate not)",
        "chat template (by neither)",
        "sampling defaults (by the baseline not)",
    )


def test_who_tells_nothing_cannot_be_compared() -> None:
    assert compare(None, BASELINE) is None
    assert compare(BASELINE, None) is None
    assert compare(BASELINE, EngineFacts(engine=UNTOLD)) is None
    assert compare(EngineFacts(engine=UNTOLD), EngineFacts(engine=UNTOLD)) is None


def test_two_engines_of_different_kinds_differ_in_all_that_both_tell() -> None:
    apart = differences(BASELINE, LLAMA_CPP_FACTS, names=("baseline", "candidate"))
    assert [sentence.partition(":")[0] for sentence in apart] == [
        "engine",
        "chat template",
        "max_model_len",
        "sampling defaults",
    ]


def test_replicas_that_contradict_each_other_are_named_with_both_values() -> None:
    told = {"http://a:1": BASELINE, "http://c:1": BASELINE, "http://b:1": replace(BASELINE, version="0.31.0")}
    assert disagreement(told) == "engine: http://a:1 vllm 0.32.0, http://b:1 vllm 0.31.0"
    assert "KV cache type" in disagreement({"a": BASELINE, "b": replace(BASELINE, kv_dtype="fp8")})
    assert "weights" in disagreement(
        {"a": replace(BASELINE, weights="awq"), "b": replace(BASELINE, weights="fp8")}
    )


def test_replicas_agree_when_one_is_silent_or_measures_another_size() -> None:
    silent = EngineFacts(engine="vllm", version="0.32.0")
    assert disagreement({"a": BASELINE, "b": silent, "c": replace(BASELINE, kv_tokens=46464)}) == ""
    assert disagreement({}) == ""
    # The silent one stands between two that contradict each other.
    assert disagreement({"a": BASELINE, "b": silent, "c": replace(BASELINE, prefix_caching=False)}) != ""


def test_a_change_tells_what_was_and_what_is() -> None:
    assert changed(BASELINE, replace(BASELINE, version="0.33.0")) == "engine: was vllm 0.32.0, is vllm 0.33.0"
