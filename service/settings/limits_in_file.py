"""A model's `limits` put into the text of a configuration, whose every other line stays as it is.

PyYAML tells where in the text a value begins and ends, so that comments and order survive. What comes out is
read again and must say what was there before, but for the limits: where it does not, nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

import yaml
from pydantic import ValidationError

from service.settings.document import Unreadable, read_document
from service.settings.evaluating import known
from service.settings.limits import refuse_limits_that_cannot_hold
from service.settings.problems import Findings, spell
from service.settings.shape import TiergateShape


class CannotEdit(ValueError):
    """The text cannot be changed safely; why, and what to do by hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One key of `limits`."""

    key: str
    value: str
    """As it is written."""
    comment: str

    def __str__(self) -> str:
        return f"{self.key}: {self.value}  # {self.comment}"


def limits_of(model: str, lines: Sequence[Line]) -> str:
    """A configuration of these limits and nothing else, to be pasted."""
    name = yaml.safe_dump(model, default_flow_style=True).removesuffix("\n...\n").strip()
    return "\n".join(["models:", f"  {name}:", "    limits:", *(f"      {line}" for line in lines), ""])


def with_limits(text: str, model: str, lines: Sequence[Line]) -> str:
    """The text with these limits; those of other keys stay. CannotEdit where that is not safe."""
    before = _content(text)
    try:
        written = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise CannotEdit(f"this is no YAML: {error}") from None
    around = _inside(_inside(written, "models"), model)
    key, found = _entry(around, "limits")
    rows, column = text.split("\n"), around.value[0][0].start_mark.column
    indent = " " * column
    new = [f"{indent}limits:", *(f"{indent}  {line}" for line in (*lines, *_others(found, lines, text)))]
    if key is None:
        at = _last_line(around) + 1
        rows[at:at] = new
    else:
        assert found is not None
        _refuse_alias(key, found)
        rows[key.start_mark.line : _last_line(found) + 1] = new
    after = "\n".join(rows)
    _check(before, after, model, lines)
    return after


def _others(found: yaml.Node | None, lines: Sequence[Line], text: str) -> list[str]:
    """Keys that are there and are not ours, as they are written."""
    if not isinstance(found, yaml.MappingNode):
        return []
    ours = {line.key for line in lines}
    return [
        f"{key.value}: {text[value.start_mark.index : value.end_mark.index].rstrip()}"
        for key, value in found.value
        if key.value not in ours
    ]


def _entry(mapping: yaml.MappingNode, name: str) -> tuple[yaml.Node | None, yaml.Node | None]:
    return next(((key, value) for key, value in mapping.value if key.value == name), (None, None))


def _inside(node: yaml.Node | None, name: str) -> yaml.MappingNode:
    """The mapping under a key, on lines of its own."""
    key, value = _entry(node, name) if isinstance(node, yaml.MappingNode) else (None, None)
    if key is None or value is None:
        raise CannotEdit(f"there is no {name!r} in it")
    _refuse_alias(key, value)
    if not isinstance(value, yaml.MappingNode) or value.flow_style or not value.value:
        raise CannotEdit(
            f"what is under {name!r} is not written on lines of its own: put the limits in by hand"
        )
    return value


def _refuse_alias(key: yaml.Node, value: yaml.Node) -> None:
    if value.start_mark.index < key.end_mark.index:
        raise CannotEdit(f"{key.value!r} is an alias of what stands elsewhere: put the limits in by hand")


def _last_line(node: yaml.Node) -> int:
    """Of the value itself: PyYAML counts comments and empty lines behind a block to it."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return max(_last_line(value) for _, value in node.value)
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return max(map(_last_line, node.value))
    return int(node.end_mark.line)


def _content(text: str) -> dict[str, object]:
    try:
        document = read_document(text)
    except Unreadable as error:
        raise CannotEdit(str(error)) from None
    if document.problems:
        raise CannotEdit("; ".join(map(str, document.problems)))
    return document.content


def _check(before: Mapping[str, object], after: str, model: str, lines: Sequence[Line]) -> None:
    """Refuse whatever says anything else than it should, or cannot be kept."""
    wanted: dict[str, object] = deepcopy(dict(before))
    models = wanted["models"]
    assert isinstance(models, dict)
    limits = models[model].get("limits") or {}
    said = _content("\n".join(f"{line.key}: {line.value}" for line in lines))
    models[model]["limits"] = {**limits, **said}
    if _content(after) != wanted:
        raise CannotEdit("its form is not one that can be changed safely: put the limits in by hand")
    try:
        shape = TiergateShape.model_validate(wanted, context={"known": known()})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise CannotEdit(
            f"with these limits it is not valid: {spell(first['loc'])}: {first['msg']}"
        ) from None
    findings = Findings()
    refuse_limits_that_cannot_hold(shape, findings)
    if findings.entries:
        place, message = findings.entries[0]
        raise CannotEdit(f"with these limits it is not valid: {spell(place)}: {message}")
