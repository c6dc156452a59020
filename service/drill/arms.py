"""Who answers in a drill, and who answers damaged: the three ladders and the arms behind their tiers.

All of it rests on two answers of the baseline's own backends to each question. The live answer is the first;
the control, the candidates and the damaged arms have the second. So the noise between two answers is real,
and a drill costs two requests for each question however many arms look at them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from service.drill.defects import Defect

BASELINE = "baseline"
UNDAMAGED = "undamaged"
FIRST, SECOND = 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One server of the relay."""

    name: str
    """Unique; names its socket."""
    defects: frozenset[Defect] = frozenset()
    begins: int = SECOND
    """Which of the two answers it gives to whoever asks a question first; later it gives the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """One tier of a drill, and the arms behind it."""

    name: str
    serving: Arm
    shadow: Arm | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One ladder of a drill: a model of its own, the baseline first."""

    model: str
    tiers: tuple[Staged, ...]

    @property
    def arms(self) -> tuple[Arm, ...]:
        return tuple(arm for tier in self.tiers for arm in (tier.serving, tier.shadow) if arm is not None)


DAMAGED, SWAPPED, CROSSED = "drill-damaged", "drill-swapped", "drill-crossed"
"""Models: the damaged candidates; baseline and candidate exchanged; the control at a damaged backend."""


def damaged_tier(defect: Defect) -> str:
    """The candidate with this defect and no other."""
    return f"damaged-{defect}"


def stages(defects: Sequence[Defect]) -> Mapping[str, Stage]:
    """The ladders of a drill, by model.

    Recall is compared between replays alone, and both of the control's go to one backend: a damaged one is
    seen in the exchanged arms, not by the control. So without another defect nothing is crossed.
    """
    every = frozenset(defects)

    def arm(stage: str, tier: str, *, defects: frozenset[Defect] = frozenset(), begins: int = SECOND) -> Arm:
        return Arm(name=f"{stage.removeprefix('drill-')}-{tier}", defects=defects, begins=begins)

    found = [
        Stage(
            model=DAMAGED,
            tiers=(
                Staged(name=BASELINE, serving=arm(DAMAGED, BASELINE, begins=FIRST)),
                Staged(name=UNDAMAGED, serving=arm(DAMAGED, UNDAMAGED)),
                *(
                    Staged(
                        name=damaged_tier(each),
                        serving=arm(DAMAGED, each.value, defects=frozenset({each})),
                    )
                    for each in defects
                ),
            ),
        ),
        Stage(
            model=SWAPPED,
            tiers=(
                Staged(name=BASELINE, serving=arm(SWAPPED, BASELINE, defects=every, begins=FIRST)),
                Staged(name=UNDAMAGED, serving=arm(SWAPPED, UNDAMAGED)),
            ),
        ),
    ]
    if every - {Defect.RECALL}:
        crossed = arm(CROSSED, "control", defects=every - {Defect.RECALL})
        found.append(
            Stage(
                model=CROSSED,
                tiers=(
                    Staged(name=BASELINE, serving=arm(CROSSED, BASELINE, begins=FIRST), shadow=crossed),
                    Staged(name=UNDAMAGED, serving=arm(CROSSED, UNDAMAGED)),
                ),
            )
        )
    return {stage.model: stage for stage in found}
