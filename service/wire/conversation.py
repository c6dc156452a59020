"""Which conversation a request belongs to, and whether another backend could answer it at all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from evaluators.exchange import Endpoint, Json, Request
from service.wire.shapes import write_json

METADATA_KEYS = ("conversation_id", "conversation", "session_id", "thread_id", "chat_id")
"""Where clients put an id of their own into `metadata`; the first that is there counts."""

_STATE = {
    Endpoint.RESPONSES: ("previous_response_id", "conversation", "prompt"),
    Endpoint.MESSAGES: ("container", "mcp_servers"),
}
"""Keys that refer to something which only one server holds."""
_CLIENT_TOOLS = ("function", "custom", "bash_", "text_editor_", "computer_", "memory_", "local_shell")
"""Tools that the client runs; any other type of tool runs on the server and may act on the world."""
_INSTRUCTING = ("system", "developer")
_MEDIA_URLS = ("image_url", "video_url", "audio_url", "file_url")


def message_chain(request: Request) -> tuple[str, ...]:
    """One SHA-256 (hex) for each turn, of that message and all before it.

    h_i = H(h_{i-1}, role, text, media, tool calls). A request whose last hash stands in the chain of another
    is a prefix of it: both belong to one conversation. Instructions at the head are no turn: every
    conversation of an application begins with them, and who sends them alone, to warm a cache, begins none.
    """
    chain: list[str] = []
    held = ""
    for message in request.messages:
        calls = [[call.name, call.arguments] for call in message.tool_calls]
        written = write_json([held, message.role, message.text, list(message.media), calls])
        held = hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
        chain.append(held)
    roles = [message.role for message in request.messages]
    first = next((i for i, role in enumerate(roles) if role not in _INSTRUCTING), len(roles) - 1)
    return tuple(chain[first:])


def explicit_conversation(request: Request) -> str | None:
    """The id that the body itself gives its conversation, or None."""
    metadata = request.body.get("metadata")
    if isinstance(metadata, dict):
        for key in METADATA_KEYS:
            if isinstance(metadata.get(key), str | int) and metadata[key] != "":
                return str(metadata[key])
    if request.endpoint is Endpoint.RESPONSES:
        named = request.body.get("conversation")
        id = named.get("id") if isinstance(named, dict) else named or request.body.get("previous_response_id")
        return id if isinstance(id, str) and id else None
    return None


def is_stateful(request: Request) -> bool:
    """Whether the request leans on what only its own server holds: stored turns, files, hosted tools."""
    if any(request.body.get(key) for key in _STATE.get(request.endpoint, ())):
        return True
    if any(_hosted(tool) for tool in _list(request.body.get("tools"))):
        return True
    return any(_names_stored(part) for part in _parts(request))


def has_remote_media(request: Request) -> bool:
    """Whether a part must be fetched from an address; media inside the body (`data:`) are not remote."""
    return any(_is_remote(part) for part in _parts(request))


def _hosted(tool: Json) -> bool:
    type = tool.get("type") if isinstance(tool, dict) else None
    return isinstance(type, str) and not type.startswith(_CLIENT_TOOLS)


def _names_stored(part: Mapping[str, Json]) -> bool:
    file = part.get("file")
    source = part.get("source")
    return (
        part.get("type") == "item_reference"
        or bool(part.get("file_id"))
        or (isinstance(file, dict) and bool(file.get("file_id")))
        or (isinstance(source, dict) and source.get("type") == "file")
    )


def _is_remote(part: Mapping[str, Json]) -> bool:
    addresses = [part.get(key) for key in _MEDIA_URLS]
    source = part.get("source")
    if isinstance(source, dict) and source.get("type") == "url":
        addresses.append(source.get("url"))
    for address in addresses:
        url = address.get("url") if isinstance(address, dict) else address
        if isinstance(url, str) and url and not url.lower().startswith("data:"):
            return True
    return False


def _parts(request: Request) -> Iterator[Mapping[str, Json]]:
    """Every turn and content part, tool results within turns included; arguments of calls are not parts."""
    waiting = [request.body.get(key) for key in ("messages", "input", "system")]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            yield value
            waiting.extend(value.get(key) for key in ("content", "output"))


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
