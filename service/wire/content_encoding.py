"""Undoing `Content-Encoding`, with a bound on what comes out."""

from __future__ import annotations

import re
import zlib

import zstandard

MAX_DECODED = 64 * 1024 * 1024
"""Most bytes that one body may become; more is a bomb, or nothing we could judge."""

MOST_MEMBERS = 1000
"""gzip members or zstd frames, one after another, that one body may consist of."""

_PADDING = re.compile(rb"\0*+")
_ZLIB_STEP = 64 * 1024
"""Bytes fed to zlib at once: what follows a member is copied, that much at most."""
_ZLIB_WINDOWS = {"gzip": (31,), "deflate": (15, -15)}
"""zlib's window argument: gzip, and the two things that servers mean by deflate (RFC 9110, 8.4.1.2)."""


class Undecodable(ValueError):
    """The bytes are not what their Content-Encoding says, or are too many."""


_ZSTD_STEP = 256
"""Bytes fed to zstd at once: a block takes 4 bytes at least and gives 128 KiB at most, so 8 MiB a step."""


def decode(body: bytes, content_encoding: str, *, complete: bool = True, limit: int = MAX_DECODED) -> bytes:
    """The bytes behind every coding of a Content-Encoding header value, last one first.

    Of an interrupted body (`complete` false) whatever can be decoded.
    """
    codings = [name for part in content_encoding.split(",") if (name := part.strip().lower())]
    for name in reversed(codings):
        if name == "identity":
            continue
        name = name.removeprefix("x-")
        if name in _ZLIB_WINDOWS:
            body = _inflate(body, name, complete, limit)
        elif name == "zstd":
            body = _unpack_zstd(body, complete, limit)
        else:
            raise Undecodable(f"content-encoding {name!r} is not supported (gzip, deflate and zstd are)")
    if len(body) > limit:
        raise Undecodable(f"body of more than {limit} bytes")
    return body


def _inflate(body: bytes, name: str, complete: bool, limit: int) -> bytes:
    problems: list[str] = []
    for window in _ZLIB_WINDOWS[name]:
        try:
            return _inflate_members(body, window, complete, limit)
        except zlib.error as error:
            problems.append(str(error))
    raise Undecodable(f"not {name}: {problems[0]}")


def _inflate_members(body: bytes, window: int, complete: bool, limit: int) -> bytes:
    found = bytearray()
    at = members = 0
    while at < len(body):
        member = zlib.decompressobj(window)
        members += 1
        while not member.eof and at < len(body):
            part = body[at : at + _ZLIB_STEP]
            found += member.decompress(part, limit + 1 - len(found))
            at += len(part)
            if len(found) > limit:
                raise Undecodable(f"body decodes to more than {limit} bytes")
        if not member.eof:
            if complete:
                raise zlib.error("the compressed body ends early")
            return bytes(found)
        # gzip allows several members one after another; zero bytes behind the last are padding
        at = _after_padding(body, at - len(member.unused_data))
        _bound(members)
    return bytes(found)


def _unpack_zstd(body: bytes, complete: bool, limit: int) -> bytes:
    found = bytearray()
    at = frames = 0
    # 128 MiB of window: what `zstd` itself accepts by default
    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    while at < len(body):
        frame = decompressor.decompressobj()
        frames += 1
        try:
            while not frame.eof and at < len(body):
                part = body[at : at + _ZSTD_STEP]
                found += frame.decompress(part)
                at += len(part)
                if len(found) > limit:
                    raise Undecodable(f"body decodes to more than {limit} bytes")
        except zstandard.ZstdError as error:
            raise Undecodable(f"not zstd: {error}") from None
        if not frame.eof:
            if complete:
                raise Undecodable("not zstd: the compressed body ends early")
            return bytes(found)
        at -= len(frame.unused_data)
        _bound(frames)
    return bytes(found)


def _after_padding(body: bytes, at: int) -> int:
    padding = _PADDING.match(body, at)
    assert padding is not None
    return padding.end()


def _bound(members: int) -> None:
    """Each costs as much as a kilobyte, however empty it is."""
    if members > MOST_MEMBERS:
        raise Undecodable(f"body of more than {MOST_MEMBERS} compressed members")
