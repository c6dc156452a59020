"""Message content: a string, or a list of parts of which some are text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evaluators.exchange import Json
from service.wire import shapes

TEXT_PARTS = frozenset({"text", "input_text", "output_text", "summary_text", "reasoning_text"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What one turn says."""

    text: str = ""
    refusal: str | None = None
    thinking: str = ""
    """Of `thinking` parts, whose text is a string or parts again."""
    media: tuple[str, ...] = ()


def parts(content: Json, where: str) -> Iterator[Mapping[str, Json]]:
    """The parts of a content; a string is one text part, null none."""
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    else:
        for part in shapes.items(content, where):
            yield {"type": "text", "text": part} if isinstance(part, str) else shapes.mapping(part, where)


def read_content(content: Json, where: str, *, between: str = "") -> Content:
    """Text parts joined by `between`, refusal parts, and a digest of every part of another type."""
    texts: list[str] = []
    refusals: list[str] = []
    thoughts: list[str] = []
    media: list[str] = []
    for part in parts(content, where):
        type = shapes.text(part.get("type"), f"type of a part of {where}")
        if type in TEXT_PARTS or (not type and "text" in part):
            texts.append(shapes.text(part.get("text"), f"text of a part of {where}"))
        elif type == "refusal":
            refusals.append(shapes.text(part.get("refusal"), f"refusal of a part of {where}"))
        else:
            if type == "thinking":
                thoughts += [
                    shapes.text(thought.get("text"), f"thinking of a part of {where}")
                    for thought in parts(part.get("thinking"), f"thinking of a part of {where}")
                ]
            # a cache mark wanders to the newest turn, and does not make an older one another
            media.append(f"{type}:{digest({k: v for k, v in part.items() if k != 'cache_control'})}")
    return Content(
        text=between.join(texts),
        refusal="".join(refusals) if refusals else None,
        thinking="".join(thoughts),
        media=tuple(media),
    )


def digest(value: Json) -> str:
    """A short, stable name of a JSON value: 16 hex digits of SHA-256."""
    return hashlib.sha256(shapes.write_json(value).encode("utf-8", "surrogatepass")).hexdigest()[:16]
