"""The defects that a drill plants, each with the criterion that has to notice it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from service.demo.prompt import Kind


class Defect(StrEnum):
    """What is done to answers."""

    JSON = "json"
    """JSON is cut off in the middle, or a field gets another name."""
    RECALL = "recall"
    """A fact that is asked for comes with other digits, or not at all."""
    REFUSAL = "refusal"
    """A plain question is declined."""


CRITERION: Mapping[Defect, str] = {
    Defect.JSON: "structured_output",
    Defect.RECALL: "long_context_recall",
    Defect.REFUSAL: "refusal",
}
"""By which evaluator each has to be noticed."""

ASKED_BY: Mapping[Defect, Kind] = {
    Defect.JSON: Kind.EXTRACTION,
    Defect.RECALL: Kind.NOTES,
    Defect.REFUSAL: Kind.QUESTION,
}
"""The requests in whose answers each shows."""
