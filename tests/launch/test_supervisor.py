"""Real children: order, restarts, failures to start, and that nobody is left behind."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from service.launch import Part, StartFailed, Supervisor, http_ok, logs
from service.launch.lock import owning
from service.launch.supervisor import LOOK
from tests.launch.conftest import eventually, runs
from tests.leash import Leashed
from tests.patience import PATIENCE


def shell(name: str, script: str, **how: object) -> Part:
    return Part(name=name, command=("sh", "-c", script), **how)  # type: ignore[arg-type]


def supervising(parts: Sequence[Part], directory: Path, said: list[str]) -> Supervisor:
    return Supervisor(parts, directory / "logs", environ=os.environ, say=said.append)


def noting(name: str, notes: Path) -> Part:
    """Notes its start, and its end when it is told to stop."""
    script = f"echo start-{name} >> {notes}; trap 'echo stop-{name} >> {notes}; exit 0' TERM; echo up; "
    return shell(name, script + "while :; do sleep 0.1; done", ready=logs("up"))


def test_parts_start_in_order_and_stop_in_the_opposite_order(tmp_path: Path, said: list[str]) -> None:
    notes = tmp_path / "notes"
    with supervising(
        [noting("a", notes), noting("b", notes), noting("c", notes)], tmp_path, said
    ) as supervisor:
        assert sorted(supervisor.pids) == ["a", "b", "c"]
        pids = list(supervisor.pids.values())
    assert notes.read_text().split() == ["start-a", "start-b", "start-c", "stop-c", "stop-b", "stop-a"]
    assert not any(runs(pid) for pid in pids)


def test_what_follows_a_stop_is_done_while_the_parts_before_still_run(
    tmp_path: Path, said: list[str]
) -> None:
    seen: list[bool] = []
    first = shell("first", "echo up; sleep 60", ready=logs("up"))
    second = shell("second", "echo up; sleep 60", after_stop=lambda: seen.extend(map(runs, pids)))
    with supervising([first, second], tmp_path, said) as supervisor:
        pids = [supervisor.pids["first"], supervisor.pids["second"]]
    assert seen == [True, False]


def test_a_part_starts_only_when_the_one_before_is_ready(tmp_path: Path, said: list[str]) -> None:
    notes = tmp_path / "notes"
    slow = shell("slow", f"sleep 0.7; echo ready-slow >> {notes}; echo up; sleep 60", ready=logs("up"))
    with supervising([slow, noting("next", notes)], tmp_path, said):
        assert notes.read_text().split() == ["ready-slow", "start-next"]


def test_parts_that_need_not_be_awaited_start_together_and_are_ready_before_the_block(
    tmp_path: Path, said: list[str]
) -> None:
    notes = tmp_path / "notes"
    slow = shell("slow", "sleep 1; echo up; sleep 60", ready=logs("up"), awaited=False)
    quick = shell("quick", f"echo started >> {notes}; echo up; sleep 60", ready=logs("up"), awaited=False)
    with supervising([slow, quick], tmp_path, said):
        assert said == ["quick is ready", "slow is ready"]


def test_what_a_part_prints_goes_to_its_own_log(tmp_path: Path, said: list[str]) -> None:
    part = shell("talker", "echo out; echo err >&2; echo up; sleep 60", ready=logs("up"))
    with supervising([part], tmp_path, said):
        assert (tmp_path / "logs" / "talker.log").read_text() == "out\nerr\nup\n"


def test_words_of_an_earlier_run_in_the_log_make_nobody_ready(tmp_path: Path, said: list[str]) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "late.log").write_text("up\n")
    with (
        pytest.raises(StartFailed, match="after"),
        supervising([shell("late", "sleep 60", ready=logs("up"), ready_seconds=0.5)], tmp_path, said),
    ):
        pass


def test_a_part_has_the_environment_it_was_given(tmp_path: Path, said: list[str]) -> None:
    part = shell("env", 'echo "<$GREETING>"; sleep 60', env={"GREETING": "hi"}, ready=logs("<hi>"))
    with supervising([part], tmp_path, said):
        pass


def test_a_part_that_ends_before_it_is_ready_fails_the_start_with_its_last_words(
    tmp_path: Path, said: list[str]
) -> None:
    first = shell("first", f"echo $$ > {tmp_path / 'pid'}; echo up; sleep 60", ready=logs("up"))
    broken = shell("broken", "echo no key found >&2; exit 3", ready=logs("up"), advice="Make a key.")
    supervisor = supervising([first, broken], tmp_path, said)
    with pytest.raises(StartFailed) as caught:
        supervisor.__enter__()
    text = str(caught.value)
    assert "broken did not start: it ended with exit status 3" in text
    assert "no key found" in text
    assert str(tmp_path / "logs" / "broken.log") in text
    assert text.endswith("Make a key.")
    assert "stopping first" in said
    assert not runs(int((tmp_path / "pid").read_text()))


def test_a_part_that_never_becomes_ready_fails_the_start_and_says_what_was_awaited(
    tmp_path: Path, said: list[str]
) -> None:
    part = shell("mute", "sleep 60", ready=http_ok("http://127.0.0.1:1/readyz"), ready_seconds=0.6)
    with (
        pytest.raises(StartFailed, match=r"after \d s still GET http://127.0.0.1:1/readyz"),
        supervising([part], tmp_path, said),
    ):
        pass


def test_a_command_that_does_not_exist_fails_the_start(tmp_path: Path, said: list[str]) -> None:
    part = Part(name="ghost", command=("no-such-program",), ready=logs("up"))
    with (
        pytest.raises(StartFailed, match="cannot run no-such-program: No such file"),
        supervising([part], tmp_path, said),
    ):
        pass


def test_whoever_does_not_listen_stops_neither_restarts_nor_the_end(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    part = shell("part", f"echo started >> {notes}; echo up; sleep 60", ready=logs("up"))
    listens = threading.Event()

    def say(text: str) -> None:
        listens.wait()

    with Supervisor([part], tmp_path / "logs", environ=os.environ, say=say) as supervisor:
        first = supervisor.pids["part"]
        os.kill(first, signal.SIGKILL)
        assert eventually(lambda: notes.read_text().split() == ["started"] * 2)
        second = supervisor.pids["part"]
    assert not runs(first)
    assert not runs(second)
    listens.set()


def test_a_crashed_part_starts_again_and_says_how_it_ended(tmp_path: Path, said: list[str]) -> None:
    part = shell("crasher", "echo up; sleep 60", ready=logs("up"))
    with supervising([part], tmp_path, said) as supervisor:
        before = supervisor.pids["crasher"]
        os.kill(before, signal.SIGKILL)
        assert eventually(lambda: supervisor.pids.get("crasher", before) != before)
        assert eventually(lambda: "crasher is ready again" in said)
        assert runs(supervisor.pids["crasher"])
    assert any("crasher was ended by SIGKILL; it starts again in 0.5 s" in each for each in said)


def test_a_part_that_crashes_again_and_again_is_given_longer_pauses(tmp_path: Path, said: list[str]) -> None:
    with supervising([shell("flapping", "exit 1")], tmp_path, said):
        assert eventually(lambda: any("again in 2 s" in each for each in said))
    pauses = [each.split("again in ")[1].split(" s")[0] for each in said if "again in" in each]
    assert pauses[:3] == ["0.5", "1", "2"]


def test_what_a_crashed_part_leaves_behind_ends_before_it_starts_again(
    tmp_path: Path, said: list[str]
) -> None:
    pids = tmp_path / "pids"
    part = shell("parent", f"sleep 300 & echo $! >> {pids}; echo up; wait", ready=logs("up"))
    with supervising([part], tmp_path, said) as supervisor:
        os.kill(supervisor.pids["parent"], signal.SIGKILL)
        assert eventually(lambda: len(pids.read_text().split()) == 2)
        first, second = map(int, pids.read_text().split())
        assert not runs(first)
        assert runs(second)
    assert eventually(lambda: not runs(second))


def test_a_part_that_does_not_stop_is_killed_with_its_own_children(tmp_path: Path, said: list[str]) -> None:
    pids = tmp_path / "pids"
    script = f"trap '' TERM; sleep 300 & echo $! $$ >> {pids}; echo up; while :; do sleep 0.2; done"
    with supervising([shell("stubborn", script, ready=logs("up"), stop_seconds=0.5)], tmp_path, said):
        pass
    assert any("stubborn did not stop by itself and was killed" in each for each in said)
    assert eventually(lambda: not any(runs(int(pid)) for pid in pids.read_text().split()))


def test_a_long_log_is_moved_aside_under_the_running_part(tmp_path: Path, said: list[str]) -> None:
    script = "echo up; head -c 17000000 /dev/zero; echo; echo more; sleep 60"
    with supervising([shell("chatty", script, ready=logs("up"))], tmp_path, said):
        log = tmp_path / "logs" / "chatty.log"
        assert eventually(lambda: log.with_suffix(".log.1").exists() and log.stat().st_size < 10_000)


def test_a_log_that_is_taken_away_ends_nobody(tmp_path: Path, said: list[str]) -> None:
    part = shell("steady", "trap 'exit 3' USR1; echo up; while :; do sleep 0.1; done", ready=logs("up"))
    with supervising([part, shell("other", "sleep 60")], tmp_path, said) as supervisor:
        before = supervisor.pids
        shutil.rmtree(tmp_path / "logs")
        looked = time.monotonic()
        assert eventually(lambda: time.monotonic() - looked > 3 * LOOK)
        assert supervisor.pids == before
        assert all(map(runs, before.values()))
        # Nor does what crashes without its log: it has a new one.
        os.kill(before["steady"], signal.SIGUSR1)
        assert eventually(lambda: "steady is ready again" in said)
        assert (tmp_path / "logs" / "steady.log").read_text() == "up\n"
        assert runs(before["other"])


def test_what_cannot_be_started_again_is_tried_again_and_ends_nobody(tmp_path: Path, said: list[str]) -> None:
    crash = tmp_path / "crash"
    script = f"echo up; while [ ! -e {crash} ]; do sleep 0.1; done; rm {crash}; exit 1"
    part = shell("crashing", script, ready=logs("up"))
    with supervising([part, shell("other", "sleep 60")], tmp_path, said) as supervisor:
        other = supervisor.pids["other"]
        # Root may write anywhere, but a file is no folder for anybody.
        (tmp_path / "logs").rename(tmp_path / "away")
        (tmp_path / "logs").write_text("")
        crash.touch()
        assert eventually(lambda: any("crashing could not be started" in line for line in said))
        assert runs(other)
        (tmp_path / "logs").unlink()
        assert eventually(lambda: "crashing is ready again" in said)


def test_a_long_log_with_no_room_for_an_older_one_is_cut(tmp_path: Path, said: list[str]) -> None:
    script = "echo up; head -c 17000000 /dev/zero | tr '\\0' x; echo more; sleep 60"
    with supervising([shell("talker", script, ready=logs("up"))], tmp_path, said) as supervisor:
        log = tmp_path / "logs" / "talker.log"
        log.with_suffix(".log.1").mkdir(exist_ok=True)
        assert eventually(lambda: log.stat().st_size < 10_000)
        assert runs(supervisor.pids["talker"])


def test_an_exception_in_the_block_stops_every_part(tmp_path: Path, said: list[str]) -> None:
    pids: list[int] = []

    def fail() -> None:
        with supervising([shell("x", "echo up; sleep 60", ready=logs("up"))], tmp_path, said) as supervisor:
            pids.append(supervisor.pids["x"])
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not runs(pids[0])


def test_a_listener_that_is_gone_and_a_failing_last_act_keep_nobody_running(tmp_path: Path) -> None:
    def say(text: str) -> None:
        raise BrokenPipeError

    def last_act() -> None:
        raise RuntimeError("no such luck")

    first = shell("first", "echo up; sleep 60", ready=logs("up"))
    second = shell("second", "echo up; sleep 60", ready=logs("up"), after_stop=last_act)
    with Supervisor([first, second], tmp_path / "logs", environ=os.environ, say=say) as supervisor:
        pids = list(supervisor.pids.values())
    assert len(pids) == 2
    assert not any(runs(pid) for pid in pids)


def test_two_parts_of_one_name_are_refused(tmp_path: Path, said: list[str]) -> None:
    with pytest.raises(ValueError, match="two parts have one name"):
        supervising([shell("x", "true"), shell("x", "true")], tmp_path, said)


SCRIPT = """
import os, sys
from pathlib import Path
from service.launch import Part, Supervisor, ToldToStop, logs, owning, stop_signals

