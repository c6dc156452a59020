from __future__ import annotations

from dataclasses import replace

import pytest

from service.engines.facts import EngineFacts, facts_of_json
from tests.engines.test_pages import LLAMA_CPP_FACTS, SGLANG_FACTS, vllm_facts

BF16 = vllm_facts("auto", 46592)


@pytest.mark.parametrize("facts", [BF16, SGLANG_FACTS, LLAMA_CPP_FACTS, EngineFacts(engine="x")])
def test_facts_come_back_from_their_text(facts: EngineFacts) -> None:
    assert facts_of_json(facts.as_json()) == facts


def test_what_is_unknown_is_not_in_the_text_and_a_newer_writers_names_are_passed_over() -> None:
    assert EngineFacts(engine="x").as_json() == '{"engine":"x"}'
    assert facts_of_json('{"engine":"x","invented_later":3}') == EngineFacts(engine="x")


@pytest.mark.parametrize("text", ["[]", "{}", '{"engine": 3}', "<html>"])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no engine facts|Expecting value"):
        facts_of_json(text)


def test_the_size_of_the_kv_cache_is_no_part_of_the_identity() -> None:
    """It is measured at every start, and differs by a block or two."""
    assert replace(BF16, kv_tokens=46464).identity == BF16.identity
    assert replace(BF16, kv_dtype="fp8").identity != BF16.identity


def test_silence_contradicts_nothing_and_is_filled_in() -> None:
    silent = EngineFacts(engine="vllm", version="0.32.0")
    assert silent.merged(BF16) == BF16
    assert BF16.merged(silent) == BF16
    assert BF16.merged(replace(BF16, version="0.31.0")) is None
    assert BF16.merged(replace(BF16, prefix_caching=False)) is None
