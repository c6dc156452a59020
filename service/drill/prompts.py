"""What a drill asks, by kind, in the order in which it asks it. Seeded; every request is a conversation.

Extractions and notes are the demo's: even a model of 135 million parameters answers most of them, so a
damaged answer is a difference. Notes are as long as the model's own `probe.min_context_chars` wants them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from service.demo.extraction import extraction_prompts
from service.demo.notes import FACTS, TASKS, notes_prompts
from service.demo.prompt import Kind, Prompt
from service.drill.questions import question_prompts

SHORTEST_SENTENCE = 40
"""Characters; so many sentences of notes as this makes of a context are never too few."""
_CHARACTERS_PER_TOKEN = 4


def prompts_of(kind: Kind, *, seed: int, min_context_chars: int, facts: int) -> Iterator[Prompt]:
    """Every second one streamed. `facts` is how many a text states, at most one of each group."""
    draw = Random(f"{seed}/{kind}")
    match kind:
        case Kind.EXTRACTION:
            asked = extraction_prompts(draw)
        case Kind.NOTES:
            stated = max(1, min(facts, len(FACTS)))
            sentences = max(stated, min_context_chars // SHORTEST_SENTENCE + stated)
            asked = notes_prompts(draw, sentences=sentences, facts=stated)
        case Kind.QUESTION:
            asked = question_prompts(draw)
    return (replace(prompt, stream=number % 2 == 1) for number, prompt in enumerate(asked))


def asks_again(last_user_turn: str) -> bool:
    """Whether a recall question follows the end of notes; no other request of a drill has such an end."""
    ends = tuple(after.strip() for _, after in TASKS)
    return not last_user_turn.endswith(ends) and any(end in last_user_turn for end in ends)


def tokens_of(prompt: Prompt) -> int:
    """At most, estimated by length: of the prompt and all it may be answered."""
    written = sum(len(turn.content) for turn in prompt.turns)
    return written // _CHARACTERS_PER_TOKEN + prompt.max_tokens
