"""What every router works with: the configuration, the stores and the clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from service.approval.access import Caller
from service.approval.config import ApiConfig
from service.approval.kept import Kept
from service.approval.names import find_ladder
from service.store.redis.captures import Captures
from service.store.sql.database import Database
from service.store.verdicts.standing import Question, Standing, read_standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Handed to the routers by `create_app`."""

    config: ApiConfig
    db: Database
    captures: Captures
    now: Callable[[], float]
    """Unix seconds."""
    standings: Kept[str, Standing] = field(default_factory=Kept)
    """By model."""

    @property
    def question(self) -> Question:
        """What verdicts are asked under."""
        return Question(
            policy=self.config.policy,
            epoch_of=self.config.epoch_of,
            attribution_of=self.config.attribution_of,
            control_on_serving=self.config.control_on_serving,
            measured_seconds=self.config.promotion.measured_seconds,
            versions=self.config.evaluators,
        )

    def standing(self, model: str) -> Standing:
        """A ladder as it stands, the same object while nothing is committed, for a second; 404 if unknown."""
        ladder = find_ladder(self.config.ladders, model)

        def read(now: float) -> Standing:
            return read_standing(self.db, ladder, self.question, now=now)

        return self.standings.get(ladder.model, self.db, self.now, read)


def _caller(request: Request) -> Caller:
    caller = request.state.caller
    assert isinstance(caller, Caller)
    return caller


CallerOf = Annotated[Caller, Depends(_caller)]
"""Whom the gatekeeper let in."""
