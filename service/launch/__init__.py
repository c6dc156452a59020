"""Everything on one machine: the parts of Tiergate, and whatever else has to run beside them, as children.

Nouns: a `Part` (a command, when it is ready, how long it may take to stop) and the `Supervisor` that keeps
parts running for the length of a `with` block:

    with stop_signals() as told, Supervisor(parts, log_dir, environ=os.environ, say=print, hurry=told.hurry):
        ...                                   # parts start in order, each awaited until it is ready

A `StartFailed` says what is wrong and what to do. Crashed parts start again with growing pauses. At the end
parts stop in the opposite order. Nobody stays behind: each child has its own process group; the kernel and
a watchdog end them when the supervisor is killed (`tether`, `watchdog`). `owning` is the lock of a state
directory.

Imported only by `service.cli` and `service.demo`.
"""

from service.launch.lock import StateDirInUse, owning
from service.launch.part import Part, Ready, at_once, http_ok, listens, logs
from service.launch.signals import StopSignals, ToldToStop, stop_signals
from service.launch.supervisor import StartFailed, Supervisor

__all__ = [
    "Part",
    "Ready",
    "StartFailed",
    "StateDirInUse",
    "StopSignals",
    "Supervisor",
    "ToldToStop",
    "at_once",
    "http_ok",
    "listens",
    "logs",
    "owning",
    "stop_signals",
]
