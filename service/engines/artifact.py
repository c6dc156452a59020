"""What an artifact is, and its digest: model, recipe, engine, version, flags, parallelism. Pure.

Two spellings of the same are the same: names lose dashes and underscores in front and between, numbers and
booleans are one text each, degrees of 1 are left out, and so is what says where a server listens or who may
ask it. Everything else changes the digest.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256

from service.engines.facts import EngineFacts
from service.engines.words import same_engine, same_kv_dtype

DEGREES = ("tensor", "pipeline", "data", "expert", "context")
"""Kinds of parallelism."""
BESIDES = frozenset({"host", "port", "uds", "api-key", "ssl-keyfile", "ssl-certfile", "ssl-ca-certs"})
"""Flags that are no part of an artifact: two replicas differ in them."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_KEYS = ("model", "recipe", "engine", "flags", "parallelism")
_OTHERS = frozenset({"artifact", "engine"})
"""Declared words of a tier that are no recipe."""

Value = str | list["Value"] | dict[str, "Value"]


def bare(digest: str) -> str:
    """A sha256 as it is compared with another: without its prefix, in lower case."""
    return digest.strip().lower().removeprefix("sha256:")


class ArtifactUnclear(ValueError):
    """A declaration from which no artifact can be told; says where and what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """What would be rolled out."""

    model: str
    """Its name, best with a revision or a digest of the weights."""
    engine: str
    """In lower case, such as `vllm`."""
    version: str
    recipe: Mapping[str, Value] = field(default_factory=dict)
    """How it is quantised: weights, activations, kv_cache ..."""
    flags: Mapping[str, Value] = field(default_factory=dict)
    parallelism: Mapping[str, int] = field(default_factory=dict)
    """Degrees above 1, by kind."""

    @property
    def canonical(self) -> str:
        """The one text of it: ASCII JSON with sorted keys and no spaces."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), ensure_ascii=True)

    @property
    def digest(self) -> str:
        """sha256 of the canonical text, 64 hexadecimal digits."""
        return sha256(self.canonical.encode()).hexdigest()


def declared(document: Mapping[str, object]) -> Artifact:
    """The artifact of a declaration. ArtifactUnclear.

    `flags` may be a mapping or a list as on a command line (`--max-model-len=8192`, `--enforce-eager`).
    """
    if unknown := sorted(set(document) - set(_KEYS)):
        raise ArtifactUnclear(f"{unknown[0]!r} is no part of an artifact; there are {', '.join(_KEYS)}")
    if missing := [key for key in ("model", "engine") if not document.get(key)]:
        raise ArtifactUnclear(
            f"{missing[0]!r} is missing: an artifact names at least its model and its engine"
        )
    engine = _mapping(document["engine"], "engine")
    if set(engine) != {"name", "version"}:
        raise ArtifactUnclear("engine: expected name and version, and nothing else")
    return Artifact(
        model=_text(document["model"], "model"),
        engine=_text(engine["name"], "engine.name").lower(),
        version=_text(engine["version"], "engine.version"),
        recipe=_named(_mapping(document.get("recipe") or {}, "recipe"), "recipe"),
        flags=_flags(document.get("flags") or {}),
        parallelism=_degrees(_mapping(document.get("parallelism") or {}, "parallelism")),
    )


def told(facts: EngineFacts, *, model: str, words: Mapping[str, str]) -> Artifact:
    """The artifact as a backend tells it; `words` are what its tier declares.

    ArtifactUnclear when the engine tells no version. Parallelism is told by none of them.
    """
    if facts.version is None:
        raise ArtifactUnclear(f"{facts.engine} does not tell its version")
    heard = {name: value for name, value in facts.identity.items() if name not in ("engine", "version")}
    spoken: dict[str, object] = {name: word for name, word in words.items() if name not in _OTHERS}
    kept = {"weights": heard.pop("weights", None), "kv_cache": heard.pop("kv_dtype", None)}
    spoken |= {f"{name} (told)": value for name, value in kept.items() if value is not None}
    return Artifact(
        model=model,
        engine=facts.engine,
        version=facts.version,
        recipe=_named(spoken, "recipe"),
        flags=_named(heard, "flags"),
    )


