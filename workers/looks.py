"""Looking at every tier, so that people can see later how its limits narrowed and what was decided when."""

from __future__ import annotations

from service.store.database import StoreUnusable
from service.store.looks import keep_looks
from service.store.standing import read_standing
from workers.watching import Guard


def take_looks(guard: Guard, *, now: float) -> int:
    """Read every verdict and keep what is worth keeping (`store.looks`); how many looks were kept.

    A model that cannot be read keeps no other waiting: ExceptionGroup at the end, StoreUnusable at once.
    """
    kept, failed = 0, []
    for ladder in guard.ladders.values():
        try:
            standing = read_standing(guard.db, ladder, guard.question, now=now)
            verdicts = [rung.verdict for rung in standing.rungs if rung.verdict is not None]
            kept += keep_looks(guard.db, verdicts, at=now)
        except StoreUnusable:
            raise
        except Exception as error:
            error.add_note(f"while {ladder.model} was looked at")
            failed.append(error)
    if failed:
        raise ExceptionGroup("not every model could be looked at", failed)
    return kept
