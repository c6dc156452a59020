"""Planted needles: facts of our own to be written into a context, where it has too few of its own.

`single` is one fact. `multi_key` is four of one kind, of which one is asked for: who looks for the kind alone
finds the wrong one. `multi_value` is three of one name, all asked for. What they say of whom is decided by a
seed; neither names nor values stand in the context already.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evaluators.exchange import Needle


class Kind(StrEnum):
    """How hard a planted fact is to find."""

    SINGLE = "single"
    """One sentence of its kind."""
    MULTI_KEY = "multi_key"
    """Beside others that say the same of something else."""
    MULTI_VALUE = "multi_value"
    """One of several sentences about the same, all of which are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planting:
    """Sentences with the depth (0 to 1) at which each is to be written, and what is asked of them."""

    sentences: Sequence[tuple[float, str]]
    needle: Needle


_OWNERS = tuple(
    f"{colour} {place}"
    for colour in ("amber", "hollow", "slate", "ivory", "crooked", "silver")
    for place in ("pavilion", "orchard", "boathouse", "chapel", "quarry", "lighthouse")
)
_CHINESE_OWNERS = tuple(
    colour + place
    for colour in ("琥珀", "青石", "象牙", "银色", "弯月", "云杉")
    for place in ("凉亭", "果园", "船屋", "礼堂", "采石场", "灯塔")
)
_KINDS = ("storage code", "registry number", "transit code", "inspection number")
_CHINESE_KINDS = ("存储编码", "登记编号", "中转编码", "检验编号")
_MULTI_KEYS = 4
_MULTI_VALUES = 3


def planting(text: str, *, seed: str, kind: Kind, depth: float, chinese: bool) -> Planting | None:
    """What to write into `text` so that the answer stands at `depth`; the same for the same arguments.

    The further facts of the multiple kinds are spread over the whole depth. None where the text names
    everything that there is to name.
    """

    def draw(what: str, most: int) -> int:
        """Below `most`, by the arguments and by what is drawn."""
        digest = hashlib.sha256(f"{seed}|{kind}|{depth}|{what}".encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8]) % most

    folded = text.casefold()
    owners = [each for each in (_CHINESE_OWNERS if chinese else _OWNERS) if each not in folded]
    if len(owners) < _MULTI_KEYS:
        return None
    what = (_CHINESE_KINDS if chinese else _KINDS)[draw("what", len(_KINDS))]
    owners.sort(key=lambda owner: draw(owner, 2**63))
    named = [f"{owner}的{what}" if chinese else f"{what} of the {owner}" for owner in owners[:_MULTI_KEYS]]
    count = {Kind.SINGLE: 1, Kind.MULTI_KEY: _MULTI_KEYS, Kind.MULTI_VALUE: _MULTI_VALUES}[kind]
    values = _codes(folded, count, draw)
    depths = [depth, *((2 + draw(f"depth {n}", 97)) / 100 for n in range(count - 1))]
    if kind is Kind.MULTI_VALUE:
        said = [
            f"{named[0]}之一是{value}。" if chinese else f"One {named[0]} is {value}." for value in values
        ]
        asked = (
            f"{named[0]}有哪三个？请全部列出。" if chinese else f"List all three of the {_plural(named[0])}."
        )
        needle = Needle(key=named[0], value=values[0], others=tuple(values[1:]), question=asked, depth=depth)
    else:
        said = [
            f"{name}是{value}。" if chinese else f"The {name} is {value}."
            for name, value in zip(named, values, strict=False)
        ]
        asked = f"{named[0]}是什么？" if chinese else f"What is the {named[0]}?"
        needle = Needle(key=named[0], value=values[0], question=asked, depth=depth)
    return Planting(sentences=tuple(zip(depths, said, strict=True)), needle=needle)


def _plural(name: str) -> str:
    what, of, owner = name.partition(" of ")
    return f"{what}s{of}{owner}"


def _codes(folded: str, count: int, draw: Callable[[str, int], int]) -> list[str]:
    """Of two letters and five digits, none of which the text says."""
    found: dict[str, None] = {}
    turn = 0
    while len(found) < count:
        letters = "KQVWXZ"[draw(f"first {turn}", 6)] + "BDFHJN"[draw(f"second {turn}", 6)]
        code = f"{letters}{10_000 + draw(f'code {turn}', 90_000)}"
        if code.casefold() not in folded:
            found[code] = None
        turn += 1
    return list(found)
