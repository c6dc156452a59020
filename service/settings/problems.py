"""What is wrong with a configuration, all of it at once, each with its place and what to do.

SettingsError
    one file, one or more `Problem`s: unknown keys with the nearest valid one, values out of their range,
    secrets that cannot be read, YAML that does not parse
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Place = tuple[str | int, ...]
"""Keys and list positions from the top of the file; the empty tuple is the file itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing to correct."""

    place: Place = ()
    line: int | None = None
    """Counted from 1."""
    message: str

    def __str__(self) -> str:
        where, message = spell(self.place), visible(self.message, keep="\n")
        if self.line is not None:
            where = f"{where} (line {self.line})" if where else f"line {self.line}"
        return f"{where}: {message}" if where else message


@dataclass(slots=True)
class Findings:
    """Problems by place; a message without a place speaks of the environment."""

    entries: list[tuple[Place, str]] = field(default_factory=list)

    def add(self, place: Place, message: str) -> None:
        """Note what is wrong there; building goes on, so that everything wrong is told at once."""
        self.entries.append((place, message))


class SettingsError(ValueError):
    """A configuration that cannot be used, with every problem found in it."""

    def __init__(self, path: Path | None, problems: Iterable[Problem]) -> None:
        self.path = path
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line or 0))
        source = "the environment" if path is None else str(path)
        head = f"{source}: {_counted(len(self.problems), 'problem')}"
        super().__init__("\n".join([head, *(f"  {problem}" for problem in self.problems)]))


def spell(place: Sequence[str | int]) -> str:
    """`models.qwen3-32b.ladder[1].backends[0]`; keys with dots or spaces are quoted, and what cannot be
    seen is spelled out: escapes and marks of direction would paint what is not there.
    """
    text = ""
    for step in place:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            step = visible(step)
            plain = step != "" and not any(mark in step for mark in '.[]" ')
            text += ("." if text else "") + (step if plain else f'"{step}"')
    return text


def visible(text: str, *, keep: str = "") -> str:
    """The text with everything that is not printable spelled out, but for what is kept."""
    return "".join(each if each.isprintable() or each in keep else repr(each)[1:-1] for each in text)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
