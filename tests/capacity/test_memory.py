"""What a cache holds, held to what real engines said of theirs."""

from __future__ import annotations

import pytest

from service.capacity.memory import Budget, Cache
from service.capacity.precision import (
    FP8,
    FP16,
    INT4,
    INT8,
    PRECISIONS,
    Precision,
    precision_of,
    vllm_name_of,
)
from service.capacity.shape import Attention, Latent, Recurrent, Shape

SMOLLM2 = Shape(layers=((30, Attention(kv_heads=3, head_size=64)),), hidden_size=576, context=8192)
GIB = 1 << 30


def cache(shape: Shape = SMOLLM2, precision: Precision = FP16, memory: int = GIB, block: int = 128) -> Cache:
    return Cache(shape=shape, precision=precision, memory=memory, block=block)


@pytest.mark.parametrize(("precision", "blocks", "tokens"), [(FP16, 364, 46_592), (FP8, 728, 93_184)])
def test_it_is_what_vllm_0_32_says_of_smollm2_in_1_gib(
    precision: Precision, blocks: int, tokens: int
) -> None:
    """From `vllm:cache_config_info`: num_gpu_blocks and kv_cache_size_tokens, at block_size 128."""
    assert cache(precision=precision).blocks == blocks
    assert cache(precision=precision).tokens == tokens


def test_the_rounding_is_part_of_one_block() -> None:
    """46,603 tokens have bytes, 46,592 have a block; with blocks of 16 FP8 would have had 93,200."""
    assert GIB // SMOLLM2.token_bytes(FP16) == 46_603
    assert GIB // SMOLLM2.token_bytes(FP8) == 93_206
    assert cache(precision=FP8, block=16).tokens == 93_200


def test_the_engine_s_most_sequences_are_its_blocks_by_those_of_one() -> None:
    """kv_cache_max_concurrency is 11.375 at max_model_len 4,096: 11 whole ones."""
    assert cache().concurrency(4096) == 11
    assert cache(precision=FP8).concurrency(4096) == 22


def test_a_token_takes_twice_layers_heads_size_and_bytes() -> None:
    assert SMOLLM2.token_bytes(FP16) == 2 * 30 * 3 * 64 * 2
    assert [SMOLLM2.token_bytes(each) for each in PRECISIONS] == [23_040, 11_520, 12_240, 6_480]


def test_the_naive_formula_is_off_by_heads_over_kv_heads() -> None:
    assert SMOLLM2.naive_token_bytes(FP16) == 3 * SMOLLM2.token_bytes(FP16)
    mha = Shape(layers=((32, Attention(kv_heads=32, head_size=128)),), hidden_size=4096)
    assert mha.naive_token_bytes(FP16) == mha.token_bytes(FP16)
    assert Shape(layers=((1, Attention(kv_heads=1, head_size=8)),)).naive_token_bytes(FP16) is None


def test_latent_attention_keeps_one_vector() -> None:
    """DeepSeek-V3: 61 x (512 + 64) x 2 bytes, 70,272 a token."""
    assert Shape(layers=((61, Latent(rank=512, rope=64)),)).token_bytes(FP16) == 70_272


def test_a_full_window_takes_no_more() -> None:
    windowed = Shape(layers=((1, Attention(kv_heads=1, head_size=8, window=1024)),))
    short, full, long = (cache(windowed, block=16).sequence_bytes(n) for n in (512, 1040, 100_000))
    assert short == 512 * 32
    assert full == long == (1024 + 16) * 32
    assert not windowed.grows()


def test_a_hybrid_model_takes_its_states_once() -> None:
    layer = Attention(kv_heads=2, head_size=256)
    hybrid = Shape(layers=((12, layer), (36, Recurrent(state_bytes=1_000_000))))
    grown = cache(hybrid, block=16)
    assert hybrid.depth == 48
    assert grown.sequence_bytes(32) == 12 * 32 * layer.token_bytes(FP16) + 36_000_000
    assert hybrid.grows()


def test_a_model_of_states_alone_has_no_blocks_and_any_context() -> None:
    recurrent = Shape(layers=((2, Recurrent(state_bytes=100)),), context=5000)
    held = cache(recurrent, memory=1000)
    assert (held.blocks, held.tokens, held.concurrency(10), held.context(5), held.context(6)) == (
        *(None, None, 5, 5000, 0),
    )


@pytest.mark.parametrize("sequences", [1, 3, 7, 16, 100, 400])
@pytest.mark.parametrize("precision", PRECISIONS, ids=lambda each: each.name)
def test_the_longest_context_fits_and_one_more_does_not(precision: Precision, sequences: int) -> None:
    held = cache(precision=precision, block=16)
    longest = held.context(sequences)
    assert longest == 0 or held.concurrency(longest) >= sequences
    assert longest == SMOLLM2.context or held.concurrency(longest + 1) < sequences


def test_an_odd_number_of_4_bit_numbers_rounds_up() -> None:
    assert INT4.vector_bytes(3) == 2 + 4
    assert INT8.vector_bytes(3) == 3 + 4


def test_precisions_are_known_by_engines_names() -> None:
    assert precision_of("auto") is precision_of("BF16") is FP16
    assert precision_of("fp8_e5m2") is FP8
    written = ("auto", "BF16", "FP8", "fp8_e5m2", "int8", "4-bit", "int4", "int8_per_token_head")
    assert [vllm_name_of(each) for each in written] == [
        *("auto", "auto", "fp8", "fp8_e5m2"),
        *("int8_per_token_head", "int4_per_token_head", "int4_per_token_head", "int8_per_token_head"),
    ]
    with pytest.raises(ValueError, match=r"KV precision 'fp3' is not known; known are: auto"):
        precision_of("fp3")


def test_a_budget_leaves_what_weights_activations_and_logits_do_not_take() -> None:
    budget = Budget(memory=10_000, share=0.9, weights=5_000, activations=1_000, sequences=10, vocabulary=50)
    assert (budget.logits, budget.kv, budget.lacking) == (2_000, 1_000, -1_000)


def test_weights_that_do_not_fit_leave_nothing_and_say_what_is_lacking() -> None:
    budget = Budget(memory=10_000, share=0.9, weights=9_500, activations=0, sequences=1, vocabulary=0)
    assert (budget.kv, budget.lacking) == (0, 500)


@pytest.mark.parametrize("share", [0.0, 1.01, float("nan")])
def test_an_impossible_share_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="share of memory"):
        Budget(memory=1, share=share, weights=0, activations=0, sequences=1, vocabulary=0)


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="fewer than 0 bytes"):
        cache(memory=-1)
    with pytest.raises(ValueError, match="at least 1 token"):
        cache(block=0)
    with pytest.raises(ValueError, match="at least 1 token"):
        cache().sequence_bytes(0)
    with pytest.raises(ValueError, match="at least 1 sequence"):
        cache().context(0)
    with pytest.raises(ValueError, match="no fewer"):
        Budget(memory=1, weights=-1, activations=0, sequences=1, vocabulary=0)
    with pytest.raises(ValueError, match="from 1"):
        Attention(kv_heads=0, head_size=1)
    with pytest.raises(ValueError, match="latent"):
        Latent(rank=0, rope=1)
    with pytest.raises(ValueError, match="0 bytes"):
        Recurrent(state_bytes=-1)
    with pytest.raises(ValueError, match="at least one layer"):
        Shape(layers=())
