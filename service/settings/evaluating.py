"""The evaluators there are: ours, and those that other installed packages offer as entry points.

A package offers one in the group `tiergate.evaluators`, under the name that the evaluator has. Looking for
them reads the disk, and loading one runs its code, so it is done here, by roots, and not in `evaluators`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

import evaluators
from evaluators.score import Evaluator

GROUP = "tiergate.evaluators"
OURS = (*evaluators.ALL, *evaluators.ASKED_FOR)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_VERSION = re.compile(r"[!-~]{1,32}")
_METHODS = ("applies", "score", "score_fault")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """Every evaluator that can be used, ours first, and why others cannot."""

    evaluators: tuple[Evaluator, ...]
    problems: tuple[str, ...] = ()
    """One sentence for each that cannot be used, naming its package."""


def known() -> tuple[str, ...]:
    """The names that a policy may use. Reads what packages say of themselves and runs none of their code."""
    return tuple(dict.fromkeys([*(each.name for each in OURS), *(each.name for each in _offered())]))


def installed() -> Installed:
    """Loads what packages offer; one that raises, or is no evaluator, is a problem and stops no other."""
    offered = _offered()
    taken = Counter([*(each.name for each in OURS), *(each.name for each in offered)])
    found: list[Evaluator] = list(OURS)
    problems: list[str] = []
    for each in offered:
        try:
            if taken[each.name] > 1:
                raise _Unusable("another evaluator has this name")
            found.append(_loaded(each))
        except _Unusable as error:
            package = each.dist.name if each.dist is not None else "unknown"
            problems.append(
                f"the evaluator {each.name!r} ({each.value}) of the package {package!r} cannot be "
                f"used: {error}; correct or uninstall that package"
            )
    return Installed(evaluators=tuple(found), problems=tuple(problems))


class _Unusable(Exception):
    """Why one is not an evaluator."""


def _offered() -> Sequence[EntryPoint]:
    """In an order that depends on no file system: it is the order in which they are shown."""
    return sorted(entry_points(group=GROUP), key=lambda each: (each.name, each.value))


def _loaded(offer: EntryPoint) -> Evaluator:
    """An instance of the class, or the object itself, that an entry point names."""
    try:
        loaded = offer.load()
        evaluator = loaded() if isinstance(loaded, type) else loaded
        name, version = getattr(evaluator, "name", None), getattr(evaluator, "version", None)
        missing = [method for method in _METHODS if not callable(getattr(evaluator, method, None))]
    except (Exception, SystemExit) as error:
        raise _Unusable(f"{type(error).__name__}: {error}") from error
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _Unusable(
            f"its name must be lower case letters, digits and _, and begin with a letter, got {name!r}"
        )
    if name != offer.name:
        raise _Unusable(f"the entry point must have the name of the evaluator, which is {name!r}")
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise _Unusable(f"its version must be 1 to 32 visible ASCII characters, got {version!r}")
    if missing:
        raise _Unusable(f"it has no method {' and no method '.join(missing)}")
    usable: Evaluator = evaluator
    return usable
