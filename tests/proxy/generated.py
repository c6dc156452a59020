"""HTTP messages made at random: well-formed ones, and what may be done to them on the way.

Everything is drawn from a `random.Random`, so that hypothesis (`strategies.randoms`), a seeded loop through
the real proxy and a coverage-guided fuzzer all draw from the same grammar.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

TEXTS = (
    b"{}",
    b'{"model":"m"}',
    b"",
    b"\xff\x00\r\n\r\n",
    "你好🌏".encode(),
    b"GET / HTTP/1.1\r\n\r\n",
    b"0\r\n\r\n",
)
_EXTRA = (
    b"X-A: b",
    b"x-lower:no space",
    b"X-Empty:",
    b"X-Tab:\ta\tb\t",
    b"X-Bytes: caf\xe9 \xe4\xbd\xa0",
    b"Cookie: a=1; b=2",
    b"Accept: */*",
    b"Connection: keep-alive",
    b"Connection: x-a, keep-alive",
    b"TE: trailers",
)
_TROUBLE = (
    b"\r",
    b"\n",
    b"\r\n",
    b"\r\n\r\n",
    b"\r\n ",
    b" ",
    b"\t",
    b":",
    b" :",
    b"\0",
    b"\x0b",
    b"\x7f",
    b"\x80",
    b"0",
    b"3",
    b"+",
    b"-",
    b"0x",
    b",",
    b";",
    b";a=b",
    b'"',
    b"_",
    b"#",
    b"//",
    b"%00",
    b"f" * 17,
    b"1" * 20,
    b"chunked, ",
    b", chunked",
    b"identity",
    b"Content-Length: 0\r\n",
    b"Content-Length: 3\r\n",
    b"Content-Length : 3\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip\r\n",
    b"Host: b\r\n",
    b"Connection: close\r\n",
    b"Upgrade: x\r\nConnection: upgrade\r\n",
    b"Expect: 100-continue\r\n",
    b"HTTP/1.0",
    b"HTTP/1.1",
    b"HTTP/1.1 102 Processing\r\n\r\n",
    b"HTTP/1.1 104 X\r\nContent-Length: 5\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nz",
    b"GET /v1/smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
    b"0\r\n\r\n",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A well-formed message and what it means."""

    wire: bytes
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    """Those that pass to the other side unchanged, values without the white space around them."""
    method: bytes = b""
    target: bytes = b""
    status: int = 0


def make_request(chance: Random, *, path: bytes | None = None, http10: bool | None = None) -> Made:
    """A request that every server must take."""
    method = chance.choice((b"POST", b"POST", b"PUT", b"PATCH", b"GET", b"DELETE", b"OPTIONS", b"HEAD"))
    target = path or chance.choice((b"/v1/x", b"/", b"/v1/chat/completions?a=b&c=%20", b"/v1/%E4%BD%A0"))
    if http10 is None:
        http10 = chance.random() < 0.1
    lines, passing = _extra(chance)
    lines.insert(
        chance.randrange(len(lines) + 1), b"Host: " + chance.choice((b"a", b"proxy:8080", b"[::1]:80"))
    )
    body = _body(chance) if method not in (b"GET", b"HEAD", b"OPTIONS") or chance.random() < 0.2 else b""
    framed = body
    if body and not http10 and chance.random() < 0.5:
        lines.append(chance.choice((b"Transfer-Encoding: chunked", b"transfer-encoding: Chunked")))
        framed = _chunked(chance, body)
    elif body or chance.random() < 0.5:
        lines.insert(chance.randrange(len(lines) + 1), b"Content-Length: %d" % len(body))
    version = b"HTTP/1.0" if http10 else b"HTTP/1.1"
    head = b"\r\n".join([b"%b %b %b" % (method, target, version), *lines, b"", b""])
    return Made(wire=head + framed, body=body, headers=passing, method=method, target=target)


