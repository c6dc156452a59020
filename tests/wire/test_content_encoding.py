"""Bodies behind a Content-Encoding, bounded."""

from __future__ import annotations

import gzip
import time
import zlib

import pytest
import zstandard

from service.wire.content_encoding import Undecodable, decode
from tests.patience import here

TEXT = "你好 world ".encode() * 5000


def raw_deflate(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", gzip.compress(TEXT)),
        ("x-gzip", gzip.compress(TEXT)),
        ("GZip", gzip.compress(TEXT)),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
        ("zstd", zstandard.compress(TEXT)),
        ("zstd, gzip", gzip.compress(zstandard.compress(TEXT))),
        (" gzip , identity ", gzip.compress(TEXT)),
        ("gzip", gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:]) + b"\0\0"),
        ("zstd", zstandard.compress(TEXT[:100]) + zstandard.compress(TEXT[100:])),
    ],
    ids=lambda value: value if isinstance(value, str) else "packed",  # some hold the time of packing
)
def test_every_coding_gives_back_the_bytes(encoding: str, packed: bytes) -> None:
    assert decode(packed, encoding) == TEXT


def test_brotli_and_unknown_codings_are_refused_by_name() -> None:
    with pytest.raises(Undecodable, match="'br' is not supported"):
        decode(b"x", "br")
    with pytest.raises(Undecodable, match="'snappy'"):
        decode(b"x", "gzip, snappy")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_bytes_that_are_not_of_their_coding_are_refused(encoding: str) -> None:
    with pytest.raises(Undecodable, match=encoding):
        decode(b"this is not compressed at all", encoding)


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [("gzip", gzip.compress(TEXT)), ("deflate", zlib.compress(TEXT)), ("zstd", zstandard.compress(TEXT))],
    ids=["gzip", "deflate", "zstd"],
)
def test_an_early_end_is_an_error_only_of_a_complete_body(encoding: str, packed: bytes) -> None:
    half = packed[: len(packed) // 2]
    with pytest.raises(Undecodable, match="ends early"):
        decode(half, encoding)
    assert TEXT.startswith(decode(half, encoding, complete=False))


def test_what_came_of_an_interrupted_gzip_stream_is_read() -> None:
    packer = zlib.compressobj(wbits=31)
    sent = packer.compress(b"data: a\n\n") + packer.flush(zlib.Z_SYNC_FLUSH)
    assert decode(sent, "gzip", complete=False) == b"data: a\n\n"


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(bytes(20_000_000))),
        ("deflate", zlib.compress(bytes(20_000_000))),
        ("zstd", zstandard.compress(bytes(20_000_000))),
        ("", bytes(2_000_000)),
    ],
)
def test_a_bomb_is_refused_at_the_limit(encoding: str, packed: bytes) -> None:
    with pytest.raises(Undecodable, match="more than 1000000 bytes"):
        decode(packed, encoding, limit=1_000_000)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_body_of_countless_empty_members_is_refused_in_no_time(coding: str) -> None:
    """What follows a member must not be copied once for each of them."""
    empty = gzip.compress(b"") if coding == "gzip" else zstandard.compress(b"")
    body = empty * (8_000_000 // len(empty))
    started = time.process_time()
    with pytest.raises(Undecodable, match="members"):
        decode(body, coding)
    took = time.process_time() - started
    assert took < here(0.5)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
@pytest.mark.parametrize("size", [0, 1, 200, 70_000])
def test_members_one_after_another_are_one_body(coding: str, size: int) -> None:
    pack = gzip.compress if coding == "gzip" else zstandard.compress
    parts = [bytes([number]) * size for number in range(20)]
    assert decode(b"".join(map(pack, parts)), coding) == b"".join(parts)


def test_padding_behind_gzip_is_passed_over() -> None:
    assert decode(gzip.compress(b"a") + b"\0" * 3_000_000 + gzip.compress(b"b") + b"\0", "gzip") == b"ab"
