"""Two answers side by side."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from service.dashboard.captured import Piece
from service.dashboard.sides import MOST_CALLS, MOST_CALLS_WHOLE, MOST_SIDE, sides, text_changes
from service.dashboard.word_changes import EFFORT, Stretch, stretches
from service.store.labels.kept_text import AnswerText, Call


def marked(told: Sequence[Piece]) -> str:
    """What differs in brackets, what is folded as its length."""
    return "".join(
        f"<{each.folded}>" if each.folded else f"[{each.text}]" if each.differs else each.text
        for each in told
    )


def test_what_differs_is_marked_on_both_sides_and_counted_in_words() -> None:
    found = text_changes("The lakes are Saimaa and Inari.", "The lakes are Saimaa, Inari.")
    assert marked(found.baseline) == "The lakes are Saimaa[ and] Inari."
    assert marked(found.candidate) == "The lakes are Saimaa[,] Inari."
    assert (found.same, found.only_baseline, found.only_candidate) == (6, 1, 1)
    assert not found.is_same


def test_a_line_end_that_only_one_side_has_is_seen() -> None:
    found = text_changes("a\n\nb", "a\nb")
    assert marked(found.baseline) in ("a\n[↵][\n]b", "a[↵][\n]\nb")
    assert marked(found.candidate) == "a\nb"


def test_an_unseen_character_that_only_one_side_has_is_seen() -> None:
    found = text_changes("pass\u200bword here", "password here")
    assert "[U+200B]" in marked(found.baseline)
    assert found.is_same is False


def test_where_one_side_wrote_nothing_the_other_is_not_marked() -> None:
    found = text_changes("all of it", "")
    assert marked(found.baseline) == "all of it"
    assert found.candidate == ()
    assert (found.is_same, found.only_baseline) == (False, 3)


def test_the_same_text_is_said_to_be_the_same() -> None:
    found = text_changes("same", "same")
    assert found.is_same
    assert marked(found.baseline) == "same"


def test_what_is_the_same_is_folded_around_each_difference() -> None:
    same = "word " * 2_000
    one, other = f"{same}left {same}", f"{same}right {same}"
    found = text_changes(one, other)
    assert found.is_folded
    assert "[left]" in marked(found.baseline)
    assert len(marked(found.baseline)) < 800
    whole = text_changes(one, other, whole=True)
    assert not whole.is_folded
    assert "".join(each.text for each in whole.baseline) == one


def test_folds_add_up_to_the_text() -> None:
    one, other = "same " * 900 + "x " * 9_000, "same " * 900 + "y " * 9_000
    for told, text in zip(
        (text_changes(one, other).baseline, text_changes(one, other).candidate), (one, other), strict=True
    ):
        assert sum(each.folded or len(each.text) for each in told) == len(text)


def test_however_many_differences_there_are_a_folded_side_stays_short() -> None:
    one = " ".join(f"keep{number} " + "left " * 20 for number in range(3_000))
    other = " ".join(f"keep{number} " + "right " * 20 for number in range(3_000))
    found = text_changes(one, other)
    assert sum(len(each.text) for each in found.baseline) < MOST_SIDE + 5_000
    assert found.baseline[-1].folded


def test_json_is_compared_by_pointer_beside_the_text() -> None:
    found = sides(AnswerText(text='{"a": 1}'), AnswerText(text='{"a": 2}'))
    assert found.fields is not None
    assert [row.pointer for row in found.fields.rows] == ["/a"]
    assert sides(AnswerText(text='{"a": 1}'), AnswerText(text="prose")).fields is None


def test_calls_are_compared_place_by_place() -> None:
    one = AnswerText(calls=(Call(name="book", arguments='{"seats": 2}'), Call(name="pay", arguments="{}")))
    other = AnswerText(calls=(Call(name="book", arguments='{"seats": "2"}'),))
    first, second = sides(one, other).calls
    assert first.is_same_name
    assert first.fields is not None
    assert [(row.pointer, row.difference) for row in first.fields.rows] == [("/seats", "type")]
    assert second.candidate is None
    assert not second.is_same_name
    assert second.fields is None


def test_calls_with_broken_arguments_are_compared_as_text() -> None:
    one, other = (AnswerText(calls=(Call(name="f", arguments=text),)) for text in ('{"a": 1}', '{"a": 1'))
    (call,) = sides(one, other).calls
    assert call.fields is None
    assert not call.arguments.is_same


def test_anything_folded_anywhere_is_offered_whole() -> None:
    long = "x" * 100_000
    assert sides(AnswerText(refusal=long), AnswerText()).is_folded
    assert sides(AnswerText(calls=(Call(name="f", arguments=long),)), AnswerText()).is_folded
    assert not sides(AnswerText(text=long), AnswerText(text=long), whole=True).is_folded


def test_of_very_many_calls_some_are_compared_and_the_rest_is_counted() -> None:
    many = AnswerText(calls=tuple(Call(name="f", arguments=f'{{"n": {place}}}') for place in range(10_000)))
    few = AnswerText(calls=many.calls[:3])
    folded, whole = sides(many, few), sides(few, many, whole=True)
    assert (len(folded.calls), folded.calls_left_out) == (MOST_CALLS, 10_000 - MOST_CALLS)
    assert folded.is_folded
    assert (len(whole.calls), whole.calls_left_out) == (MOST_CALLS_WHOLE, 10_000 - MOST_CALLS_WHOLE)
    assert sides(few, few).calls_left_out == 0


def test_calls_share_the_effort_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []

    def spent(baseline: str, candidate: str, *, effort: int) -> list[Stretch]:
        given.append(effort)
        return stretches(baseline, candidate, effort=effort)

    monkeypatch.setattr("service.dashboard.sides.stretches", spent)
    calls = tuple(Call(name="f", arguments=str(place)) for place in range(MOST_CALLS))
    others = tuple(Call(name="f", arguments=f"x{place}") for place in range(MOST_CALLS))
    sides(AnswerText(calls=calls), AnswerText(calls=others))
    assert len(given) == MOST_CALLS
    assert sum(given) <= EFFORT
