"""What one backend tells of itself. Absent is unknown, never a value: it is neither compared nor counted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache

UNTOLD = "unknown"
"""Engine of a backend that once told who it is, and now answers without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """One backend's own account; what it does not tell is None."""

    engine: str
    """Its name, such as `vllm`."""
    version: str | None = None
    weights: str | None = None
    """How they are quantised, in the engine's word."""
    kv_dtype: str | None = None
    """Type of the KV cache; `auto` follows the checkpoint."""
    kv_tokens: int | None = None
    """That the KV cache holds; tells 8 bits from 16 where `kv_dtype` is `auto`."""
    kv_bytes: int | None = None
    """Of the KV cache, where they were given and not measured."""
    max_model_len: int | None = None
    """Tokens of prompt and answer together."""
    chat_template: str | None = None
    """`sha256:` of its text, or its name where the engine tells only that."""
    prefix_caching: bool | None = None
    memory_utilisation: float | None = None
    """Share of the device's memory that the engine takes."""
    sampling: str | None = None
    """Defaults of sampling, as canonical JSON."""

    def __str__(self) -> str:
        return f"{self.engine} {self.version or '(version not told)'}"

    @property
    def identity(self) -> dict[str, object]:
        """What must be the same in all replicas and throughout an epoch, as far as it is told.

        Not the size of the KV cache: it is measured at every start and differs by a block or two.
        """
        facts = asdict(self)
        return {name: told for name, told in facts.items() if told is not None and name not in _MEASURED}

    def merged(self, other: EngineFacts) -> EngineFacts | None:
        """What both tell together; None where they contradict each other. Silence contradicts nothing."""
        mine, theirs = self.identity, other.identity
        if any(mine[name] != theirs[name] for name in mine.keys() & theirs.keys()):
            return None
        silent = [field.name for field in fields(self) if getattr(self, field.name) is None]
        return replace(self, **{name: getattr(other, name) for name in silent})

    def as_json(self) -> str:
        """Canonical: equal facts are equal texts; what is unknown is left out."""
        told = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(told, sort_keys=True, separators=(",", ":"))


_MEASURED = frozenset({"kv_tokens", "kv_bytes"})
_NAMES = frozenset(field.name for field in fields(EngineFacts))


@lru_cache(maxsize=256)
def facts_of_json(text: str) -> EngineFacts:
    """From `as_json`; names that this version does not know are left out. ValueError for any other text."""
    told = json.loads(text)
    if not isinstance(told, Mapping) or not isinstance(told.get("engine"), str):
        raise ValueError("no engine facts")
    return EngineFacts(**{name: value for name, value in told.items() if name in _NAMES})
