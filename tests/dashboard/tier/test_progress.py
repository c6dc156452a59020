"""How far a criterion is, at the rate of the last days."""

from __future__ import annotations

import pytest

from service.dashboard.tier.progress import DAY, Progress, expected, progress
from service.decision.evidence import Evidence
from service.decision.policy import Role
from service.decision.verdict import Decision, Finding
from service.store.verdicts.looks import LookTaken
from tests.store.verdicts.test_looks import NOW, finding, verdict


def look(pairs: int, *, days_ago: float, criterion: str = "structured_output") -> LookTaken:
    return LookTaken(
        criterion=criterion,
        at=NOW - days_ago * DAY,
        pairs=pairs,
        conversations=pairs,
        harm=0,
        benefit=0,
        estimate=0.0,
        lower=-0.1,
        upper=0.1,
        level=0.9,
        margin=0.01,
        decision=Decision.UNDECIDED,
    )


def evidence(age_seconds: float | None = None, **max_pairs: int) -> Evidence:
    return Evidence(model="m", tier="w8a8", epoch="e1", age_seconds=age_seconds, max_pairs=max_pairs)


def step(found: Finding, *looks: LookTaken, known: Evidence | None = None) -> Progress:
    (told,) = progress(verdict(found), known or evidence(), looks, now=NOW)
    return told


def test_the_rate_is_of_the_pairs_since_a_look_three_days_ago() -> None:
    told = step(
        finding(1_000, more_pairs=500), look(100, days_ago=9), look(400, days_ago=3), look(900, days_ago=0.5)
    )
    assert told.per_day == pytest.approx(200)
    assert told.expected_at == pytest.approx(NOW + 2.5 * DAY)
    assert told.share == pytest.approx(1_000 / 1_500)


def test_of_a_young_epoch_the_rate_is_since_its_first_pair() -> None:
    told = step(finding(100, more_pairs=50), look(60, days_ago=0.2), known=evidence(DAY / 2))
    assert told.per_day == pytest.approx(200)
    assert told.expected_at == pytest.approx(NOW + DAY / 4)


def test_minutes_tell_no_rate() -> None:
    told = step(finding(100, more_pairs=50), known=evidence(30.0))
    assert (told.per_day, told.expected_at, told.rate) == (None, None, "–")


def test_without_pairs_coming_in_there_is_no_date() -> None:
    told = step(finding(400, more_pairs=500), look(400, days_ago=4))
    assert told.per_day == 0
    assert told.expected_at is None


def test_a_date_years_away_is_none() -> None:
    told = step(finding(101, more_pairs=50_000), look(100, days_ago=3))
    assert told.expected_at is None


def test_what_is_decided_needs_nothing_more() -> None:
    told = step(finding(400, Decision.ACCEPT), look(100, days_ago=4))
    assert (told.more, told.expected_at, told.share) == (None, None, 1.0)


def test_the_end_of_an_epoch_is_told() -> None:
    told = step(finding(400, not_shown=True), known=evidence(structured_output=400))
    assert (told.most, told.ended, told.more) == (400, True, None)


def test_looks_of_another_criterion_tell_nothing_of_this_one() -> None:
    told = step(
        finding(400, more_pairs=100), look(1, days_ago=4, criterion="refusal"), known=evidence(4 * DAY)
    )
    assert told.per_day == pytest.approx(100)


@pytest.mark.parametrize(
    ("per_day", "text"), [(0.0, "0"), (0.1234, "0.123"), (98.76, "98.8"), (10_049.0, "10,000")]
)
def test_a_rate_has_three_digits_so_that_it_stays_while_nothing_happens(per_day: float, text: str) -> None:
    told = step(finding(400))
    assert Progress(**{name: getattr(told, name) for name in FIELDS} | {"per_day": per_day}).rate == text


FIELDS = tuple(Progress.__dataclass_fields__)


def test_the_date_is_that_of_the_last_criterion_that_decides() -> None:
    findings = (
        finding(400, more_pairs=100),
        finding(400, more_pairs=300, criterion="refusal"),
        finding(400, more_pairs=9_000, criterion="tool_use", role=Role.SHOWN),
    )
    steps = progress(verdict(*findings), evidence(4 * DAY), (), now=NOW)
    assert expected(steps) == pytest.approx(NOW + 3 * DAY)


def test_one_criterion_out_of_sight_leaves_no_date() -> None:
    findings = (finding(400, more_pairs=100), finding(400, more_pairs=None, criterion="refusal"))
    assert expected(progress(verdict(*findings), evidence(4 * DAY), (), now=NOW)) is None


def test_when_nothing_is_missing_there_is_no_date() -> None:
    assert expected(progress(verdict(finding(400, Decision.ACCEPT)), evidence(), (), now=NOW)) is None