def make_answer(chance: Random, *, delimited: bool = False) -> Made:
    """An answer that every client must take; `delimited`: not by the end of the connection."""
    status = chance.choice((200, 200, 200, 201, 204, 304, 400, 404, 429, 500, 503))
    reason = chance.choice((b" OK", b" As You Like It", b" ", b"", b" caf\xe9"))
    interims = b"".join(
        b"HTTP/1.1 %d X\r\nLink: a\r\n\r\n" % chance.choice((100, 102, 103))
        for _ in range(chance.choice((0, 0, 0, 1, 3)))
    )
    lines, passing = _extra(chance)
    body = b"" if status in (204, 304) else _body(chance)
    framed = body
    framing = chance.choice(("length", "chunks") if delimited else ("length", "chunks", "end"))
    if status in (204, 304):
        pass
    elif framing == "chunks":
        lines.append(b"Transfer-Encoding: chunked")
        framed = _chunked(chance, body)
    elif framing == "length":
        lines.insert(chance.randrange(len(lines) + 1), b"Content-Length: %d" % len(body))
    head = b"\r\n".join([b"HTTP/1.1 %d%b" % (status, reason), *lines, b"", b""])
    return Made(wire=interims + head + framed, body=body, headers=passing, status=status)


def distort(chance: Random, wire: bytes) -> bytes:
    """What a hostile or broken peer may make of a message; now and then nothing at all."""
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 5))):
        at = chance.randrange(len(wire) + 1)
        match chance.randrange(8):
            case 0:
                wire = wire[:at] + chance.choice(_TROUBLE) + wire[at:]
            case 1:
                wire = wire[:at] + wire[at + chance.randrange(1, 5) :]
            case 2 if wire:
                at = min(at, len(wire) - 1)
                wire = wire[:at] + bytes([wire[at] ^ (1 << chance.randrange(8))]) + wire[at + 1 :]
            case 3:
                end = min(len(wire), at + chance.randrange(1, 30))
                wire = wire[:end] + wire[at:end] + wire[end:]
            case 4:
                lines = wire.split(b"\r\n")
                one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
                lines[one], lines[other] = lines[other], lines[one]
                wire = b"\r\n".join(lines)
            case 5:
                lines = wire.split(b"\r\n")
                lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))
                wire = b"\r\n".join(lines)
            case 6:
                starts = [match.end() for match in re.finditer(b"\r\n", wire)]
                if starts:
                    at = chance.choice(starts)
                    wire = wire[:at] + chance.choice(_TROUBLE) + wire[at:]
            case _:
                wire = wire[:at] if chance.random() < 0.3 else wire
    return wire


def cuts_of(chance: Random, length: int) -> list[int]:
    """Where the network cuts bytes into segments; sometimes everywhere."""
    if length < 400 and chance.random() < 0.1:
        return list(range(1, length))
    return [chance.randrange(length + 1) for _ in range(chance.choice((0, 1, 1, 2, 6)))]


def _extra(chance: Random) -> tuple[list[bytes], tuple[tuple[bytes, bytes], ...]]:
    lines = chance.sample(_EXTRA, chance.randrange(4))
    dropped = {b"connection", b"te"} | ({b"x-a"} if b"Connection: x-a, keep-alive" in lines else set())
    pairs = [(name, value.strip(b" \t")) for name, _, value in (line.partition(b":") for line in lines)]
    return lines, tuple(pair for pair in pairs if pair[0].lower() not in dropped)


def _body(chance: Random) -> bytes:
    if chance.random() < 0.5:
        return chance.choice(TEXTS)
    return chance.randbytes(chance.choice((1, 5, 300, 5000)))


def _chunked(chance: Random, body: bytes) -> bytes:
    made, at = [], 0
    while at < len(body):
        size = chance.randrange(1, max(2, min(len(body), 2000)))
        part = body[at : at + size]
        spelled = chance.choice((b"%x", b"%X", b"00%x")) % len(part)
        made.append(spelled + chance.choice((b"", b"", b";a", b';a=b;c="d e"')) + b"\r\n" + part + b"\r\n")
        at += len(part)
    trailers = chance.choice((b"", b"", b"X-Trailer: 1\r\n", b"X-T:\r\nX-U: \xe9\r\n"))
    return b"".join(made) + chance.choice((b"0", b"000")) + b"\r\n" + trailers + b"\r\n"
