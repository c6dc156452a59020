"""Paths by which engines are administered, and which `proxy.forward_paths` does not mean by a prefix. Pure.

Engines put them beside the ones that clients use, some below `/v1/`: vLLM `/v1/load_lora_adapter`,
`/v1/admin/drain`, `/v1/requests/ID/cancel` and `/v1/server/kv-cache`; llama.cpp
`/v1/chat/completions/control`, and `/v1/streams`, which shows everybody's answers; SGLang `/v1/loads`;
TabbyAPI `/v1/model/load`, `/v1/lora/load`, `/v1/template/switch`, `/v1/sampling/override`, `/v1/download`;
text-generation-webui `/v1/internal/model/load`. Whoever reaches the proxy may use models, not change, stop
or watch what serves them. Words decide and no list of paths: the next engine's names will be like these.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

ANYWHERE = frozenset(
    b"adapter adapters admin control flush internal load loads lora loras offload override overrides "
    b"reload shutdown unload weight weights".split()
)
"""Words, between `-`, `_` and `.`, that mark a path wherever they stand in it."""
FIRST = frozenset(
    b"abort cache collective config configure debug download drain freeze kill metrics model pause profile "
    b"quit release requests reset restart restore resume sampling save scale server set sleep sleeping slots "
    b"start stop stream streams swap switch template templates terminate tools update wake".split()
)
"""Words that do so right below the prefix; further down they may be the name of something of a client's."""
_SEPARATORS = re.compile(rb"[-_.]")


def is_administrative(rest: bytes) -> bool:
    """Whether what follows a forwarded prefix is an engine's own business."""
    meant = unquote_to_bytes(rest).lower().replace(b"\\", b"/")
    segments = [segment.partition(b";")[0] for segment in meant.split(b"/") if segment]
    if not segments:
        return False
    if not FIRST.isdisjoint(_SEPARATORS.split(segments[0])):
        return True
    return any(not ANYWHERE.isdisjoint(_SEPARATORS.split(segment)) for segment in segments)
