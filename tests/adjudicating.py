"""Pairs drawn for people to judge, as a worker queues them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from service.store.labels.adjudication import Drawn, item_id
from service.store.labels.kept_text import AnswerText, PairText, Turn, seal_text
from service.store.redis.capture import Keyring
from service.store.scored.pairs import record
from service.store.scored.units import PairRow, Unit
from service.store.sql.database import Database

KEYRING = Keyring(current="k1", keys={"k1": bytes(range(32))})
PASSED = {"p": True, "f": False}
BASELINE, CANDIDATE = "the baseline's words", "the candidate's words"


@dataclass(kw_only=True)
class Queueing:
    """Records pairs of one candidate, each with its text in the queue; ids are kept by what was judged."""

    db: Database
    model: str = "m"
    tier: str = "w8a8"
    epoch: str = "e1"
    evaluator: str = "refusal"
    version: str = "1"
    keyring: Keyring = KEYRING
    at: float = 1000.0
    keep_seconds: float = 1000.0
    ids: dict[str, list[str]] = field(default_factory=dict)
    number: Any = field(default_factory=lambda: count(1))

    def add(
        self,
        judged: str,
        times: int = 1,
        *,
        queued: bool = True,
        by_two: bool = False,
        baseline: str = BASELINE,
        candidate: str = CANDIDATE,
        **changes: Any,
    ) -> list[str]:
        """`pf`: the baseline passed, the candidate failed; the items of these pairs."""
        made = []
        for _ in range(times):
            name = f"capture {self.tier} {self.epoch} {self.evaluator} {next(self.number)}"
            row = PairRow(
                outcome="scored",
                baseline_passed=PASSED[judged[0]],
                candidate_passed=PASSED[judged[1]],
                baseline_label="comply",
                candidate_label="comply",
            )
            fields: dict[str, Any] = {
                "capture_id": name,
                "model": self.model,
                "tier": self.tier,
                "arm": "candidate",
                "evaluator": self.evaluator,
                "version": self.version,
                "epoch": self.epoch,
                "conversation": f"talk of {name}",
                "stratum": "short",
                "tenant": "t",
                "digest": "",
                "counted": True,
                "rows": (row,),
                "at": self.at,
            }
            unit = Unit(**{**fields, **changes})
            drawn = self.drawn(unit, by_two=by_two, baseline=baseline, candidate=candidate) if queued else []
            assert record(self.db, capture_id=name, owner="w", units=[unit], drawn=drawn, at=self.at)
            made += [each.id for each in drawn]
        self.ids.setdefault(judged, []).extend(made)
        return made

    def drawn(self, unit: Unit, *, by_two: bool, baseline: str, candidate: str) -> list[Drawn]:
        text = PairText(
            turns=(Turn(role="user", text="the secret question"),),
            baseline=AnswerText(text=baseline, finish_reason="stop"),
            candidate=AnswerText(text=candidate, finish_reason="stop"),
        )
        row = unit.rows[0]
        return [
            Drawn(
                unit_id=unit.id,
                item=0,
                model=unit.model,
                tier=unit.tier,
                epoch=unit.epoch,
                evaluator=unit.evaluator,
                version=unit.version,
                baseline_failed=not row.baseline_passed,
                candidate_failed=not row.candidate_passed,
                chance=1.0 if row.harm or row.benefit else 0.05,
                by_two=by_two,
                sealed=seal_text(item_id(unit.id, 0), text, self.keyring),
                queued_at=self.at,
                expires_at=self.at + self.keep_seconds,
            )
        ]
