"""Which looks are drawn."""

from __future__ import annotations

from dataclasses import replace

from service.dashboard.tier.narrowing import MOST_DRAWN, _apart, thinned
from service.decision.verdict import Decision
from service.store.verdicts.looks import LookTaken
from tests.dashboard.tier.test_progress import look


def looks(count: int, *changes: int) -> list[LookTaken]:
    """As many; the decision is another from each of these places on."""
    return [
        replace(
            look(place + 1, days_ago=count - place),
            decision=(Decision.UNDECIDED, Decision.ACCEPT)[sum(place >= change for change in changes) % 2],
        )
        for place in range(count)
    ]


def test_few_looks_are_all_drawn() -> None:
    assert thinned(looks(MOST_DRAWN)) == looks(MOST_DRAWN)


def test_of_many_the_first_and_the_last_are_drawn_and_as_many_as_have_a_mark() -> None:
    many = looks(281)
    drawn = thinned(many)
    assert len(drawn) == MOST_DRAWN
    assert (drawn[0], drawn[-1]) == (many[0], many[-1])
    assert [each.pairs for each in drawn] == sorted(each.pairs for each in drawn)


def test_looks_at_which_the_decision_changed_are_drawn() -> None:
    many = looks(281, 77, 200)
    drawn = thinned(many)
    assert many[77] in drawn
    assert many[200] in drawn
    assert len(drawn) <= MOST_DRAWN


def test_a_criterion_that_swings_does_not_crowd_out_its_history() -> None:
    many = looks(281, *range(150, 281))
    drawn = thinned(many)
    assert len(drawn) <= MOST_DRAWN
    assert any(each.pairs < 100 for each in drawn[1:])


def test_moments_that_lie_close_together_are_one_line_with_both_names() -> None:
    moments = [(1.0, "approved"), (1.0, "promoted"), (1.5, "approved"), (9.0, "rolled back")]
    assert _apart(moments, least=1.0) == [(1.0, "approved · promoted"), (9.0, "rolled back")]
