"""The four generating dialects, read and written. PURE.

Enters: bytes of a request or an answer, with the headers that say how to read them. Leaves: a `Request`
(`requests`), an `Answer` or the `Fault` it amounts to (`answers`), and the bytes of a replay (`replay`) or of
a recall probe (`probe`; `planting` writes facts into its context). `conversation` names what a request
belongs to, `prompt_blocks` what prompts begin with in common, `batch` reads and writes OpenAI's batch files.
One module a dialect (`chat`, `completions`, `responses`, `messages`) over `sse`, `content_encoding`,
`formats`, `tool_calls`, `content` and `thinking`.
Reading an answer never raises; reading a request raises `NotARequest`. Imported by the edges and the roots;
imports `evaluators.exchange`, `evaluators.strict_json` and `evaluators.needles`.
"""

from service.wire.answers import parse_answer
from service.wire.batch import BatchLine, read_batch, write_batch_line
from service.wire.conversation import explicit_conversation, has_remote_media, is_stateful, message_chain
from service.wire.planting import plant
from service.wire.probe import probe_request
from service.wire.replay import replay_body, write_body
from service.wire.requests import endpoint_of, parse_request, read_body
from service.wire.shapes import NotARequest

__all__ = [
    "BatchLine",
    "NotARequest",
    "endpoint_of",
    "explicit_conversation",
    "has_remote_media",
    "is_stateful",
    "message_chain",
    "parse_answer",
    "parse_request",
    "plant",
    "probe_request",
    "read_batch",
    "read_body",
    "replay_body",
    "write_batch_line",
    "write_body",
]
