"""Prompts that ask for a record as JSON: two worked examples, then a sentence to read.

A model of 135 million parameters follows two examples where it does not follow a description. Every kind of
record has its own instruction, schema and examples.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from service.demo.prompt import Kind, Prompt, Turn

SYSTEM = "You are a data extraction tool. Reply with JSON only."
MAX_TOKENS = 64
"""Twice what the longest right answer takes; a model that rambles inside a string runs into it."""

FIRST_NAMES = (
    "Anna", "John", "Maria", "Peter", "Grace", "Omar", "Lucy", "David", "Sofia", "Paul", "Emma", "Noah",
    "Clara", "Simon", "Julia", "Victor", "Helen", "Martin", "Alice", "Robert",
)  # fmt: skip
LAST_NAMES = (
    "Smith", "Carter", "Brown", "Miller", "Rossi", "Novak", "Berg", "Martin", "Silva", "Cohen", "Hall",
    "Young", "King", "Baker", "Fisher", "Stone", "Parker", "Wood", "Gray", "Hill",
)  # fmt: skip
CITIES = (
    "Berlin", "Chicago", "Madrid", "Boston", "Dublin", "Milan", "Prague", "Oslo", "Lima", "London", "Paris",
    "Rome", "Vienna", "Toronto", "Denver", "Seattle",
)  # fmt: skip
GOODS = (
    "lamps", "chairs", "books", "tables", "bottles", "candles", "blankets", "plates", "tents", "helmets",
    "radios", "pillows",
)  # fmt: skip
COLORS = ("red", "blue", "green", "white", "black", "yellow")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
ROOMS = ("library", "kitchen", "garden", "office", "studio", "museum", "theater", "school")

Record = Mapping[str, str | int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKind:
    """One kind of record: its fields, and sentences that hold them."""

    asks: str
    fields: Mapping[str, Any]
    """JSON Schema by field."""
    sentences: tuple[str, ...]
    draw: Callable[[Random], Record]

    @property
    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": dict(self.fields),
            "required": list(self.fields),
            "additionalProperties": False,
        }


def _person(draw: Random) -> str:
    return f"{draw.choice(FIRST_NAMES)} {draw.choice(LAST_NAMES)}"


TEXT: Mapping[str, Any] = {"type": "string", "minLength": 1}
COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 0}

KINDS = (
    RecordKind(
        asks='Extract the order as JSON. Fields: "name" (string), "city" (string), "amount" (number).',
        fields={"name": TEXT, "city": TEXT, "amount": COUNT},
        sentences=(
            "{name} from {city} ordered goods worth {amount} euros.",
            "The invoice of {amount} dollars was sent to {name}, who lives in {city}.",
            "In {city}, the customer {name} was charged {amount} dollars.",
            "We refunded {amount} dollars to our client {name} in {city} yesterday.",
            "A payment of {amount} dollars came in from {city}, sent by {name}.",
        ),
        draw=lambda draw: {
            "name": _person(draw), "city": draw.choice(CITIES), "amount": draw.randint(12, 990),
        },
    ),
    RecordKind(
        asks='Extract the booking as JSON. Fields: "guest" (string), "nights" (number), "city" (string).',
        fields={"guest": TEXT, "nights": COUNT, "city": TEXT},
        sentences=(
            "{guest} booked {nights} nights at our hotel in {city}.",
            "The hotel in {city} keeps a room for {guest} for {nights} nights.",
            "For {nights} nights, {guest} stays with us in {city}.",
            "Please confirm {nights} nights in {city} for our guest {guest}.",
        ),
        draw=lambda draw: {
            "guest": _person(draw), "nights": draw.randint(2, 14), "city": draw.choice(CITIES),
        },
    ),
    RecordKind(
        asks='Extract the delivery as JSON. Fields: "item" (string), "quantity" (number), "color" (string).',
        fields={"item": TEXT, "quantity": COUNT, "color": TEXT},
        sentences=(
            "The truck brought {quantity} {color} {item} this morning.",
            "We are still waiting for {quantity} {item} in {color}.",
            "Send {quantity} {color} {item} to the shop, please.",
            "The store returned {quantity} {item}; all of them were {color}.",
        ),
        draw=lambda draw: {
            "item": draw.choice(GOODS), "quantity": draw.randint(3, 95), "color": draw.choice(COLORS),
        },
    ),
    RecordKind(
        asks='Extract the meeting as JSON. Fields: "person" (string), "day" (string), "place" (string).',
        fields={"person": TEXT, "day": TEXT, "place": TEXT},
        sentences=(
            "{person} meets us on {day} in the {place}.",
            "On {day} we have an appointment with {person} in the {place}.",
            "The {place} is reserved for {person} on {day}.",
            "Tell {person} to come to the {place} on {day}.",
        ),
        draw=lambda draw: {
            "person": _person(draw), "day": draw.choice(DAYS), "place": draw.choice(ROOMS),
        },
    ),
)  # fmt: skip


def extraction_prompts(draw: Random) -> Iterator[Prompt]:
    """Prompts without end, every kind of record in turn, no sentence twice."""
    examples = {kind.asks: tuple(_example(kind, place, draw) for place in range(2)) for kind in KINDS}
    seen = {sentence for shown in examples.values() for sentence, _ in shown}
    position = 0
    while True:
        kind = KINDS[position % len(KINDS)]
        sentence, _ = _example(kind, position // len(KINDS), draw)
        if sentence in seen:
            continue
        seen.add(sentence)
        position += 1
        turns = [Turn(role="system", content=SYSTEM)]
        for shown, answer in examples[kind.asks]:
            turns += [Turn(role="user", content=_ask(kind, shown)), Turn(role="assistant", content=answer)]
        turns.append(Turn(role="user", content=_ask(kind, sentence)))
        yield Prompt(kind=Kind.EXTRACTION, turns=tuple(turns), max_tokens=MAX_TOKENS, schema=kind.schema)


def _example(kind: RecordKind, place: int, draw: Random) -> tuple[str, str]:
    record = kind.draw(draw)
    return kind.sentences[place % len(kind.sentences)].format_map(record), json.dumps(record)


def _ask(kind: RecordKind, sentence: str) -> str:
    return f"{kind.asks}\nText: {sentence}"
