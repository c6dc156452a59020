"""Chat contexts of our own text, of any length, whose facts and traps are known: the ground of recall tests.

Four shapes as traffic has them (system prompt, retrieval in one user message, tool results, many turns), in
English and Chinese, seeded. A fact is said once, under a name of its own. A trap is what a careful reader
could not answer, or could without reading: values said twice, corrected, supposed, doubted, dated, counted in
millions, round, or part of their own name; cells of wide tables; whatever stands in the closing question.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random

from evaluators.exchange import Endpoint, Message, Request, ToolCall

SHAPES = ("system", "rag", "rag_lines", "tool", "turns")
LANGUAGES = ("en", "zh")
CHARACTERS_PER_TOKEN = {"en": 4.0, "zh": 1.5}

_OPENINGS = (
    "The river near the old market was quiet that week, and the garden stayed bright all day.",
    "Most visitors ask about parking first, then about breakfast, and only later about prices.",
    "Staff rotate between the desks so that nobody has to stand in the draught for a whole shift.",
    "Paint dries slowly in autumn; leave the windows open and keep children away from the stairs.",
    "It rained on the first evening, so the walk was moved indoors and everybody was served tea.",
    "A good report says who was there, what was agreed and what is still open, in that order.",
)
_CHINESE_OPENINGS = (
    "河边的老市场那一周很安静，花园整天都很明亮。",
    "大多数来访者先问停车，再问早餐，最后才问价格。",
    "员工轮流在各个柜台值班，以免有人整天站在风口。",
    "秋天油漆干得慢，窗户要开着，孩子要离楼梯远一点。",
    "第一天晚上下雨，散步改在室内进行，每人都有热茶。",
    "好的报告写明谁在场、谈妥了哪些事、还剩哪些事。",
)
_PLACES = tuple(
    f"{colour} {place}"
    for place in (
        "room",
        "gate",
        "cellar",
        "workshop",
        "archive",
        "laboratory",
        "terrace",
        "kiosk",
        "depot",
        "studio",
    )
    for colour in (
        "blue",
        "northern",
        "old",
        "glass",
        "upper",
        "quiet",
        "copper",
        "stone",
        "narrow",
        "western",
    )
)
_CHINESE_PLACES = tuple(
    colour + place
    for place in ("房间", "大门", "地窖", "车间", "档案室", "实验室", "露台", "报亭", "仓库", "画室")
    for colour in ("蓝色", "北边", "旧", "玻璃", "楼上", "安静", "铜制", "石头", "狭窄", "西边")
)
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October")


@dataclass(slots=True)
class Context:
    """A request, what it says and what must not be asked."""

    request: Request
    language: str
    shape: str
    tokens: int
    """About as many."""
    closing: str
    facts: dict[str, str] = field(default_factory=dict)
    """Values by the name under which each is said once."""
    traps: set[str] = field(default_factory=set)
    """Values that no question may expect."""


class _Author:
    """Writes sentences of one context, and remembers what they say."""

    def __init__(self, language: str, chance: Random) -> None:
        self.language, self.chance = language, chance
        self.facts: dict[str, str] = {}
        self.traps: set[str] = set()
        places = list(_PLACES if language == "en" else _CHINESE_PLACES)
        chance.shuffle(places)
        numbered = "{} {}" if language == "en" else "{}{}号"
        self._places = (
            place if turn == 0 else numbered.format(place, turn + 1) for turn in count() for place in places
        )
        self._numbers = iter(chance.sample(range(20_011, 99_990), 40_000))
        self.closing = self._closing()

    def number(self) -> int:
        """Of five digits, never twice, and neither round nor a run."""
        return next(each for each in self._numbers if len(set(str(each))) > 3 and each % 10)

    def filler(self) -> str:
        return self.chance.choice(_OPENINGS if self.language == "en" else _CHINESE_OPENINGS)

    def fact(self) -> str:
        """A sentence or a labelled line."""
        place, number = next(self._places), self.number()
        day, month = self.chance.randint(1, 28), self.chance.randrange(1, 11)
        if self.language == "zh":
            name, value = self.chance.choice(
                (
                    (f"{place}的门禁密码", f"{number}"),
                    (f"{place}的合同编号", f"HT-{number}"),
                    (f"{place}的押金", f"{number:,}.40"),
                    (f"{place}的验收日期", f"2{number % 90 + 210}年{month}月{day}日"),
                )
            )
            written = self.chance.choice((f"{name}是{value}。", f"{name}为{value}。", f"\n{name}：{value}\n"))
        else:
            name, value = self.chance.choice(
                (
                    (f"access code of the {place}", f"{number}"),
                    (f"invoice number for the {place}", f"INV-{number}"),
                    (f"deposit for the {place}", f"{number:,}.40"),
                    (f"opening date of the {place}", f"{_MONTHS[month - 1]} {day}, 2{number % 90 + 110}"),
                    (f"contact address for the {place}", f"desk{number}@example.org"),
                )
            )
            label = name.partition(" of the ")[0].partition(" for the ")[0]
            if self.chance.random() < 0.4:
                name = f"{place} {label}"
                written = f"\n- **{name.capitalize()}**: {value}\n"
            else:
                written = f"The {name} is {value}."
        self.facts[name.casefold()] = value
        return written

    def trap(self) -> str:
        place, one, two = next(self._places), self.number(), self.number()
        self.traps |= {str(one), str(two), f"F-{one}", f"{one:,}", f"{one:,}.00", str(one % 1000), "8000"}
        english = (
            f"The door code of the {place} is {one}. The door code of the {place} is {two}.",
            f"The badge number of the {place} is {one}. They wrote {one:,}.00 on the plate as well.",
            f"The exit code of the {place} is {one}. Correction: it is now {two}.",
            f"The key number of the {place} is {one}. The key number of the {place} has changed to {two}.",
            f"If the alarm code of the {place} is {one}, call the desk.",
            f"Nobody believes that the safe code of the {place} is {one}.",
            f"Is it true that the pager number of the {place} is {one}?",
            f"The budget of the {place} was {one} in May and {two} in June.",
            f"The turnover of the {place} is {one % 1000} million.",
            f"The capacity of the {place} is 8000.",
            f"\n| item | stock | sold |\n|---|---|---|\n| {place} lamp | {one} | {two} |\n",
            f"\nForm {one} number of the {place}: F-{one}\n",
            f"The locker code of the {place} was {one} until Monday.",
        )
        chinese = (
            f"{place}的门锁密码是{one}。{place}的门锁密码是{two}。",
            f"{place}的工牌号是{one}。铭牌上也写着{one:,}.00。",
            f"{place}的出口密码是{one}。更正：现在是{two}。",
            f"{place}的钥匙号是{one}。{place}的钥匙号已改为{two}。",
            f"如果{place}的警报密码是{one}，请致电前台。",
            f"没有人相信{place}的保险柜密码是{one}。",
            f"{place}的寻呼号是{one}吗？",
            f"{place}的预算是{one}，六月是{two}。",
            f"{place}的营业额为{one % 1000}万元。",
            f"{place}的容量是8000。",
            f"\n| 物品 | 库存 | 售出 |\n|---|---|---|\n| {place}的灯 | {one} | {two} |\n",
            f"{place}的储物柜密码原来是{one}。",
        )
        return self.chance.choice(english if self.language == "en" else chinese)

    def passages(self, characters: int) -> Iterator[str]:
        """Paragraphs of mostly filler, a fact in most of them and a trap in some, up to a length."""
        written = 0
        while written < characters:
            said = [self.filler() for _ in range(self.chance.randint(3, 8))]
            said.insert(self.chance.randrange(len(said)), self.fact())
            if self.chance.random() < 0.6:
                said.insert(self.chance.randrange(len(said)), self.trap())
            paragraph = (" " if self.language == "en" else "").join(said).strip()
            written += len(paragraph)
            yield paragraph

    def _closing(self) -> str:
        """The closing question; it names a value, which is then known without reading."""
        number = self.number()
        self.traps.add(str(number))
        if self.language == "zh":
            return f"问题：参考编号为{number}。请总结以上内容。"
        return f"Question: the reference number is {number}. What are the main points of all this?"


def context(shape: str, language: str, tokens: int, seed: int) -> Context:
    """About `tokens` tokens of one shape; the same for the same arguments."""
    chance = Random(f"{shape}/{language}/{tokens}/{seed}")
    author = _Author(language, chance)
    characters = int(tokens * CHARACTERS_PER_TOKEN[language])
    passages = list(author.passages(characters))
    messages = _MESSAGES[shape](author, passages)
    return Context(
        request=Request(endpoint=Endpoint.CHAT_COMPLETIONS, model="m", messages=tuple(messages)),
        language=language,
        shape=shape,
        tokens=tokens,
        closing=author.closing,
        facts=author.facts,
        traps=author.traps,
    )


def _system(author: _Author, passages: list[str]) -> list[Message]:
    return [Message(role="system", text="\n\n".join(passages)), Message(role="user", text=author.closing)]


def _rag(author: _Author, passages: list[str]) -> list[Message]:
    numbered = "\n\n".join(f"[{n}] {passage}" for n, passage in enumerate(passages, 1))
    return [Message(role="user", text=f"Answer from the passages.\n\n{numbered}\n\n{author.closing}")]


def _rag_lines(author: _Author, passages: list[str]) -> list[Message]:
    """Without a blank line anywhere."""
    lines = "\n".join(line for passage in passages for line in passage.splitlines() if line.strip())
    return [Message(role="user", text=f"<context>\n{lines}\n</context>\n{author.closing}")]


def _tool(author: _Author, passages: list[str]) -> list[Message]:
    messages = [Message(role="user", text=author.closing)]
    for n, passage in enumerate(passages):
        call = ToolCall(name="look_up", arguments=json.dumps({"page": n}), id=f"call_{n}")
        messages += [Message(role="assistant", tool_calls=(call,))]
        record = {"page": n, "text": passage, f"record_{n}_serial": f"SN{author.number()}X"}
        author.facts[f"record_{n}_serial"] = str(record[f"record_{n}_serial"])
        messages += [Message(role="tool", text=json.dumps(record, ensure_ascii=False))]
    return messages


def _turns(author: _Author, passages: list[str]) -> list[Message]:
    turns = [
        Message(role="user" if n % 2 == 0 else "assistant", text=f"{passage}\n\n{author.filler()}")
        for n, passage in enumerate(passages)
    ]
    return [Message(role="system", text="Be brief."), *turns, Message(role="user", text=author.closing)]


_MESSAGES = {"system": _system, "rag": _rag, "rag_lines": _rag_lines, "tool": _tool, "turns": _turns}


def corpus(seed: int = 0) -> list[Context]:
    """1k to 64k tokens in every shape and both languages; several of the short, for they hold little."""
    return [
        context(shape, language, tokens, seed + n)
        for tokens, copies in ((1_000, 6), (4_000, 3), (16_000, 2), (64_000, 1))
        for n in range(copies)
        for language in LANGUAGES
        for shape in SHAPES
    ]