def contradictions(artifact: Artifact, facts: EngineFacts) -> list[str]:
    """Where a backend tells something else than was declared; what it does not tell contradicts nothing."""
    found = []
    if not same_engine(f"{artifact.engine} {artifact.version}", facts):
        found.append(f"engine: {artifact.engine} {artifact.version} is declared, {facts} answers")
    kv_cache = artifact.recipe.get("kv-cache")
    if isinstance(kv_cache, str) and facts.kv_dtype and not same_kv_dtype(kv_cache, facts.kv_dtype):
        found.append(f"recipe.kv_cache: {kv_cache} is declared, {facts.kv_dtype} answers")
    longest = artifact.flags.get("max-model-len")
    if isinstance(longest, str) and facts.max_model_len and longest != str(facts.max_model_len):
        found.append(f"flags.max_model_len: {longest} is declared, {facts.max_model_len} answers")
    caching = artifact.flags.get("enable-prefix-caching")
    if caching in ("true", "false") and facts.prefix_caching is not None:
        answers = str(facts.prefix_caching).lower()
        if caching != answers:
            found.append(f"flags.enable_prefix_caching: {caching} is declared, {answers} answers")
    return found


def _flags(flags: object) -> dict[str, Value]:
    if isinstance(flags, list):
        flags = dict(_pairs(flags))
    named = _named(_mapping(flags, "flags"), "flags")
    return {name: value for name, value in named.items() if name not in BESIDES}


def _pairs(words: Iterable[object]) -> Iterable[tuple[str, object]]:
    seen: set[str] = set()
    for word in words:
        if not isinstance(word, str) or not word.startswith("--"):
            raise ArtifactUnclear(f"flags: expected `--name` or `--name=value`, not {word!r}")
        name, equals, value = word.partition("=") if "=" in word else word.partition(" ")
        if _name(name, "flags") in seen:
            raise ArtifactUnclear(f"flags: {name} is given twice")
        seen.add(_name(name, "flags"))
        yield name, value.strip() if equals else True


def _degrees(degrees: Mapping[str, object]) -> dict[str, int]:
    for name, degree in degrees.items():
        if name not in DEGREES:
            raise ArtifactUnclear(f"parallelism: {name!r} is none of {', '.join(DEGREES)}")
        if not isinstance(degree, int) or isinstance(degree, bool) or degree < 1:
            raise ArtifactUnclear(f"parallelism.{name}: expected a whole number from 1, not {degree!r}")
    return {name: degree for name, degree in degrees.items() if isinstance(degree, int) and degree > 1}


def _named(values: Mapping[str, object], where: str) -> dict[str, Value]:
    """With one spelling of each name and value."""
    named: dict[str, Value] = {}
    for name, value in values.items():
        key = _name(name, where)
        if key in named:
            raise ArtifactUnclear(f"{where}: {name!r} is given twice, in two spellings")
        named[key] = _value(value, f"{where}.{name}")
    return named


def _name(name: object, where: str) -> str:
    key = str(name).strip().lstrip("-").replace("_", "-").lower()
    if not key:
        raise ArtifactUnclear(f"{where}: a name is empty")
    return key


def _value(value: object, where: str) -> Value:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return str(int(value)) if value.is_integer() else repr(value)
        case str():
            text = value.strip()
            if text.lower() in ("true", "false"):
                return text.lower()
            if _NUMBER.fullmatch(text) and len(text) <= 15 and not text.lstrip("-").isdecimal():
                return _value(float(text), where)
            return text
        case list() | tuple():
            return [_value(each, where) for each in value]
        case Mapping():
            return _named({str(name): each for name, each in value.items()}, where)
    raise ArtifactUnclear(f"{where}: expected a text, number, true or false, not {value!r}")


def _mapping(value: object, where: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ArtifactUnclear(f"{where}: expected names and values, not {value!r}")
    return value


def _text(value: object, where: str) -> str:
    plain = _value(value, where)
    if not isinstance(plain, str) or not plain:
        raise ArtifactUnclear(f"{where}: expected a text, not {value!r}")
    return plain
