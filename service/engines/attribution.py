"""Whether the precision is all that differs between two engines (design section 10).

Weights and the type of the KV cache may differ: they are what is under test. Whatever else differs may be at
fault for a difference of the answers. What either side does not tell is not compared, and listed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from service.decision.evidence import Attribution
from service.engines.facts import UNTOLD, EngineFacts

_STACK = {
    "chat_template": "chat template",
    "max_model_len": "max_model_len",
    "sampling": "sampling defaults",
    "prefix_caching": "prefix caching",
    "memory_utilisation": "memory utilisation",
}
_LONGEST_SHOWN = 200
"""Characters of one side's defaults in a sentence."""
_PRECISION = {"weights": "weights", "kv_dtype": "KV cache type"}


def compare(baseline: EngineFacts | None, candidate: EngineFacts | None) -> Attribution | None:
    """Baseline against candidate; None when either tells nothing at all, so that nothing can be compared."""
    if baseline is None or candidate is None or UNTOLD in (baseline.engine, candidate.engine):
        return None
    return Attribution(
        differences=differences(baseline, candidate, names=("baseline", "candidate")),
        not_told=_not_told(baseline, candidate),
    )


def differences(
    one: EngineFacts, other: EngineFacts, *, names: tuple[str, str], precision: bool = False
) -> tuple[str, ...]:
    """A sentence for each fact that both tell and that differs; with `precision`, of that as well."""
    found: list[str] = []
    versions = one.version, other.version
    if one.engine != other.engine or (None not in versions and versions[0] != versions[1]):
        found.append(_sentence("engine", names, str(one), str(other)))
    for name, words in {**_STACK, **(_PRECISION if precision else {})}.items():
        first, second = getattr(one, name), getattr(other, name)
        if first is None or second is None or first == second:
            continue
        if name == "sampling":
            first, second = _unlike(first, second)
        found.append(_sentence(words, names, _shown(first), _shown(second)))
    return tuple(found)


def disagreement(told: Mapping[str, EngineFacts]) -> str:
    """Which backends of one tier contradict each other, and in what; empty when none do. By backend."""
    sides = sorted(told.items())
    for place, (backend, facts) in enumerate(sides):
        for other, theirs in sides[place + 1 :]:
            if facts.merged(theirs) is None:
                return "; ".join(differences(facts, theirs, names=(backend, other), precision=True))
    return ""


def changed(before: EngineFacts, now: EngineFacts) -> str:
    """What a tier's engines were when they last agreed for long enough, and what they are."""
    return "; ".join(differences(before, now, names=("was", "is"), precision=True))


def _sentence(words: str, names: tuple[str, str], first: str, second: str) -> str:
    return f"{words}: {names[0]} {first}, {names[1]} {second}"


def _not_told(baseline: EngineFacts, candidate: EngineFacts) -> tuple[str, ...]:
    words: Iterable[tuple[str, str]] = [("version", "engine version"), *_STACK.items()]
    found: list[str] = []
    for name, called in words:
        silent = [
            side
            for side, facts in (("baseline", baseline), ("candidate", candidate))
            if getattr(facts, name) is None
        ]
        if silent:
            found.append(f"{called} (by {'neither' if len(silent) == 2 else f'the {silent[0]} not'})")
    return tuple(found)


def _unlike(first: str, second: str) -> tuple[str, str]:
    """Only what differs of two sets of defaults."""
    one, other = json.loads(first), json.loads(second)
    names = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
    shown = [{name: defaults.get(name) for name in names} for defaults in (one, other)]
    return json.dumps(shown[0])[:_LONGEST_SHOWN], json.dumps(shown[1])[:_LONGEST_SHOWN]


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value)
    return text[:19] if text.startswith("sha256:") else text
