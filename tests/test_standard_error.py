"""Standard error that nobody waits for."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from service.standard_error import MOST_BYTES, PATIENCE_AT_END, StandardError
from tests.leash import Leashed
from tests.patience import PATIENCE

SMALLEST_PIPE = 4096


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, SMALLEST_PIPE)
    yield reading, writing
    for end in (reading, writing):
        os.close(end)


def read_until(reading: int, end: bytes) -> bytes:
    """Everything up to and with `end`, as its reader gets it."""
    got = b""
    while not got.endswith(end):
        got += os.read(reading, 65536)
    return got


def test_whole_lines_come_out_in_their_order(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    said = StandardError(writing)
    print("one", "and", "more", file=said)
    said.write("a trace\n  of several\nlines\n")
    said.write("begun, ")
    said.write("and ended: \N{EURO SIGN} \udcff\n")
    assert said.settle(PATIENCE)
    expected = "one and more\na trace\n  of several\nlines\nbegun, and ended: € \\udcff\n"
    assert os.read(reading, 65536).decode() == expected
    assert said.dropped == 0
    said.end()


def test_a_line_that_is_not_complete_comes_out_when_it_is_flushed(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    said = StandardError(writing)
    print("a question: ", end="", file=said, flush=True)
    assert said.settle(PATIENCE)
    assert os.read(reading, 65536) == b"a question: "
    said.end()


def test_whoever_writes_to_a_full_pipe_goes_on_and_what_is_lost_is_counted_and_told(
    pipe: tuple[int, int],
) -> None:
    reading, writing = pipe
    said = StandardError(writing)
    line = "x" * 999 + "\n"
    for _ in range(2 * MOST_BYTES // len(line)):
        said.write(line)
    dropped = said.dropped
    assert 0 < dropped < 2 * MOST_BYTES // len(line)
    # What is read makes room, and the next line says what was lost before it.
    reader = threading.Thread(target=lambda: taken.append(read_until(reading, b"there again\n")))
    taken: list[bytes] = []
    reader.start()
    assert said.settle(PATIENCE)
    said.write("there again\n")
    reader.join(PATIENCE)
    assert said.dropped == dropped, "there was room"
    assert taken[0].count(b"x" * 999 + b"\n") == 2 * MOST_BYTES // len(line) - dropped
    told = re.findall(rb"\n\((\d+) lines? (?:was|were) dropped here: nobody read them in time\)", taken[0])
    assert sum(map(int, told)) == dropped, "where each was lost"
    assert taken[0].endswith(b" in time)\nthere again\n")
    said.end()


def test_a_pipe_that_others_made_non_blocking_loses_nothing_that_is_read_in_time(
    pipe: tuple[int, int],
) -> None:
    reading, writing = pipe
    os.set_blocking(writing, False)
    said = StandardError(writing)
    for number in range(2000):
        print("line", number, file=said)
    assert not said.settle(0.1)
    assert read_until(reading, b"line 1999\n") == b"".join(b"line %d\n" % number for number in range(2000))
    said.end()


def test_what_cannot_be_written_is_counted() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    said = StandardError(writing)
    said.write("two\nlines\n")
    assert said.settle(PATIENCE)
    assert said.dropped == 2
    said.end()
    os.close(writing)


def test_many_threads_do_not_tear_each_others_lines(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    said = StandardError(writing)

    def write(name: str) -> None:
        for _ in range(200):
            said.write(f"{name * 50}\n")

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    got = b""
    while got.count(b"\n") < 800:
        got += os.read(reading, 65536)
    for thread in threads:
        thread.join()
    assert {len(line) for line in got.splitlines()} == {50}
    said.end()


def run(script: str, stderr: int) -> subprocess.Popen[bytes]:
    begin = "import logging, sys, warnings\nfrom service.standard_error import take_over\ntake_over()\n"
    return Leashed([sys.executable, "-c", begin + script], stderr=stderr)


def test_everything_that_is_written_before_the_end_comes_out() -> None:
    script = """
import threading
logging.basicConfig(stream=sys.stderr)
logging.error("logged")
warnings.warn("warned")
thread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()
class Lost:
    def __del__(self): raise ValueError("unraisable")
Lost()
print("printed", file=sys.stderr)
raise RuntimeError("the last word")
"""
    process = run(script, subprocess.PIPE)
    assert process.stderr is not None
    with process.stderr:
        text = process.stderr.read().decode()
    assert process.wait(10) == 1
    for word in ("ERROR:root:logged", "warned", "ZeroDivisionError", "unraisable", "printed"):
        assert word in text
    assert text.endswith("RuntimeError: the last word\n")


def test_the_end_of_a_process_waits_for_a_blocked_pipe_a_little_and_no_longer(pipe: tuple[int, int]) -> None:
    _, writing = pipe
    process = run("print('x' * 100_000, file=sys.stderr); 1 / 0", writing)
    assert process.wait(PATIENCE_AT_END + 20) == 1
