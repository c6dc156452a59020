"""YAML text to plain values, with the line of every value.

Stricter than PyYAML: a duplicate key is a problem, keys stay text (a model may be called `70` or `null`), and
only `true` and `false` are truth values, so that `gates: {slo: off}` means what it says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import yaml

from service.settings.problems import Place, Problem

DEEPEST = 32
"""Levels of nesting; no configuration comes near it, an alias that contains itself passes it."""
MOST_VALUES = 100_000
"""Values after aliases are written out; a few nested aliases can stand for billions."""

_TAG = "tag:yaml.org,2002:"
_MAPPING, _SEQUENCE = f"{_TAG}map", f"{_TAG}seq"
_READERS: Mapping[str, Callable[[str], object]] = {
    f"{_TAG}null": lambda written: None,
    f"{_TAG}bool": lambda written: written == "true",
    f"{_TAG}int": int,
    f"{_TAG}float": float,
    f"{_TAG}str": str,
}


class Unreadable(Exception):
    """Text that is no YAML mapping, with the problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


@dataclass(slots=True)
class Document:
    """The plain values, the line of each place, and what is wrong with the text itself."""

    content: dict[str, object] = field(default_factory=dict)
    lines: dict[Place, int] = field(default_factory=dict)
    """Counted from 1; a mapping entry has the line of its key."""
    problems: list[Problem] = field(default_factory=list)
    values_seen: int = 0

    def line_of(self, place: Place) -> int | None:
        """The line of the place, or of the nearest place around it that the text has."""
        known = self.known(place)
        return self.lines.get(known)

    def problem(self, place: Place, message: str) -> Problem:
        """A problem at the nearest place that the text has; without a place, of no line."""
        line = self.line_of(place) if place else None
        return Problem(place=self.known(place), line=line, message=message)

    def known(self, place: Place) -> Place:
        """The longest beginning of the place that the text has."""
        while place and place not in self.lines:
            place = place[:-1]
        return place


class _Reader(yaml.SafeLoader):
    """A loader of its own, so that its resolvers can differ."""


# The core schema of YAML 1.2: with PyYAML's own, `off` is false and `1:30` is 90.
_Reader.yaml_implicit_resolvers = {}
for _kind, _pattern, _first in (
    ("null", r"null|~|", ["n", "~", ""]),
    ("bool", r"true|false", ["t", "f"]),
    ("int", r"[-+]?[0-9]+", list("-+0123456789")),
    ("float", r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][-+]?[0-9]+)?", list("-+.0123456789")),
):
    _Reader.add_implicit_resolver(f"{_TAG}{_kind}", re.compile(f"(?:{_pattern})\\Z"), _first)


def read_document(text: str) -> Document:
    """Parse one YAML mapping; raises `Unreadable` for anything else."""
    try:
        reader = _Reader(text)
        try:
            top = reader.get_single_node()
            document = Document()
            if top is None:
                return document
            if not isinstance(top, yaml.MappingNode):
                raise Unreadable(
                    Problem(line=_line(top), message="expected keys and values at the top of the file")
                )
            content = _Walk(reader, document).mapping(top, ())
        finally:
            reader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = " ".join(part for part in (error.context, error.problem) if part)
        if mark is not None and mark.buffer is not None and mark.buffer[mark.pointer] == "\t":
            message = "it is indented with spaces, and here is a tab"
        raise Unreadable(
            Problem(line=None if mark is None else mark.line + 1, message=f"this is not YAML: {message}")
        ) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"the character U+{error.character:04X} has no place in it"
        raise Unreadable(Problem(line=line, message=f"this is not YAML: {message}")) from error
    except yaml.YAMLError as error:
        raise Unreadable(Problem(message=f"this is not YAML: {error}")) from error
    except RecursionError as error:
        raise Unreadable(Problem(message="this is not a configuration: nested too deeply")) from error
    document.content = content
    return document


class _Walk:
    """One pass over the nodes of a document."""

    def __init__(self, reader: _Reader, document: Document) -> None:
        self.reader = reader
        self.document = document

    def value(self, node: yaml.Node, place: Place) -> object:
        self._count(node, len(place))
        if node.tag not in (_MAPPING, _SEQUENCE, *_READERS):
            self._problem(node, place, f"the tag {node.tag} has no meaning here")
            return None
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            items: list[object] = []
            for index, child in enumerate(node.value):
                self.document.lines[(*place, index)] = _line(child)
                items.append(self.value(child, (*place, index)))
            return items
        try:
            return _READERS[node.tag](node.value)
        except (KeyError, ValueError):
            # An explicit tag on other text, such as `!!int six` or `!!map six`, or digits without end.
            self._problem(node, place, f"this is no {node.tag.removeprefix(_TAG)}")
            return None

    def mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, object]:
        entries: dict[str, object] = {}
        merged: dict[str, object] = {}
        for key, child in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == "<<" and key.style is None:
                merged = {**self._merged(child, place), **merged}
                continue
            if not isinstance(key, yaml.ScalarNode):
                self._problem(key, place, "a key must be plain text")
                continue
            name = str(key.value)
            here = (*place, name)
            if name in entries:
                first = self.document.lines[here]
                self._problem(key, here, f"this key is already set on line {first}; remove one of the two")
                continue
            self.document.lines[here] = _line(key)
            entries[name] = self.value(child, here)
        return {**merged, **entries}

    def _merged(self, node: yaml.Node, place: Place) -> dict[str, object]:
        parts = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, object] = {}
        for part in parts:
            if not isinstance(part, yaml.MappingNode):
                self._problem(node, place, "`<<` takes a mapping, or a list of them")
                continue
            self._count(part, 0)
            merged = {**self.mapping(part, place), **merged}
        return merged

    def _count(self, node: yaml.Node, depth: int) -> None:
        self.document.values_seen += 1
        if depth > DEEPEST or self.document.values_seen > MOST_VALUES:
            raise Unreadable(
                Problem(line=_line(node), message="nested too deeply, or an alias that contains itself")
            )

    def _problem(self, node: yaml.Node, place: Place, message: str) -> None:
        self.document.problems.append(Problem(place=place, line=_line(node), message=message))


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
