"""The layers of a model, as far as its cache is concerned."""

from __future__ import annotations

from dataclasses import dataclass

from service.capacity.precision import Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """A layer that keeps a key and a value of each token, for each KV head (MHA, GQA, MQA)."""

    kv_heads: int
    head_size: int
    value_size: int | None = None
    """Numbers of a value, where they are not as many as of a key."""
    window: int | None = None
    """Tokens that it looks back, its own included; `None`: all."""

    def __post_init__(self) -> None:
        sizes = (self.kv_heads, self.head_size, self.value_size, self.window)
        if any(each is not None and each < 1 for each in sizes):
            raise ValueError("KV heads, head size and window are whole numbers from 1")

    def token_bytes(self, precision: Precision) -> int:
        """2 x heads x head size x bytes, for one token of this layer."""
        value = self.head_size if self.value_size is None else self.value_size
        return self.kv_heads * (precision.vector_bytes(self.head_size) + precision.vector_bytes(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Multi-head latent attention (DeepSeek-V2): one compressed vector for all heads, no factor 2."""

    rank: int
    """`kv_lora_rank`."""
    rope: int
    """`qk_rope_head_dim`: the part of the key that carries the position."""
    window: None = None

    def __post_init__(self) -> None:
        if self.rank < 1 or self.rope < 0:
            raise ValueError("the rank of latent attention is a whole number from 1, its rope part from 0")

    def token_bytes(self, precision: Precision) -> int:
        """(rank + rope) x bytes, for one token of this layer."""
        return precision.vector_bytes(self.rank + self.rope)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrent:
    """A layer of a state space or of linear attention: a state for each sequence, nothing for a token."""

    state_bytes: int
    """Of one sequence, at the engine's own precision: the KV precision does not change it."""
    window: None = None

    def __post_init__(self) -> None:
        if self.state_bytes < 0:
            raise ValueError("a recurrent state takes no fewer than 0 bytes")

    def token_bytes(self, precision: Precision) -> int:
        """Nothing: the state does not grow."""
        return 0


Layer = Attention | Latent | Recurrent


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """All layers of a model that keep something, and what its naive size would be computed from."""

    layers: tuple[tuple[int, Layer], ...]
    """How many there are of each kind."""
    hidden_size: int | None = None
    vocabulary: int | None = None
    context: int | None = None
    """Tokens that the model was made for."""

    def __post_init__(self) -> None:
        if not self.layers or any(count < 1 for count, _ in self.layers):
            raise ValueError("a model has at least one layer of each kind that is named")

    @property
    def depth(self) -> int:
        """Layers that keep something of their own."""
        return sum(count for count, _ in self.layers)

    def token_bytes(self, precision: Precision) -> int:
        """Bytes of one more token while no window is full: 2 x layers x KV heads x head size x bytes."""
        return sum(count * layer.token_bytes(precision) for count, layer in self.layers)

    def naive_token_bytes(self, precision: Precision) -> int | None:
        """2 x layers x hidden size x bytes: right for as many KV heads as heads, too much for all others."""
        if self.hidden_size is None:
            return None
        return 2 * self.depth * precision.vector_bytes(self.hidden_size)

    def grows(self) -> bool:
        """Whether a longer sequence takes more at any length."""
        return any(layer.window is None and not isinstance(layer, Recurrent) for _, layer in self.layers)
