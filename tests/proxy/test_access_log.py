"""The access log's thread: whole lines, in order, by several processes, and nobody waits for it."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.proxy.config import AccessLogPlan
from service.proxy.gauges import access_log
from service.proxy.gauges.access_log import MOST_LINES, ONE_WRITE, AccessLog, check_writable
from tests.leash import Leashed
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.proxy.processes import Running
from tests.proxy.standing import StartBackend, eventually


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_lines_are_written_in_order_while_the_process_runs_and_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "access.jsonl"
    log = AccessLog(AccessLogPlan(to=str(path)))
    for number in range(1000):
        log.write({"number": number})
    await eventually(lambda: path.exists() and len(path.read_text().splitlines()) == 1000)
    log.write({"number": 1000})
    await log.close()
    assert [line["number"] for line in read(path)] == list(range(1001))
    assert log.dropped == 0
    assert path.stat().st_mode & 0o007 == 0, "who may not read the directory's owner's files reads no log"


async def test_whatever_a_client_sent_stays_one_line_of_ascii(tmp_path: Path) -> None:
    path = tmp_path / "access.jsonl"
    log = AccessLog(AccessLogPlan(to=str(path)))
    hostile = 'a\nb\r\x1b[31mred\x00\x85\u2028\ud800"}'
    log.write({"request_id": hostile})
    await log.close()
    text = path.read_bytes()
    assert text.count(b"\n") == 1
    assert all(byte in range(0x20, 0x7F) for byte in text[:-1])
    assert read(path)[0]["request_id"] == hostile


async def test_a_full_buffer_drops_and_counts(tmp_path: Path) -> None:
    path = tmp_path / "access.jsonl"
    log = AccessLog(None)  # without a plan no thread writes
    for number in range(MOST_LINES + 7):
        log.write({"number": number})
    assert log.dropped == 7
    log.adopt(AccessLogPlan(to=str(path)))
    await log.close()
    assert len(read(path)) == MOST_LINES


async def test_a_line_too_long_for_one_write_is_dropped_and_counted(tmp_path: Path) -> None:
    log = AccessLog(AccessLogPlan(to=str(tmp_path / "access.jsonl")))
    log.write({"model": "m" * ONE_WRITE})
    log.write({"model": "m"})
    await log.close()
    assert read(tmp_path / "access.jsonl") == [{"model": "m"}]
    assert log.dropped == 1


async def test_it_follows_a_file_that_was_moved_away(tmp_path: Path) -> None:
    path = tmp_path / "access.jsonl"
    plan = AccessLogPlan(to=str(path))
    log = AccessLog(plan)
    log.write({"number": 1})
    await eventually(lambda: path.exists() and path.read_text() != "")
    path.rename(tmp_path / "access.jsonl.1")
    log.adopt(plan)
    await eventually(path.exists)
    log.write({"number": 2})
    await log.close()
    assert read(tmp_path / "access.jsonl.1") == [{"number": 1}]
    assert read(path) == [{"number": 2}]


async def test_it_goes_by_another_plan_and_may_be_switched_off_and_on(tmp_path: Path) -> None:
    log = AccessLog(None)
    assert not log.is_on
    log.adopt(None)
    assert not log.is_on
    log.adopt(AccessLogPlan(to=str(tmp_path / "one"), sample=1.0))
    assert log.is_on
    assert log.draw(failed=False) == "sample"
    log.write({"number": 1})
    await eventually(lambda: (tmp_path / "one").exists() and (tmp_path / "one").read_text() != "")
    log.adopt(AccessLogPlan(to=str(tmp_path / "two"), sample=0.0, errors=0.0))
    assert log.draw(failed=True) is None
    await eventually((tmp_path / "two").exists)
    log.write({"number": 2})
    log.adopt(None)
    assert not log.is_on
    await log.close()
    assert (read(tmp_path / "one"), read(tmp_path / "two")) == ([{"number": 1}], [{"number": 2}])


async def test_a_log_that_is_off_has_no_thread_and_ends_at_once() -> None:
    threads = threading.active_count()
    log = AccessLog(None)
    assert threading.active_count() == threads
    await log.close()


async def test_the_old_file_goes_on_while_the_new_one_cannot_be_opened(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "logs"
    directory.mkdir()
    plan = AccessLogPlan(to=str(directory / "access.jsonl"))
    log = AccessLog(plan)
    log.write({"number": 1})
    await eventually(lambda: (directory / "access.jsonl").exists())
    moved = tmp_path / "away"
    directory.rename(moved)
    log.adopt(plan)
    await eventually(lambda: "is not written" in caplog.text)
    log.write({"number": 2})
    await log.close()
    assert read(moved / "access.jsonl") == [{"number": 1}, {"number": 2}]
    assert "No such file or directory" in caplog.text


async def test_a_file_that_cannot_be_opened_at_first_is_tried_again(tmp_path: Path) -> None:
    directory = tmp_path / "logs"
    log = AccessLog(AccessLogPlan(to=str(directory / "access.jsonl")))
    log.write({"number": 1})
    await eventually(lambda: log.dropped == 1)
    directory.mkdir()
    await eventually(lambda: (directory / "access.jsonl").exists())
    log.write({"number": 2})
    await log.close()
    assert read(directory / "access.jsonl") == [{"number": 2}]


async def test_a_pipe_that_nobody_reads_any_more_costs_lines_only() -> None:
    out, into = os.pipe()
    os.close(out)
    log = AccessLog(AccessLogPlan(to=f"/dev/fd/{into}"))
    for number in range(10):
        log.write({"number": number})
    await eventually(lambda: log.dropped == 10)
    await log.close()
    os.close(into)


async def test_a_pipe_whose_reader_sleeps_neither_stops_the_loop_nor_the_end() -> None:
    out, into = os.pipe()
    log = AccessLog(AccessLogPlan(to=f"/dev/fd/{into}"))
    line = {"filler": "x" * 1000}
    longest = 0.0
    for _ in range(MOST_LINES + 500):
        before = time.monotonic()
        log.write(line)
        longest = max(longest, time.monotonic() - before)
    assert log.dropped > 0
    assert longest < 10
    before = time.monotonic()
    await log.close()
    assert time.monotonic() - before < access_log.PATIENCE_AT_END + 20
    os.close(into)
    while os.read(out, 1 << 20):  # lets the thread finish
        pass
    os.close(out)


WRITER = """
import asyncio, sys
from service.proxy.gauges.access_log import AccessLog
from service.proxy.config import AccessLogPlan

