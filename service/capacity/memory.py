"""What a sequence takes of a KV cache, and what fits into one.

Engines give memory in blocks: a sequence takes whole ones, and a pool has as many as fit whole. A block of a
pool holds that many tokens of every layer, so both roundings are losses of part of a block.
"""

from __future__ import annotations

from dataclasses import dataclass

from service.capacity.precision import Precision
from service.capacity.shape import Recurrent, Shape

BLOCK_TOKENS = 16
"""Of vLLM's blocks by default; an engine may choose more (128 on some backends)."""
MOST_TOKENS = 16_777_216
"""No context is longer: where to stop looking for what fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """A KV cache of so many bytes, for a model at a precision."""

    shape: Shape
    precision: Precision
    memory: int
    """Bytes."""
    block: int = BLOCK_TOKENS
    """Tokens of a block."""

    def __post_init__(self) -> None:
        if self.memory < 0:
            raise ValueError("a KV cache has no fewer than 0 bytes")
        if self.block < 1:
            raise ValueError("a block holds at least 1 token")

    @property
    def block_bytes(self) -> int:
        """Bytes of one block in all layers."""
        return self.block * self.shape.token_bytes(self.precision)

    @property
    def blocks(self) -> int | None:
        """Whole blocks that fit; `None` for a model of recurrent layers alone, which has none."""
        return self.memory // self.block_bytes if self.block_bytes else None

    @property
    def tokens(self) -> int | None:
        """Tokens of those blocks, as an engine reports its size; windows and states can only stretch it."""
        return None if self.blocks is None else self.blocks * self.block

    def sequence_bytes(self, tokens: int) -> int:
        """Bytes that one sequence of this length holds: whole blocks; of a window, one more, as it moves.

        The chunk that is being prefilled is not in it: an engine needs its blocks in windowed layers besides.
        """
        if tokens < 1:
            raise ValueError("a sequence has at least 1 token")
        total = 0
        for count, layer in self.shape.layers:
            if isinstance(layer, Recurrent):
                total += count * layer.state_bytes
                continue
            blocks = -(-tokens // self.block)
            if layer.window is not None:
                blocks = min(blocks, -(-layer.window // self.block) + 1)
            total += count * blocks * self.block * layer.token_bytes(self.precision)
        return total

    def concurrency(self, tokens: int) -> int:
        """The most sequences of this length at once, each to its end, without preemption."""
        taken = self.sequence_bytes(tokens)
        return self.memory // taken if taken else 0

    def context(self, sequences: int) -> int:
        """The longest that so many at once may be, at most what the model was made for; 0: none fits."""
        if sequences < 1:
            raise ValueError("at least 1 sequence")
        least, most = 0, self.shape.context or MOST_TOKENS
        while least < most:
            middle = (least + most + 1) // 2
            if sequences * self.sequence_bytes(middle) <= self.memory:
                least = middle
            else:
                most = middle - 1
        return least


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Weights + KV + headroom = the share of a card's memory that an engine may take. Bytes."""

    memory: int
    """Of the card, or of all cards of one engine."""
    share: float = 0.92
    """That the engine may take: `--gpu-memory-utilization`; vLLM's default since 0.11 is 0.92."""
    weights: int
    activations: int
    """The peak while a batch is computed, and the engine's own: what its start-up log calls so."""
    sequences: int
    """The most at once: each has a row of logits."""
    vocabulary: int

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError("the share of memory is above 0 and at most 1")
        if min(self.memory, self.weights, self.activations, self.vocabulary) < 0 or self.sequences < 1:
            raise ValueError("sizes are no fewer than 0 bytes, and at least 1 sequence runs")

    @property
    def logits(self) -> int:
        """One row of FP32 for each sequence."""
        return 4 * self.vocabulary * self.sequences

    @property
    def kv(self) -> int:
        """What is left for the cache; 0 where nothing is."""
        return max(0, -self.lacking)

    @property
    def lacking(self) -> int:
        """Bytes that are missing before the first block fits; negative: what is left."""
        return self.weights + self.activations + self.logits - int(self.memory * self.share)