directory = Path(sys.argv[1])
family = "sleep 300 & echo $! $$ >> {pids}; echo up; wait".format(pids=directory / "pids")
deaf = "trap '' TERM; sleep 300 & echo $! $$ >> {pids}; echo up; while :; do sleep 0.2; done".format(
    pids=directory / "pids"
)
parts = [
    Part(name="family", command=("sh", "-c", family), ready=logs("up")),
    Part(name="deaf", command=("sh", "-c", deaf), ready=logs("up"), stop_seconds=float(sys.argv[2])),
]
try:
    with stop_signals() as told, owning(directory / "state") as lock, Supervisor(
        parts, directory / "logs", environ=os.environ, say=lambda text: print(text, flush=True),
        hurry=told.hurry, keep_open=(lock,)
    ) as supervisor:
        print("all up", flush=True)
        supervisor.wait()
except ToldToStop:
    print("all stopped", flush=True)
"""


def running_script(directory: Path, *, stop_seconds: float) -> subprocess.Popen[str]:
    child = Leashed(
        [sys.executable, "-c", SCRIPT, str(directory), str(stop_seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert child.stdout is not None
    for line in child.stdout:
        if line == "all up\n":
            return child
    raise AssertionError("the supervisor did not come up")


def family(directory: Path) -> list[int]:
    return [int(pid) for pid in (directory / "pids").read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_signal_leaves_no_process_and_no_lock(tmp_path: Path, number: signal.Signals) -> None:
    with running_script(tmp_path, stop_seconds=0.5) as child:
        child.send_signal(number)
        told, _ = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, told
    assert told.endswith("all stopped\n")
    assert len(family(tmp_path)) == 4
    assert not any(runs(pid) for pid in family(tmp_path))
    with owning(tmp_path / "state"):
        pass


def test_a_second_signal_does_not_wait_for_who_does_not_stop(tmp_path: Path) -> None:
    with running_script(tmp_path, stop_seconds=600) as child:
        child.send_signal(signal.SIGINT)
        assert child.stdout is not None
        assert "stopping" in child.stdout.readline()
        time.sleep(2)
        assert child.poll() is None
        child.send_signal(signal.SIGINT)
        told, _ = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, told
    assert not any(runs(pid) for pid in family(tmp_path))


@pytest.mark.parametrize("attempt", range(3))
def test_two_signals_at_once_stop_it_in_order(tmp_path: Path, attempt: int) -> None:
    with running_script(tmp_path, stop_seconds=1.0) as child:
        child.send_signal(signal.SIGINT)
        child.send_signal(signal.SIGTERM)
        told, _ = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, told
    assert told.endswith("all stopped\n")
    assert not any(runs(pid) for pid in family(tmp_path))


def test_a_signal_that_another_thread_was_handed_stops_it_too(tmp_path: Path) -> None:
    with running_script(tmp_path, stop_seconds=0.5) as child:
        others = [int(each.name) for each in Path(f"/proc/{child.pid}/task").iterdir()]
        thread = next(each for each in others if each != child.pid)
        tgkill = {"x86_64": 234, "aarch64": 131}[os.uname().machine]
        ctypes.CDLL(None).syscall(tgkill, child.pid, thread, signal.SIGTERM)
        told, _ = child.communicate(timeout=PATIENCE)
    assert told.endswith("all stopped\n")


def test_a_killed_supervisor_leaves_no_orphan_and_its_state_is_free_when_they_are_gone(
    tmp_path: Path,
) -> None:
    with running_script(tmp_path, stop_seconds=600) as child:
        pids = family(tmp_path)
        assert all(runs(pid) for pid in pids)
        child.kill()
        child.communicate()
    with owning(tmp_path / "state"):
        assert eventually(lambda: not any(runs(pid) for pid in pids), seconds=20)
