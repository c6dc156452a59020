"""What a load run sends: the corpus' requests as they are, but for what timing one answer needs.

Every request asks for a stream, also one whose client did not: without it nothing tells when the first token
came. Answers are the same either way, and so is their work. Chat and completions are asked for their usage at
the end of the stream; the other two dialects tell it unasked. One answer for one request: `n` and `best_of`
go, of several prompts the first stays, and `echo` would have the prompt come as tokens. What a replay must
not carry goes as well (`wire.replay`).
"""

from __future__ import annotations

from evaluators.exchange import Endpoint, Json, Request
from service.wire import write_body
from service.wire.replay import without_traces

_SEVERAL = ("n", "best_of", "echo")
_USAGE_LAST = frozenset({Endpoint.CHAT_COMPLETIONS, Endpoint.COMPLETIONS})
"""Dialects that tell usage in a stream only when asked."""


def load_body(request: Request, *, model: str) -> bytes:
    """The body for a tier whose backends call the model `model`."""
    body = {name: told for name, told in without_traces(request).items() if name not in _SEVERAL}
    body |= {"model": model, "stream": True}
    if request.endpoint in _USAGE_LAST:
        asked = body.get("stream_options")
        options = dict(asked) if isinstance(asked, dict) else {}
        # Usage in every event is work that the client's own request did not cost.
        options.pop("continuous_usage_stats", None)
        body["stream_options"] = {**options, "include_usage": True}
    if request.endpoint is Endpoint.COMPLETIONS:
        body["prompt"] = _first_prompt(body.get("prompt"))
    return write_body(body)


def _first_prompt(prompt: Json) -> Json:
    if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
        return prompt[0]
    return prompt
