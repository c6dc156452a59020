"""Prompts with a longer text that states a few facts among other sentences, and asks something about it.

Every fact ("The door code is 4821.") stands in the text once, so that a probe can ask for it again and know
the answer. No other sentence has a digit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random

from evaluators.needle_values import is_value
from service.demo.prompt import Kind, Prompt, Turn

MAX_TOKENS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Who does what in the sentences around the facts."""

    who: tuple[str, ...]
    does: tuple[str, ...]
    how: tuple[str, ...]


SCENES = (
    Scene(
        who=(
            "The tugboat", "A fishing boat", "The harbour pilot", "A cargo ship", "The night watch",
            "A customs officer", "The ferry", "An old sailor", "The crane driver", "A team of divers",
        ),
        does=(
            "waited beside the pier", "moved slowly past the lighthouse", "unloaded crates of oranges",
            "reported fog over the bay", "asked for fresh water", "repaired a torn net",
            "left before sunrise",
            "watched the tide come in", "carried rope to the storehouse", "spoke with the harbour master",
        ),
        how=(
            "while gulls circled above", "in the grey morning light", "without any hurry",
            "before the rain began", "as the bells rang", "after a long night", "under a pale sky",
        ),
    ),
    Scene(
        who=(
            "The gardener", "A neighbour", "The apprentice", "A visitor from the village", "The beekeeper",
            "A group of children", "The head gardener", "An old dog",
        ),
        does=(
            "watered the tomatoes", "trimmed the rose hedge", "planted a row of beans",
            "swept leaves from the path", "admired the apple trees", "mended the wooden fence",
            "carried soil to the greenhouse", "looked for snails under the cabbage",
        ),
        how=(
            "before breakfast", "during the warm afternoon", "with great patience",
            "because the frost was over", "as the wind grew stronger", "while the kettle boiled",
            "until the light faded",
        ),
    ),
    Scene(
        who=(
            "The conductor", "A tired traveller", "The station master", "A family with suitcases",
            "The newspaper boy", "A soldier on leave", "The cleaner", "A student with a violin",
        ),
        does=(
            "crossed the platform", "looked at the big clock", "asked for a cup of tea",
            "helped an old lady up the steps", "slept on a wooden bench", "waved at the departing train",
            "counted the empty carriages", "read a letter from home",
        ),
        how=(
            "under the glass roof", "while steam filled the hall", "in spite of the cold",
            "after the last whistle", "with a quiet smile", "as the lamps were lit",
        ),
    ),
    Scene(
        who=(
            "The baker", "Her sister", "A regular customer", "The delivery boy", "The miller",
            "A girl from next door", "The new cook", "An early guest",
        ),
        does=(
            "kneaded the dough", "opened the shutters", "tasted the plum cake", "stacked the warm loaves",
            "wiped the counter", "told a story about the old oven", "carried flour from the cellar",
            "waited for the rolls",
        ),
        how=(
            "long before dawn", "with flour on both hands", "while the street was silent",
            "as if nothing had happened", "to the sound of the radio", "before the doors opened",
        ),
    ),
)  # fmt: skip


def _digits(count: int) -> Callable[[Random], str]:
    return lambda draw: _not_guessed(draw.randint(10 ** (count - 1), 10**count - 1))


def _not_guessed(number: int) -> str:
    """The number, or one nearby where it is so round, or so like a year, that nobody is asked for it."""
    step = 37 if str(number) < "5" else -37
    while not is_value(str(number)):
        number += step
    return str(number)


def _date(draw: Random) -> str:
    month = draw.choice(("March", "April", "June", "August", "October"))
    return f"{month} {draw.randint(2, 28)}, {draw.randint(2024, 2031)}"


def _price(draw: Random) -> str:
    return f"{_not_guessed(draw.randint(105, 985))} dollars"


FACTS: tuple[Mapping[str, Callable[[Random], str]], ...] = (
    {
        "magic number": _digits(5),
        "phone number": _digits(7),
        "invoice number": _digits(5),
        "account number": _digits(7),
        "flight number": _digits(4),
    },
    {"door code": _digits(4), "alarm code": _digits(5), "gate code": _digits(6)},
    {"meter reading": _digits(4), "water level": _digits(3)},
    {"departure date": _date, "delivery date": _date},
    {"total price": _price, "repair cost": _price, "weekly rent": _price},
)
"""What a text may state, and how its value is made. A text takes one of a group: the model, like a hurried
reader, mixes up two numbers or two dates."""

TASKS = (
    ("What is the {fact} in these notes?\n\n", "\n\nEnd of the notes."),
    ("", "\n\nRemember all of this."),
    ("Here are the notes of today.\n\n", "\n\nKeep these notes for me."),
    ("Read this and tell me the {fact}.\n\n", "\n\nThat was all."),
)
"""What stands before and after a text."""


def notes_prompts(draw: Random, *, sentences: int, facts: int) -> Iterator[Prompt]:
    """Prompts without end: so many sentences, and among them so many facts, spread over the text."""
    if not 1 <= facts <= min(len(FACTS), sentences):
        raise ValueError(f"{facts} facts do not fit into {sentences} sentences and {len(FACTS)} groups")
    position = 0
    while True:
        scene = SCENES[position % len(SCENES)]
        before, after = TASKS[(position // len(SCENES) + position) % len(TASKS)]
        position += 1
        stated = {
            fact: group[fact](draw)
            for group in draw.sample(FACTS, facts)
            for fact in [draw.choice(list(group))]
        }
        text = _text(scene, stated, sentences, draw)
        content = f"{before}{text}{after}".format(fact=next(iter(stated)))
        yield Prompt(kind=Kind.NOTES, turns=(Turn(role="user", content=content),), max_tokens=MAX_TOKENS)


def _text(scene: Scene, stated: Mapping[str, str], sentences: int, draw: Random) -> str:
    written = [
        f"{draw.choice(scene.who)} {draw.choice(scene.does)} {draw.choice(scene.how)}."
        for _ in range(sentences)
    ]
    share = sentences / len(stated)
    places = [int(share * (number + draw.random())) for number in range(len(stated))]
    for place, (fact, value) in reversed(list(zip(places, stated.items(), strict=True))):
        written.insert(place, f"The {fact} is {value}.")
    return " ".join(written)
