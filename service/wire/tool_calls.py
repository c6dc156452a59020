"""Tool calls put together from the fragments of a chat stream, as engines really send them.

By the protocol a fragment names its call by `index`, and only the first carries `id` and `name`. In the wild
the index is missing, always 0, or changes between fragments of one call; ids are new in each fragment, or one
id serves two calls; names are repeated or split; arguments come as an object, or as null at first. Each rule
below names the case it is for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from evaluators.exchange import Json, Tool, ToolCall
from service.wire import shapes
from service.wire.brackets import Brackets


@dataclass(slots=True, kw_only=True)
class _Call:
    place: int
    id: str = ""
    name: str = ""
    fragments: list[str] = field(default_factory=list)
    brackets: Brackets = field(default_factory=Brackets)
    """Of the fragments: a call may come in 100,000 of them and be looked at after each."""
    whole: Json = None
    """Arguments that came as an object or array: they stand for themselves, unless text follows."""
    parsed: int = 0
    """Characters that were read as JSON to see whether the arguments are whole."""

    @property
    def has_arguments(self) -> bool:
        return bool(self.fragments) or self.whole is not None

    def is_whole(self) -> bool:
        """Whether the arguments are JSON as far as they came.

        They are read at most once: brackets close once, and whatever stands behind makes the rest no JSON.
        """
        if not self.fragments:
            return self.whole is not None
        if not self.brackets.closed:
            return False
        self.parsed += sum(map(len, self.fragments))
        try:
            shapes.read_json(self.arguments)
        except shapes.WrongShape:
            return False
        return True

    @property
    def arguments(self) -> str:
        if not self.fragments and self.whole is not None:
            return shapes.write_json(self.whole)
        return shapes.joined(self.fragments)


class ToolCallCollector:
    """Fragments in, calls out, in the order of their index."""

    __slots__ = ("_by_id", "_by_index", "_calls")

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._by_index: dict[int, _Call] = {}

    def add(self, fragment: Json, *, whole: bool) -> None:
        """One element of `tool_calls`: a fragment of a delta or, when `whole`, a call of a message."""
        fields = shapes.mapping(fragment, "a tool call")
        function = shapes.mapping(fields.get("function"), "function of a tool call")
        custom = shapes.mapping(fields.get("custom"), "custom of a tool call")
        index = shapes.count(fields.get("index"), "index of a tool call")
        id = shapes.text(fields.get("id"), "id of a tool call")
        name = shapes.text(function.get("name") or custom.get("name"), "name of a tool call")
        arguments = function.get("arguments", custom.get("input"))
        call = None if whole else self._find(index, id, name, arguments)
        if call is None:
            call = _Call(place=len(self._calls) if index is None or whole else index)
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        if id:
            self._by_id[id] = call
            call.id = call.id or id
        if name != call.name:  # an equal one is repeated, not continued
            call.name += name
        if isinstance(arguments, dict | list):
            call.whole = arguments
        elif written := shapes.text(arguments, "arguments of a tool call"):
            call.fragments.append(written)
            call.brackets.read(written)

    def calls(self) -> tuple[ToolCall, ...]:
        """What was called. Calls that share an index keep the order in which they began."""
        ordered = sorted(self._calls, key=lambda call: call.place)
        return tuple(ToolCall(name=call.name, arguments=call.arguments, id=call.id) for call in ordered)

    @property
    def looked_at(self) -> int:
        """Characters of arguments that were looked at so far, once for each time."""
        return sum(call.brackets.looked_at + call.parsed for call in self._calls)

    def _find(self, index: int | None, id: str, name: str, arguments: Json) -> _Call | None:
        """The call that a fragment continues, or None when it begins one."""
        held = None if index is None else self._by_index.get(index)
        if id and id in self._by_id:
            known = self._by_id[id]
            # one id for two calls: a new index brings a name although the first call has its arguments
            begins = bool(name) and index is not None and held is None and known.has_arguments
            return None if begins else known
        if held is not None:
            return None if _begins_beside(held, id, name, arguments) else held
        last = self._calls[-1] if self._calls else None
        if last is None or id:
            return None
        if not name:
            return last  # the index is missing, or changed between fragments
        # Neither id nor a known index: a name split over fragments goes on only while an identified call has
        # no arguments yet.
        splits = index is None and bool(last.id) and not last.has_arguments
        return last if splits else None


def _begins_beside(held: _Call, id: str, name: str, arguments: Json) -> bool:
    """Whether a fragment with the index of `held` begins another call: the engine numbers all alike."""
    if not name:
        return False  # an id that is new in each fragment of one call
    if id and held.id:
        return True
    if not held.has_arguments or not held.name:
        return False
    return name != held.name or (_opens(arguments) and held.is_whole())


def _opens(arguments: Json) -> bool:
    written = shapes.write_json(arguments) if isinstance(arguments, dict) else arguments
    return isinstance(written, str) and written.lstrip().startswith("{")


def allowed_tools(tools: tuple[Tool, ...], choice: Json) -> tuple[Tool, ...]:
    """The tools that may be called: those that a `tool_choice` of allowed tools names, else all."""
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        return tools
    within = shapes.mapping(choice.get("allowed_tools", choice), "allowed_tools")
    names: set[str] = set()
    for item in shapes.items(within.get("tools"), "tools of allowed_tools"):
        fields = shapes.mapping(item, "a tool of allowed_tools")
        named = fields.get("function") or fields.get("custom") or fields
        names.add(shapes.text(shapes.mapping(named, "an allowed tool").get("name"), "name of a tool"))
    allowed = tuple(tool for tool in tools if tool.name in names)
    return allowed or tools  # a list that names none of the functions is about other kinds of tools
