"""The JSON Schema of `tiergate.yaml`, for editors and pipelines."""

from __future__ import annotations

from collections.abc import Sequence

from service.settings.shape import TiergateShape


def json_schema(known: Sequence[str]) -> dict[str, object]:
    """JSON Schema 2020-12, over the `known` evaluators.

    Checks keys and forms; `tiergate check` also checks what they mean together.
    """
    schema = TiergateShape.model_json_schema()
    schema["$defs"]["PolicyShape"]["properties"]["criteria"]["propertyNames"] = {"enum": list(known)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tiergate.yaml",
        **{key: _plain(part) for key, part in schema.items() if key != "title"},
    }


def _plain(part: object) -> object:
    """Without the titles that pydantic makes of names, and without defaults of whole sections."""
    if isinstance(part, list):
        return [_plain(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        key: _plain(each)
        for key, each in part.items()
        if not (key == "title" and isinstance(each, str))
        and not (key == "default" and isinstance(each, dict))
    }
