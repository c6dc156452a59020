"""What a body may cost everybody else: it is looked at between two events of their streams.

Processor time, with a bound several times what was measured; what these bodies cost once was seconds.
"""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest
import zstandard

from service.fleet import Backend, Ladder, Limits, Tier
from service.proxy.config import Mirroring, ProxyConfig
from service.proxy.entry.door import Admission, Door
from service.proxy.gauges.meters import Ledger
from service.proxy.http.requests import Inbound, RequestReader
from tests.patience import here

MOST_SECONDS = 0.2
SIZE = 16_000_000

GUARDED = b'{"model":"guarded","max_tokens":5,"messages":['
NAMED = b'{"model":"m","metadata":{"a":1},"messages":['
TEXT = b"".join(b"Fox %d, quick and brown, jumps. " % number for number in range(SIZE // 38))

BODIES = {
    "countless numbers under a guard": (GUARDED + b"1," * (SIZE // 2) + b"1]}", b""),
    "as many numbers as are read": (GUARDED + b"1," * 240_000 + b"1]}", b""),
    "countless keys": (GUARDED + b"{" + b'"k":1,' * (SIZE // 6) + b'"k":1}]}', b""),
    "as many keys as are read": (GUARDED + b"{" + b'"k":1,' * 80_000 + b'"k":1}]}', b""),
    "countless numbers, perhaps a conversation": (NAMED + b"1," * (SIZE // 2) + b"1]}", b""),
    "countless short strings": (NAMED + b'"aaaaaaaaaa",' * (SIZE // 13) + b"1]}", b""),
    "quotes": (b'{"model":"m","x":' + b'"' * SIZE + b"}", b""),
    "quotes, packed": (gzip.compress(b'{"model":"m","x":' + b'"' * SIZE + b"}"), b"gzip"),
    "escapes": (b'{"model":"m","x":"\\u0061' + b"\\n" * (SIZE // 2) + b'"}', b""),
    "escapes on both sides": (
        b'{"a":"%b","model":"m","b":"%b"}' % (b"\\n" * 4_000_000, b"\\n" * 4_000_000),
        b"",
    ),
    "a bomb of zstd": (zstandard.compress(b'{"model":"m","x":"' + b"a" * 2 * SIZE + b'"}'), b"zstd"),
    "a bomb of gzip": (gzip.compress(b'{"model":"m","x":"' + b"a" * 2 * SIZE + b'"}'), b"gzip"),
    "gzip of another model": (
        gzip.compress(b'{"model":"m","x":"' + TEXT + b'"}'),
        b"gzip",
    ),
    "a long prompt": (b'{"model":"guarded","messages":[{"content":"' + TEXT[:3_000_000] + b'"}]}', b""),
    "a long prompt before its model": (b'{"messages":[{"content":"' + TEXT + b'"}],"model":"m"}', b""),
}


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Door:
    backends = (Backend(url="http://127.0.0.1:9"),)
    limits = Limits(max_prompt_tokens=1_000_000, max_output_tokens=100_000)
    ladders = {
        "m": Ladder(model="m", tiers=(Tier(name="t", backends=backends, model="called otherwise"),)),
        "guarded": Ladder(
            model="guarded", tiers=(Tier(name="t", backends=backends, model="guarded"),), limits=limits
        ),
    }
    config = ProxyConfig(
        ladders=ladders,
        mirroring=Mirroring(sample=1.0, salt=b"salt"),
        state_dir=Path(tmp_path_factory.mktemp("state")),
    )
    return Door(config, instance="i", ledger=Ledger())


def read(body: bytes, coding: bytes) -> Inbound:
    lines = b"Host: a\r\nContent-Length: %d\r\nContent-Encoding: %b\r\n\r\n" % (
        len(body),
        coding or b"identity",
    )
    reader = RequestReader(max_head=65536, max_body=64_000_000, conversation_header=b"x-conversation-id")
    reader.feed(b"POST /v1/chat/completions HTTP/1.1\r\n" + lines + body)
    [inbound] = reader.ready
    assert isinstance(inbound, Inbound)
    return inbound


@pytest.mark.parametrize("name", BODIES)
def test_no_body_holds_up_the_event_loop(name: str, door: Door) -> None:
    inbound = read(*BODIES[name])
    started = time.process_time()
    admitted = door.admit(inbound, split=lambda model: True)
    if isinstance(admitted, Admission):
        admitted.body_for(admitted.ladder.baseline)
    took = time.process_time() - started
    assert took < here(MOST_SECONDS)


@pytest.mark.parametrize("name", ["a long prompt", "a long prompt before its model", "gzip of another model"])
def test_what_an_honest_client_sends_passes(name: str, door: Door) -> None:
    assert isinstance(door.admit(read(*BODIES[name]), split=lambda model: False), Admission)
