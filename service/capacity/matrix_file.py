"""A workload matrix as JSON and back, total: whatever is no such document is one clear error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from service.capacity.experiment import Limits
from service.capacity.matrix_cells import Cell, PromptClass, Row, Times, usable

SCHEMA = "tiergate.matrix/1"
Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What all cells of a matrix have in common: cells of two questions are not put side by side."""

    model: str
    tier: str
    ttft_seconds: float
    """Of the SLO."""
    tpot_seconds: float
    output_tokens: int
    window_seconds: float
    warm_up_seconds: float
    source: str
    """`made`, or the name of the corpus that prompts come from."""

    def __post_init__(self) -> None:
        texts = (self.model, self.tier, self.source)
        if not all(isinstance(each, str) and each for each in texts):
            raise ValueError("model, tier and source of prompts are texts")
        for told in (self.ttft_seconds, self.tpot_seconds, self.window_seconds):
            if not 0 < told < math.inf:
                raise ValueError(f"limits and windows are above 0 s, got {told}")
        if not 0 <= self.warm_up_seconds < math.inf or self.output_tokens < 2:
            raise ValueError("a warm-up takes no fewer than 0 s, an answer has at least 2 tokens")

    def differences(self, other: Question) -> tuple[str, ...]:
        """A sentence for each thing in which another question differs."""
        return tuple(
            f"{each.name}: was {getattr(self, each.name)}, is {getattr(other, each.name)}"
            for each in fields(self)
            if getattr(self, each.name) != getattr(other, each.name)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """All that was measured under one question."""

    question: Question
    manifest: Mapping[str, Any]
    """Hardware, model, precision and engines, as `capacity compare` reads them."""
    cells: tuple[Cell, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """Those that have a cell, in the order in which they were begun."""
        return tuple(dict.fromkeys(each.row for each in self.cells))

    def of(self, row: Row) -> tuple[Cell, ...]:
        """Its cells, in the order in which they were measured."""
        return tuple(each for each in self.cells if each.row == row)

    def document(self) -> dict[str, Any]:
        """As JSON objects have it; `read` reads it."""
        return {
            "schema": SCHEMA,
            "question": asdict(self.question),
            "manifest": dict(self.manifest),
            "cells": [asdict(each) for each in self.cells],
        }


def is_matrix(told: Json) -> bool:
    """Whether a JSON object says that it is one."""
    return told.get("schema") == SCHEMA


def read(told: Json) -> Matrix:
    """The matrix in JSON values; `ValueError` says what is wrong with them."""
    if not is_matrix(told):
        raise ValueError(f"its schema is {told.get('schema')!r}, not {SCHEMA}")
    try:
        question = Question(**_mapping(told["question"]))
        manifest = _mapping(told["manifest"])
        cells = tuple(_cell(_mapping(each)) for each in _listed(told["cells"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no workload matrix: {error}") from error
    return Matrix(question=question, manifest=manifest, cells=cells)


def _cell(told: Json) -> Cell:
    found = dict(told)
    found["prompt"] = PromptClass(**_mapping(told["prompt"]))
    for name in ("ttft", "tpot"):
        found[name] = Times(**_mapping(told[name]))
    found["failed"] = {str(name): int(count) for name, count in _mapping(told["failed"]).items()}
    found["invalid"] = tuple(str(each) for each in _listed(told["invalid"]))
    return Cell(**found)


def figures(matrix: Matrix) -> dict[str, Limits]:
    """P95 of both times by cell, with limits where there are enough requests, for `capacity compare`.

    A budget stands in a name only where the matrix has several: of two files with one each, cells of the
    same prompts and concurrency are put side by side, and the budget is what was varied.
    """
    several = len({each.batch_tokens for each in matrix.cells}) > 1
    found: dict[str, Limits] = {}
    for each in (cell for row in matrix.rows for cell in usable(matrix.of(row))):
        budget = f", budget {each.batch_tokens}" if several else ""
        place = f"{each.prompt.name} x {each.concurrency}{budget}"
        for name, times in (("ttft_p95", each.ttft), ("tpot_p95", each.tpot)):
            if times.p95 is not None:
                level = None if times.lower is None or times.upper is None else 0.95
                found[f"{name} {place}"] = Limits(
                    value=times.p95, lower=times.lower, upper=times.upper, level=level
                )
        found[f"goodput {place}"] = Limits(value=each.goodput)
    return found


def manifest_of(matrix: Matrix) -> dict[str, Any]:
    """What was varied, as `experiment.compared` reads it: classes of prompts are the mix of lengths."""
    budgets = sorted({each.batch_tokens for each in matrix.cells if each.batch_tokens is not None})
    question = matrix.question
    return {
        **matrix.manifest,
        "slo": {"ttft_seconds": question.ttft_seconds, "tpot_seconds": question.tpot_seconds},
        "corpus": {
            "digest": question.source,
            "strata": [row.prompt.name for row in dict.fromkeys(_without_budget(matrix.rows))],
        },
        "plan": {"arrivals": "closed", "rate": None, "output_tokens": question.output_tokens},
        "batch_tokens": budgets,
    }


def _without_budget(rows: Sequence[Row]) -> Sequence[Row]:
    return [Row(prompt=each.prompt) for each in rows]


def _mapping(told: object) -> dict[str, Any]:
    if not isinstance(told, Mapping):
        raise TypeError(f"an object was expected, not {type(told).__name__}")
    return dict(told)


def _listed(told: object) -> list[Any]:
    if not isinstance(told, list | tuple):
        raise TypeError(f"a list was expected, not {type(told).__name__}")
    return list(told)
