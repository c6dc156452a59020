"""Answers that every evaluator judges, per second and core (at least 1,000 for typical answers).

What counts is processor time of this process, so that the figure holds on a busy machine; judging goes the
worker's way, two answers a pair, each under its time limit. Run: `python -m tests.benchmarks.judging`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import evaluators
from evaluators.exchange import (
    Answer,
    Endpoint,
    Format,
    Guide,
    GuideKind,
    Message,
    Needle,
    Request,
    Tool,
    ToolCall,
)
from evaluators.score import NotApplicable, PairScore, Unscored
from tests.benchmarks.rig import machine, publish
from workers.judge import judge

FIGURE = 1000
"""Answers per second and core, all evaluators that apply, over the kinds together."""
SCHEMA = {
    "type": "object",
    "properties": {
        "order": {"type": "integer", "minimum": 1},
        "customer": {"type": "string", "minLength": 1},
        "mail": {"type": "string", "format": "email"},
        "at": {"type": "string", "format": "date-time"},
        "state": {"enum": ["new", "paid", "sent"]},
        "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3,}$"},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
                "required": ["name", "count"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["order", "customer", "items"],
    "additionalProperties": False,
}
WEATHER = Tool(
    name="weather",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}},
        "required": ["city"],
    },
)
SENTENCES = (
    "The committee met on Tuesday and went through the figures of the last quarter.",
    "Sales rose in the north and fell a little in the south, mostly because two shops were closed.",
    "It helps to begin with the largest item and to write down what it is made of.",
    "Stir the onions until they are soft, then add the tomatoes and let everything simmer.",
    "Unfortunately the train was late, so we could not see the second half.",
    "A function that is called twice should be written once and given a name.",
)
CHINESE = (
    "会议在星期二举行。",
    "北方的销售额上升了。",
    "首先把洋葱切碎，然后加入番茄。",
    "这个问题有三个原因。",
)

Pair = tuple[Request, Answer, Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Typical pairs of one kind."""

    name: str
    make: Callable[[Random], Pair]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One kind, or all of them."""

    name: str
    answers: int
    chars: int
    cpu_seconds: float

    @property
    def per_second(self) -> float:
        return self.answers / self.cpu_seconds


def _request(**fields: object) -> Request:
    turns = (Message(role="system", text="Be brief."), Message(role="user", text="Please help me with this."))
    return Request(endpoint=Endpoint.CHAT_COMPLETIONS, model="m", messages=turns, **fields)  # type: ignore[arg-type]


def _order(chance: Random, items: int) -> str:
    order = {
        "order": chance.randint(1, 99_999),
        "customer": chance.choice(["Anna Berg", "李雷", "J. O'Neil"]),
        "mail": "anna@example.com",
        "at": "2026-03-05T12:30:00Z",
        "state": chance.choice(["new", "paid", "sent"]),
        "code": f"AB-{chance.randint(100, 99_999)}",
        "items": [{"name": f"thing {n}", "count": chance.randint(1, 9)} for n in range(items)],
    }
    return json.dumps(order, ensure_ascii=False)


def _json(items: int) -> Callable[[Random], Pair]:
    request = _request(format=Format.JSON_SCHEMA, schema=SCHEMA, constrained=True)
    return lambda chance: (request, Answer(text=_order(chance, items)), Answer(text=_order(chance, items)))


def _fenced(chance: Random) -> Pair:
    fence = f"Here is the order:\n```json\n{_order(chance, 4)}\n```"
    request = _request(format=Format.JSON_OBJECT)
    return request, Answer(text=_order(chance, 4)), Answer(text=fence)


def _calls(chance: Random) -> Pair:
    def called() -> Answer:
        city = chance.choice(["Oslo", "Lima", "Xi'an"])
        arguments = json.dumps({"city": city, "unit": chance.choice("CF")})
        return Answer(
            tool_calls=(ToolCall(name="weather", arguments=arguments),) * 2, finish_reason="tool_calls"
        )

    return _request(tools=(WEATHER,), tool_choice="auto"), called(), called()


def _choice(chance: Random) -> Pair:
    guide = Guide(kind=GuideKind.CHOICE, choices=("positive", "negative", "neutral"))
    request = _request(constrained=True, guide=guide)
    return request, Answer(text="positive"), Answer(text=chance.choice(guide.choices))


def _prose(sentences: Sequence[str], count: int) -> Callable[[Random], Pair]:
    def make(chance: Random) -> Pair:
        one, other = (" ".join(chance.choices(sentences, k=count)) for _ in range(2))
        return _request(), Answer(text=one), Answer(text=other)

    return make


def _refusal(chance: Random) -> Pair:
    one, other = (
        chance.choice(["I'm sorry, but I can't help with that.", "抱歉，我无法帮助您完成这个请求。"])
        for _ in "ab"
    )
    return _request(), Answer(text=one), Answer(text=other)


def _recall(chance: Random) -> Pair:
    needle = Needle(key="order number", value="ZX-99-17", question="What is the order number?", depth=0.4)
    told = chance.choice(["ZX-99-17", "The order number is ZX-99-17.", "It is not stated."])
    return _request(needle=needle), Answer(text="ZX-99-17"), Answer(text=told)


KINDS = (
    Kind(name="JSON by a schema, 4 items", make=_json(4)),
    Kind(name="JSON by a schema, 30 items", make=_json(30)),
    Kind(name="a JSON object, the candidate's in a fence", make=_fenced),
    Kind(name="two tool calls", make=_calls),
    Kind(name="a choice", make=_choice),
    Kind(name="English prose, 20 sentences", make=_prose(SENTENCES, 20)),
    Kind(name="Chinese prose, 30 sentences", make=_prose(CHINESE, 30)),
    Kind(name="a refusal", make=_refusal),
    Kind(name="a recall probe", make=_recall),
)


def measure(pairs_of_each: int) -> list[Measured]:
    """Every kind, and then all together."""
    found: list[Measured] = []
    for kind in KINDS:
        chance = Random(7)
        pairs = [kind.make(chance) for _ in range(pairs_of_each)]
        judged(pairs[:20])  # schemas are compiled once for all answers to them
        began = time.process_time()
        judged(pairs)
        spent = time.process_time() - began
        chars = sum(_chars(answer) for _, *both in pairs for answer in both)
        found.append(
            Measured(
                name=kind.name, answers=2 * len(pairs), chars=chars // 2 // len(pairs), cpu_seconds=spent
            )
        )
    answers = sum(each.answers for each in found)
    total = Measured(
        name="all kinds, as many of each",
        answers=answers,
        chars=sum(each.chars for each in found) // len(found),
        cpu_seconds=sum(each.cpu_seconds for each in found),
    )
    return [*found, total]


def judged(pairs: Sequence[Pair]) -> None:
    """Every pair by every evaluator; RuntimeError when one is not judged at all."""
    for request, baseline, candidate in pairs:
        verdicts = [judge(each, request, baseline, candidate) for each in evaluators.ALL]
        if unscored := [each for each in verdicts if isinstance(each, Unscored)]:
            raise RuntimeError(f"not judged: {unscored[0].detail}")
        if not any(isinstance(each, PairScore) for each in verdicts):
            whys = {each.why for each in verdicts if isinstance(each, NotApplicable)}
            raise RuntimeError(f"no evaluator applies: {whys}")


def _chars(answer: Answer) -> int:
    return len(answer.text) + sum(len(call.arguments) for call in answer.tool_calls)


def report(found: Sequence[Measured]) -> str:
    """A row for each kind; the figure is that of the last."""
    rows = ["| answers | characters | answers/s and core | us an answer | figure |", "|---|---|---|---|---|"]
    for each in found:
        verdict = "met" if each.per_second >= FIGURE else "MISSED"
        figure = f">= {FIGURE}, {verdict}" if each is found[-1] else "-"
        rate = f"{each.per_second:,.0f} | {1e6 / each.per_second:.0f}"
        rows.append(f"| {each.name} | {each.chars} | {rate} | {figure} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1000, help="of each kind")
    parser.add_argument("--output", type=Path, help="write the report there as well")
    asked = parser.parse_args()
    described, found = machine(), measure(asked.pairs)
    publish(f"{described}\n\n{report(found)}", asked.output)
    if found[-1].per_second < FIGURE:
        sys.exit("missed a figure")


if __name__ == "__main__":
    main()
