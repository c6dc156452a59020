"""What was to be measured and was not, by why: how much of what, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from service.dashboard.formats import NONE, percent
from service.report import writing
from service.report.shared import criterion, reason
from service.report.words import Words
from service.store.traffic.account import LedgerAccount, PairAccount

LEAST_SCORED = 0.95
"""Below this share of the pairs that could be scored, an evaluator's account stands out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """One way of being lost."""

    kind: str
    """Names its sentences: what it is under `loss.`, what to do under `remedy.`."""
    count: int
    whole: int
    """Of so many that could have been lost this way."""
    of: str
    """What these are: a word of the ledger."""

    @property
    def share(self) -> float | None:
        return self.count / self.whole if self.whole else None


def losses_of(account: LedgerAccount) -> tuple[Loss, ...]:
    """Those that there are, the greatest first."""
    dropped = [
        Loss(kind=why, count=count, whole=account.sampled, of="sampled")
        for why, count in account.dropped.items()
    ]
    further = [
        Loss(kind="expired", count=account.expired, whole=account.shipped, of="shipped"),
        Loss(kind="lost", count=account.lost, whole=account.shipped, of="shipped"),
        Loss(kind="unaccounted", count=account.unaccounted, whole=account.seen, of="seen"),
    ]
    return tuple(
        sorted((each for each in [*dropped, *further] if each.count > 0), key=lambda each: -each.count)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairLine:
    """What became of the pairs of one evaluator on one arm of one tier, as texts."""

    cells: tuple[str, ...]
    tone: str
    remark: str
    """Why it stands out; empty where it does not."""


def pair_lines(account: LedgerAccount, say: Words, report: Words) -> Iterator[PairLine]:
    """One a line; `report` has the names of arms, criteria and reasons."""
    for each in account.pairs:
        share = _scored(each)
        tone, remark = "", ""
        if not each.balanced:
            tone, remark = "bad", say("ledger.pairs_unbalanced")
        elif share is not None and share < LEAST_SCORED:
            tone, remark = "wait", say("ledger.few_scored", share=percent(share))
        unscored = say("ledger.list").join(
            f"{reason(report, why)} {writing.count(count)}" for why, count in sorted(each.unscored.items())
        )
        yield PairLine(
            cells=(
                *((each.model,) if account.model is None else ()),
                each.tier,
                report.known(f"arm.{each.arm}", each.arm),
                criterion(report, each.evaluator),
                writing.count(each.due),
                writing.count(each.scored),
                NONE if share is None else percent(share),
                unscored or "0",
                writing.count(each.not_applicable),
                writing.count(each.over_budget),
            ),
            tone=tone,
            remark=remark,
        )


def _scored(each: PairAccount) -> float | None:
    """Of the pairs that this evaluator had something to say about and could pay for."""
    asked = each.due - each.not_applicable - each.over_budget
    return each.scored / asked if asked > 0 else None
