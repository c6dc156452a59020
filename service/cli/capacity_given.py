"""What `tiergate capacity` is given: sizes, a model's configuration, a tier in a memory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from service.cli.capacity_reports import json_of, wrong

if TYPE_CHECKING:
    from service.capacity.memory import Budget, Cache
    from service.capacity.shape import Layer, Shape

LAYER_FORM = "COUNT:KV_HEADS:HEAD_SIZE[:WINDOW], COUNT:latent:RANK:ROPE or COUNT:state:SIZE"
TIER_FORM = "NAME:WEIGHTS:KV, such as w4a16:5.7GiB:fp8"


def size(written: str | int) -> int:
    """Bytes, rounded down: a fraction of one is nobody's mistake in `15.3GiB`."""
    from service.settings.units import BYTES

    if isinstance(written, int):
        return written
    found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,12})?) ?([A-Za-z]+)", str(written).strip())
    if found is None or found[2] not in BYTES:
        raise typer.BadParameter(f"a size has a number and a unit ({', '.join(BYTES)}), got {written!r}")
    return int(float(found[1]) * BYTES[found[2]])


def layers_of(written: str) -> tuple[int, Layer]:
    """How many layers of one kind; `ValueError` for another form."""
    from service.capacity.shape import Attention, Latent, Recurrent

    count, *rest = [part.strip() for part in written.split(":")]
    if rest[:1] == ["state"] and len(rest) == 2:
        return _count(count, written), Recurrent(state_bytes=size(rest[1]))
    if rest[:1] == ["latent"] and len(rest) == 3:
        rank, rope = (_count(part, written) for part in rest[1:])
        return _count(count, written), Latent(rank=rank, rope=rope)
    if len(rest) not in (2, 3):
        raise ValueError(f"--layer takes {LAYER_FORM}; got {written!r}")
    heads, head_size, *window = (_count(part, written) for part in rest)
    layer = Attention(kv_heads=heads, head_size=head_size, window=window[0] if window else None)
    return _count(count, written), layer


def _count(written: str, of: str) -> int:
    if re.fullmatch(r"[1-9]\d{0,11}", written) is None:
        raise ValueError(f"--layer takes {LAYER_FORM}; got {of!r}")
    return int(written)


def shape_from(config: Path, command: str) -> Shape:
    """The shape in a file, or in the `config.json` of a directory; ends the command where there is none."""
    from service.capacity.hugging_face import shape_of

    path = config / "config.json" if config.is_dir() else config
    try:
        return shape_of(json_of(path, command))
    except ValueError as error:
        raise wrong(command, f"{path}: {error}") from None


def budgeted(
    shape: Shape,
    written: str,
    *,
    memory: int,
    share: float,
    activations: int,
    sequences: int,
    vocabulary: int | None,
    block: int,
    option: str = "--tier",
) -> tuple[str, str, Budget, Cache]:
    """Name and KV precision of a tier as they are written, its budget, and the cache that is left."""
    from service.capacity.memory import Budget, Cache
    from service.capacity.precision import precision_of

    parts = [part.strip() for part in written.rsplit(":", 2)]
    if len(parts) != 3 or not all(parts):
        raise ValueError(f"{option} takes {TIER_FORM}; got {written!r}")
    if vocabulary is None:
        raise ValueError("the vocabulary is not known: give --vocabulary, the logits take memory")
    budget = Budget(
        memory=memory,
        share=share,
        weights=size(parts[1]),
        activations=activations,
        sequences=sequences,
        vocabulary=vocabulary,
    )
    cache = Cache(shape=shape, precision=precision_of(parts[2]), memory=budget.kv, block=block)
    return parts[0], parts[2], budget, cache
