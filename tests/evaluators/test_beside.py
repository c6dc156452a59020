"""Two answers side by side."""

from __future__ import annotations

from evaluators.beside import beside, ratio_range
from evaluators.exchange import Answer, ToolCall
from service.client.details import RANGES


def calling(*names: str) -> Answer:
    return Answer(tool_calls=tuple(ToolCall(name=name, arguments="{}") for name in names))


def test_ratios_are_the_inverse_of_each_other() -> None:
    short, long = Answer(text="ab", completion_tokens=1), Answer(text="abcdef", completion_tokens=4)
    there, back = beside(short, long), beside(long, short)
    assert (there.length_ratio, there.token_ratio) == (3.0, 4.0)
    assert (back.length_ratio, back.token_ratio) == (1 / 3, 1 / 4)
    assert not there.same_text


def test_without_text_or_counts_there_is_no_ratio() -> None:
    found = beside(Answer(), Answer(text="ab", completion_tokens=1))
    assert (found.length_ratio, found.token_ratio) == (None, None)


def test_tools_agree_in_any_order_and_as_often() -> None:
    assert beside(calling("f", "g"), calling("g", "f")).tool_choice_agrees
    assert not beside(calling("f"), calling("f", "f")).tool_choice_agrees
    assert not beside(calling("f"), calling()).tool_choice_agrees


def test_ends_agree_by_their_reason() -> None:
    assert not beside(Answer(finish_reason="stop"), Answer(finish_reason="length")).finish_reason_agrees


def test_a_ratio_is_in_the_range_that_begins_at_it() -> None:
    found = [ratio_range(ratio) for ratio in (0.1, 0.25, 0.5, 0.79, 0.8, 1.0, 1.25, 2.0, 4.0)]
    assert found[2:6] == ["1/2 to 4/5", "1/2 to 4/5", "4/5 to 5/4", "4/5 to 5/4"]
    assert [*dict.fromkeys(found)] == [*RANGES]
