"""`tether.py PARENT COMMAND...`: become the command, and be told to stop by the kernel when the parent dies.

Run by path, outside the package, with `-I -S`: it must cost milliseconds. Linux only does what the kernel
offers (prctl(2) PR_SET_PDEATHSIG, kept across execve); elsewhere the watchdog alone ends the children of a
dead supervisor.
"""

import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        import ctypes  # absent from some builds of Python for other systems

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            # It died before the call above; no signal will come.
            sys.exit(1)
    # It means a reload to who takes it, and must not end a part that is still starting, or does not.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"cannot run {command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
