"""A matrix on disk: what is written is read again, everything else is refused, and two can be compared."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from service.capacity.experiment import MoreThanOneVariable, Side, Verdict, compared
from service.capacity.matrix_cells import Cell, PromptClass, Row, Times
from service.capacity.matrix_file import Matrix, Question, figures, is_matrix, manifest_of, read

QUESTION = Question(
    model="qwen3-8b",
    tier="w8a8",
    ttft_seconds=1.5,
    tpot_seconds=0.08,
    output_tokens=128,
    window_seconds=30.0,
    warm_up_seconds=10.0,
    source="made",
)
MANIFEST = {
    "model": "qwen3-8b",
    "tiers": [{"tier": "w8a8", "model": "q", "declares": {"weights": "int8"}, "backends": ["http://a"]}],
}
SHORT = PromptClass(name="512", tokens=512)


def cell(concurrency: int, p95: float | None = 0.5, **more: Any) -> Cell:
    ttft = Times() if p95 is None else Times(p50=p95, p95=p95, lower=0.9 * p95, upper=1.1 * p95)
    given = {"offered": 90, "passed": 80, "throughput": 200.0, "goodput": 180.0, **more}
    return Cell(prompt=SHORT, concurrency=concurrency, ttft=ttft, tpot=Times(p95=0.03), **given)


def matrix(*cells: Cell, **question: Any) -> Matrix:
    return Matrix(question=replace(QUESTION, **question), manifest=MANIFEST, cells=cells)


def test_what_is_written_is_read_again() -> None:
    told = matrix(
        cell(1, failed={"timeout": 2}, kv_usage=0.5, memory=7e8),
        cell(2, None, invalid=("generator_lag",), batch_tokens=2048),
    )
    again = read(json.loads(json.dumps(told.document(), allow_nan=False)))
    assert again == told
    assert is_matrix(told.document())
    assert again.rows == (Row(prompt=SHORT), Row(prompt=SHORT, batch_tokens=2048))
    assert again.of(again.rows[1]) == told.cells[1:]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"schema": "tiergate.report/1"}, "its schema is"),
        ({"cells": None}, "a list was expected"),
        ({"cells": [1]}, "an object was expected"),
        ({"cells": [{"prompt": {"name": "a", "tokens": 1}}]}, "no workload matrix"),
        ({"question": {"model": "m"}}, "no workload matrix"),
        ({"question": {**matrix().document()["question"], "ttft_seconds": -1}}, "above 0 s"),
        ({"question": {**matrix().document()["question"], "tier": ""}}, "are texts"),
        ({"question": {**matrix().document()["question"], "output_tokens": 1}}, "at least 2 tokens"),
        ({"manifest": []}, "an object was expected"),
    ],
)
def test_what_is_no_matrix_is_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read({**matrix(cell(1)).document(), **wrong})


def test_a_field_of_a_later_version_is_refused_and_not_half_read() -> None:
    told = matrix(cell(1)).document()
    told["cells"][0]["colour"] = "red"
    with pytest.raises(ValueError, match="colour"):
        read(told)


def test_questions_tell_in_what_they_differ() -> None:
    other = replace(QUESTION, output_tokens=64, window_seconds=60.0)
    assert QUESTION.differences(other) == (
        "output_tokens: was 128, is 64",
        "window_seconds: was 30.0, is 60.0",
    )
    assert QUESTION.differences(QUESTION) == ()


def sides(was: Matrix, now: Matrix) -> list[Side]:
    before, after = figures(was), figures(now)
    return [Side(figure=name, was=before[name], now=after.get(name)) for name in before]


def test_two_budgets_are_put_side_by_side_cell_by_cell() -> None:
    was = matrix(cell(1, 0.5, batch_tokens=8192), cell(2, 0.9, batch_tokens=8192))
    now = matrix(cell(1, 0.2, batch_tokens=2048), cell(2, 0.85, batch_tokens=2048))
    found = compared(manifest_of(was), manifest_of(now), tier="w8a8", sides=sides(was, now))
    assert found.label == "none of the six variables changed"
    assert found.others == ("batch_tokens[0]: was 8192, is 2048",)
    verdicts = {each.figure: each.verdict for each in found.sides}
    assert verdicts["ttft_p95 512 x 1"] is Verdict.LOWER
    assert verdicts["ttft_p95 512 x 2"] is Verdict.WITHIN
    assert verdicts["goodput 512 x 1"] is Verdict.TOLD
    assert verdicts["tpot_p95 512 x 1"] is Verdict.TOLD, "without limits nothing is higher or lower"


def test_a_cell_of_two_windows_is_compared_as_one() -> None:
    told = figures(matrix(cell(1, 0.5), cell(1, 0.7, goodput=100.0), cell(1, 9.0, invalid=("late",))))
    assert told["ttft_p95 512 x 1"].value == 0.7
    assert told["goodput 512 x 1"].value == 140.0


def test_cells_of_several_budgets_in_one_file_keep_theirs_in_their_names() -> None:
    told = matrix(cell(1, batch_tokens=2048), cell(1, batch_tokens=8192), cell(2, invalid=("x",)))
    assert {name for name in figures(told) if name.startswith("ttft")} == {
        "ttft_p95 512 x 1, budget 2048",
        "ttft_p95 512 x 1, budget 8192",
    }


def test_a_matrix_of_another_slo_and_other_lengths_is_refused() -> None:
    now = matrix(cell(1), tpot_seconds=0.05, source="traffic")
    with pytest.raises(MoreThanOneVariable, match="length mix"):
        compared(manifest_of(matrix(cell(1))), manifest_of(now), tier="w8a8")