async def main():
    log = AccessLog(AccessLogPlan(to=sys.argv[1]))
    for number in range(2000):
        log.write({"writer": sys.argv[2], "number": number, "filler": "x" * (number % 700)})
        if number % 50 == 0:
            await asyncio.sleep(0.005)
    await log.close()
    sys.exit(1 if log.dropped else 0)

asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_several_processes_append_whole_lines_to_one_target(kind: str, tmp_path: Path) -> None:
    out, into = os.pipe()
    target = str(tmp_path / "access.jsonl") if kind == "file" else "stdout"
    writers = [
        Leashed(
            [sys.executable, "-c", WRITER, target, name],
            stdout=into if kind == "pipe" else subprocess.DEVNULL,
        )
        for name in "abc"
    ]
    os.close(into)
    with os.fdopen(out, "rb") as reader:
        text = reader.read()
    assert [writer.wait(PATIENCE) for writer in writers] == [0, 0, 0]
    if kind == "file":
        text = (tmp_path / "access.jsonl").read_bytes()
    lines = [json.loads(line) for line in text.splitlines()]
    for name in "abc":
        assert [line["number"] for line in lines if line["writer"] == name] == list(range(2000))


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """As a full disk does: what goes beyond that many bytes is not written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_disk_that_fills_up_tears_one_line_and_recovers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "access.jsonl"
    log = AccessLog(AccessLogPlan(to=str(path)))
    with files_end_at(250):
        for number in range(10):
            log.write({"number": number, "filler": "x" * 75})  # 100 bytes
        await eventually(lambda: log.dropped > 0)
        log.write({"number": "lost"})
        await eventually(lambda: log.dropped == 9)
    log.write({"number": "after"})
    await log.close()
    whole, torn = [], 0
    for line in path.read_text().splitlines():
        try:
            whole.append(json.loads(line)["number"])
        except ValueError:
            torn += 1
    assert (whole, torn) == ([0, 1, "after"], 1)
    assert "File too large" in caplog.text


def test_what_is_drawn() -> None:
    always = AccessLog(AccessLogPlan(to="stderr", sample=1.0, errors=1.0))
    assert (always.draw(failed=True), always.draw(failed=False)) == ("error", "sample")
    errors = AccessLog(AccessLogPlan(to="stderr", sample=0.0, errors=1.0))
    assert (errors.draw(failed=True), errors.draw(failed=False)) == ("error", None)
    alike = AccessLog(AccessLogPlan(to="stderr", sample=1.0, errors=0.0))
    assert alike.draw(failed=True) == "sample", "a failure is a request like others"
    some = AccessLog(AccessLogPlan(to="stderr", sample=0.2, errors=0.0))
    drawn = sum(some.draw(failed=False) is not None for _ in range(10_000))
    assert 1700 < drawn < 2300  # seven standard deviations


def test_a_log_that_cannot_be_written_is_told_before_anybody_is_served(tmp_path: Path) -> None:
    check_writable(None)
    check_writable(AccessLogPlan(to="stderr"))
    check_writable(AccessLogPlan(to=str(tmp_path / "access.jsonl")))
    os.mkfifo(tmp_path / "fifo")
    check_writable(AccessLogPlan(to=str(tmp_path / "fifo")))
    for to, why in ((tmp_path / "no" / "where", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(OSError, match=why) as caught:
            check_writable(AccessLogPlan(to=str(to)))
        assert "proxy.access_log.to" in str(caught.value)


async def test_processes_share_a_file_and_follow_it_when_it_is_rotated(
    tmp_path: Path, start_backend: StartBackend
) -> None:
    backend = await start_backend()
    ladder_of_one = [{"tier": "t0", "backends": [backend.url]}, {"tier": "t1", "backends": [backend.url]}]
    port, admin = free_port(), free_port()
    configuration = {
        "models": {"m": {"ladder": ladder_of_one}},
        "proxy": {
            "listen": f"127.0.0.1:{port}",
            "admin": f"127.0.0.1:{admin}",
            "processes": 2,
            "access_log": {"to": "access.jsonl", "sample": "100%"},
        },
        "store": {"redis": "redis://127.0.0.1:1/0"},  # nobody is there, and nobody is missed
    }
    (tmp_path / "tiergate.yaml").write_text(json.dumps(configuration))
    command = [sys.executable, "-m", "service.cli", "proxy", "-c", str(tmp_path / "tiergate.yaml")]
    process = Leashed(command, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        assert b"serving" in process.stderr.readline()
        proxy = Running(process, port, f"http://127.0.0.1:{admin}")
        await proxy.until("/readyz", 200)
        for _ in range(30):
            assert await proxy.ask() == 200
        path = tmp_path / "access.jsonl"
        await eventually(lambda: len(path.read_text().splitlines()) == 30)
        path.rename(tmp_path / "access.jsonl.1")
        process.send_signal(signal.SIGHUP)
        await eventually(path.exists)
        asked = 30
        async with asyncio.timeout(PATIENCE):
            while len({line["instance"] for line in read(path)}) < 2:
                assert await proxy.ask() == 200
                asked += 1
        await eventually(lambda: len(read(path)) + len(read(tmp_path / "access.jsonl.1")) == asked)
        assert await asyncio.to_thread(proxy.stop) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(PATIENCE)
        process.stderr.close()
    lines = [*read(path), *read(tmp_path / "access.jsonl.1")]
    assert len({line["request_id"] for line in lines}) == asked
    assert len({line["instance"] for line in lines}) == 2
