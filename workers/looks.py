"""Looking at every tier, so that people can see later how its limits narrowed and what was decided when."""

from __future__ import annotations

from service.fleet import Ladder
from service.store.verdicts.looks import keep_looks
from service.store.verdicts.standing import read_standing
from workers.watching import Guard, of_each_model


def take_looks(guard: Guard, *, now: float) -> int:
    """Read every verdict and keep what is worth keeping (`store.verdicts.looks`); how many looks were kept.

    Raises as `of_each_model` does.
    """

    def look(ladder: Ladder) -> int:
        standing = read_standing(guard.db, ladder, guard.question, now=now)
        verdicts = [rung.verdict for rung in standing.rungs if rung.verdict is not None]
        return keep_looks(guard.db, verdicts, at=now)

    return sum(of_each_model(guard, look, done="looked at"))
