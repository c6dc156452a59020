"""Models and tiers that a command line names: those of the configuration, or the nearest is told."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import typer

from service.cli.configuration import WRONG_CONFIGURATION, fail

if TYPE_CHECKING:
    from service.fleet import Ladder, Tier
    from service.settings import Settings


def ladder_of(settings: Settings, model: str, *, before: str = "") -> Ladder:
    """The ladder of a model; ends the command where there is none, with what to say `before`."""
    ladder = settings.ladders.get(model)
    if ladder is None:
        raise _stranger(f"{before}no model is called {model!r}", model, settings.ladders)
    return ladder


def tier_of(ladder: Ladder, name: str, *, before: str = "") -> Tier:
    """A tier of a ladder; ends the command where there is none, with what to say `before`."""
    tiers = {tier.name: tier for tier in ladder.tiers}
    if name not in tiers:
        raise _stranger(f"{before}model {ladder.model!r} has no tier {name!r}", name, tiers)
    return tiers[name]


def _stranger(what: str, name: str, known: Collection[str]) -> typer.Exit:
    from service.settings.nearest import nearest

    return fail(f"{what}; did you mean {nearest(name, known)!r}?", WRONG_CONFIGURATION)
