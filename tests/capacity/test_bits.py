"""Bits of declared words, as people and engines write them."""

from __future__ import annotations

import pytest

from service.capacity.bits import bits_of, fewest_bits


@pytest.mark.parametrize(
    ("word", "bits"),
    [
        ("bf16", 16),
        ("bfloat16", 16),
        ("fp8_e4m3", 8),
        ("int4", 4),
        ("INT8", 8),
        ("w4a16", 4),
        ("w8a8", 8),
        ("q4_K_M", 4),
        ("IQ3_XS", 3),
        ("nf4", 4),
        ("mxfp4", 4),
        ("awq-int4", 4),
        ("4-bit", 4),
        ("8 bits", 8),
        ("gptq 3bit", 3),
        ("auto", None),
        ("awq", None),
        ("", None),
        ("sha256", None),
        ("int99", None),
        ("group size 128", None),
    ],
)
def test_a_word_means_so_many_bits(word: str, bits: int | None) -> None:
    assert bits_of(word) == bits


def test_the_fewest_of_weights_and_cache_count_and_activations_do_not() -> None:
    assert fewest_bits({"weights": "int8", "kv_cache": "fp8", "activations": "int4"}) == 8
    assert fewest_bits({"weights": "bf16", "kv_cache": "int4"}) == 4
    assert fewest_bits({"weights": "int4", "kv_cache": "auto"}) == 4
    assert fewest_bits({"kv_cache": "fp8"}) is None, "of the weights nothing is known"
    assert fewest_bits({}) is None
