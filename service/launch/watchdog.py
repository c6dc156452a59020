"""`watchdog.py`: outlives a supervisor that was killed, and ends what it left behind.

Standard input tells it of process groups: `+PGID` started, `-PGID` gone. At its end (an orderly stop has
removed every group by then) it asks each group that is left to stop, last started first, and kills what
still runs after `GRACE` seconds. Files that the supervisor left open for it, such as the lock of the state
directory, stay open until then: nobody else starts on files that an orphan still writes. Run by path with
`-I -S`.
"""

import os
import signal
import sys
import time

GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL."""


def main() -> None:
    for told in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(told, signal.SIG_IGN)
    groups: list[int] = []
    for line in sys.stdin:
        group = int(line[1:])
        if line[0] == "+":
            groups.append(group)
        elif group in groups:
            groups.remove(group)
    for group in reversed(groups):
        send(group, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline and any(send(group, 0) for group in groups):
        time.sleep(0.05)
    for group in groups:
        send(group, signal.SIGKILL)


def send(group: int, signal_number: int) -> bool:
    """Whether the group was there to be told."""
    try:
        os.killpg(group, signal_number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    main()
