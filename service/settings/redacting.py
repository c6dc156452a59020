"""The masks there are: those of Tiergate, and those that other installed packages offer as entry points.

A package offers one in the group `tiergate.redaction`: a function that takes a text and gives it back without
what must not be kept. It is called for every text of a request and of its answers, one after the other; what
is JSON stays JSON, since it never sees more than one text. Loading one runs its code, so only who keeps texts
does, and a proxy never.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points

from service.redaction import MASKS, Mask

GROUP = "tiergate.redaction"


class MaskUnusable(Exception):
    """A mask that the configuration names cannot be loaded, with what to do."""


def known_masks() -> tuple[str, ...]:
    """The names that a configuration may use; runs no code of other packages."""
    return tuple(dict.fromkeys([*MASKS, *(each.name for each in _offered())]))


def mask_of(name: str) -> Mask:
    """The mask of that name; raises `MaskUnusable`."""
    if name in MASKS:
        return MASKS[name]
    offered = [each for each in _offered() if each.name == name]
    if len(offered) != 1:
        many = f"{len(offered)} packages offer one" if offered else f"there are {', '.join(known_masks())}"
        raise MaskUnusable(f"corpus.redact names the mask {name!r}, and {many}")
    [offer] = offered
    package = offer.dist.name if offer.dist is not None else "unknown"
    try:
        mask = offer.load()
        tried = mask("a text")
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {error}"
    else:
        if isinstance(tried, str):
            return mask  # type: ignore[no-any-return]
        why = f"it gave {type(tried).__name__} for text"
    raise MaskUnusable(
        f"the mask {name!r} ({offer.value}) of the package {package!r} cannot be used: {why}; correct or "
        "uninstall that package, or name another in corpus.redact"
    )


def _offered() -> Sequence[EntryPoint]:
    return sorted(entry_points(group=GROUP), key=lambda each: (each.name, each.value))
