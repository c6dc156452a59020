"""The demo's traffic: what clients ask, in the order in which they ask it. Pure and seeded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from random import Random

from service.demo.extraction import extraction_prompts
from service.demo.notes import notes_prompts
from service.demo.prompt import Prompt
from service.demo.questions import BORDERLINE, HARMLESS, question_prompts

MOST_QUESTIONS = len(HARMLESS) + len(BORDERLINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How much of what is asked."""

    extractions: int
    notes: int
    questions: int
    sentences: int
    """In one text, besides its facts; a sentence has about 17 tokens."""
    facts: int
    """In one text: as many recall questions can be asked about it."""

    def __post_init__(self) -> None:
        if self.questions > MOST_QUESTIONS:
            raise ValueError(f"there are {MOST_QUESTIONS} questions, not {self.questions}")

    @property
    def total(self) -> int:
        return self.extractions + self.notes + self.questions


def workload(load: Load, seed: int) -> tuple[Prompt, ...]:
    """The prompts of one run. No message list is the beginning of another: each is a conversation."""

    def seeded(purpose: str) -> Random:
        return Random(f"{seed}/{purpose}")

    extractions = extraction_prompts(seeded("extraction"))
    notes = notes_prompts(seeded("notes"), sentences=load.sentences, facts=load.facts)
    questions = question_prompts(seeded("questions"))
    streamed = seeded("streamed")
    evenly = _evenly(
        tuple(islice(extractions, load.extractions)),
        tuple(islice(notes, load.notes)),
        tuple(islice(questions, load.questions)),
    )
    return tuple(replace(prompt, stream=streamed.random() < 0.5) for prompt in evenly)


def _evenly(*groups: tuple[Prompt, ...]) -> list[Prompt]:
    """All prompts, each group spread over the whole run: wherever it stops, every kind was asked alike."""
    placed = [
        ((place + 0.5) / len(group), number, prompt)
        for number, group in enumerate(groups)
        for place, prompt in enumerate(group)
    ]
    return [prompt for _, _, prompt in sorted(placed, key=lambda each: each[:2])]
