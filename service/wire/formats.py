"""What a request body says the answer must be, in each engine's words.

OpenAI `response_format`, vLLM `structured_outputs` and its older `guided_*`, llama.cpp `json_schema` and
`grammar`, SGLang `regex` and `ebnf`. A grammar, regular expression or choice constrains decoding too; it is
no JSON but a `Guide`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evaluators.exchange import Endpoint, Format, Guide, GuideKind, Json, Message, Request, Tool
from service.wire import shapes
from service.wire.shapes import WrongShape

GUIDES = (
    "structured_outputs",
    "guided_json",
    "guided_json_object",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "guided_decoding_backend",
    "guided_whitespace_pattern",
    "structural_tag",
    "json_schema",
    "grammar",
    "grammar_lazy",
    "grammar_triggers",
    "regex",
    "ebnf",
)
"""Top-level keys, besides `response_format`, that constrain what is written."""

_OTHER_GUIDES = {
    "guided_choice": GuideKind.CHOICE,
    "guided_regex": GuideKind.REGEX,
    "regex": GuideKind.REGEX,
    "guided_grammar": GuideKind.GRAMMAR,
    "grammar": GuideKind.GRAMMAR,
    "ebnf": GuideKind.GRAMMAR,
    "structural_tag": GuideKind.STRUCTURAL_TAG,
}
"""Those that are not JSON, the likeliest first: only one is meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The format a request asks for, and whether the engine was told to enforce it."""

    format: Format = Format.TEXT
    schema: Json = None
    constrained: bool = False
    guide: Guide | None = None


def asking(
    endpoint: Endpoint,
    body: Mapping[str, Json],
    messages: Iterable[Message],
    asked: Asked,
    *,
    limit: str,
    tools: tuple[Tool, ...] = (),
    tool_choice: str = "none",
    parallel_calls: bool = True,
) -> Request:
    """The request: what every dialect calls alike comes from the body; `limit` names its most tokens."""
    return Request(
        endpoint=endpoint,
        model=shapes.text(body.get("model"), "model"),
        messages=tuple(messages),
        format=asked.format,
        schema=asked.schema,
        constrained=asked.constrained,
        guide=asked.guide,
        tools=tools,
        tool_choice=tool_choice,
        parallel_calls=parallel_calls,
        stream=bool(body.get("stream")),
        max_tokens=shapes.count(body.get(limit), limit),
        body=body,
    )


def read_formats(body: Mapping[str, Json], format: Json) -> Asked:
    """What a body asks for: by `format`, where its dialect has that, or by an engine's own keys, which every
    endpoint may have. The first that asks for JSON decides."""
    outputs = shapes.mapping(body.get("structured_outputs"), "structured_outputs")
    for schema in (outputs.get("json"), body.get("guided_json"), body.get("json_schema")):
        if schema is not None:
            return Asked(format=Format.JSON_SCHEMA, schema=_schema(schema), constrained=True)
    if outputs.get("json_object") or body.get("guided_json_object"):
        return Asked(format=Format.JSON_OBJECT, constrained=True)
    asked = read_format(format)
    if asked.constrained:
        return asked
    guide = _other_guide(outputs, body)
    told = guide is not None or any(value not in (None, False) for value in outputs.values())
    return Asked(constrained=told, guide=guide)


def _other_guide(outputs: Mapping[str, Json], body: Mapping[str, Json]) -> Guide | None:
    for kind in (GuideKind.CHOICE, GuideKind.REGEX, GuideKind.GRAMMAR, GuideKind.STRUCTURAL_TAG):
        if outputs.get(kind) is not None:
            return _guide(kind, outputs[kind])
    for key, named in _OTHER_GUIDES.items():
        if body.get(key) is not None:
            return _guide(named, body[key])
    return None


def _guide(kind: GuideKind, value: Json) -> Guide:
    """Lenient, since engines differ in the shape: what cannot be read is left empty, and not judged."""
    if kind is GuideKind.CHOICE:
        choices = value if isinstance(value, list) else ()
        # numbers and booleans are offered too, and written as JSON writes them
        return Guide(
            kind=kind,
            choices=tuple(each if isinstance(each, str) else shapes.write_json(each) for each in choices),
        )
    return Guide(kind=kind, written=value if isinstance(value, str) else "")


def read_format(value: Json) -> Asked:
    """`response_format` of chat, `text.format` of responses, `output_format` of messages."""
    asked = shapes.mapping(value, "response_format")
    type = shapes.text(asked.get("type"), "type of response_format")
    if type in ("", "text"):
        return Asked()
    if (kind := _OTHER_GUIDES.get(type)) is not None:
        return Asked(constrained=True, guide=_guide(kind, _guide_within(asked, kind)))
    if type not in ("json_object", "json_schema"):
        raise WrongShape(f"response_format {type!r} is not known (text, json_object, json_schema)")
    schema = _schema_within(asked)
    if schema is None and type == "json_object":
        return Asked(format=Format.JSON_OBJECT, constrained=True)
    return Asked(format=Format.JSON_SCHEMA, schema=True if schema is None else schema, constrained=True)


def _guide_within(asked: Mapping[str, Json], kind: GuideKind) -> Json:
    """What stands beside `type`, under the name of the kind or, as in llama.cpp and SGLang, another."""
    named = (asked.get(key) for key in (asked["type"], kind.value, "pattern", "value", "definition"))
    return next((value for value in named if value is not None), None)


def _schema_within(asked: Mapping[str, Json]) -> Json:
    wrapped = asked.get("json_schema")
    if isinstance(wrapped, dict) and "schema" in wrapped:
        return _schema(wrapped["schema"])
    if isinstance(wrapped, dict) and "name" in wrapped:
        return None  # OpenAI's wrapper without a schema: any JSON
    return _schema(asked.get("schema", wrapped))


def _schema(value: Json) -> Json:
    """A schema given as JSON, or as the text of one."""
    schema = shapes.read_json(value) if isinstance(value, str) else value
    if schema is not None and not isinstance(schema, dict | bool):
        raise WrongShape(f"the JSON schema is {shapes.kind(schema)}")
    return schema
