"""Everything on one machine: the parts of Tiergate, and whatever else has to run beside them, as children.

Nouns: a `Part` (a command, when it is ready, how long it may take to stop) and the `Supervisor` that keeps
parts running for the length of a `with` block:

    with stop_signals() as told, Supervisor(parts, log_dir, environ=os.environ, say=print, hurry=told.hurry):
        ...                                   # parts start in order, awaited until they are ready

A `StartFailed` says what is wrong and what to do. Crashed parts start again with growing pauses. At the end
parts stop in the opposite order. Nobody stays behind: each child has its own process group; the kernel and
a watchdog end them when the supervisor is killed (`tether`, `watchdog`). `owning` is the lock of a state
directory.

`everything` is all of Tiergate as a `with` block, with other parts (backends, say) around it:

    with stop_signals() as told, everything(settings, os.environ, say=print, hurry=told.hurry) as running:
        running.supervisor.wait()        # or drive it: running.proxy_url, .api_url, .token_file

`check` says in one line each what is wrong with backends (`ask` asks them, `engines` reads their answers)
and, in `check_stores`, with Redis and the database.

Imported only by `service.cli`, `service.demo` and `service.drill`.
"""

from service.launch.aside import Aside
from service.launch.check_stores import RedisUnusable
from service.launch.everything import Running, everything
from service.launch.lock import StateDirInUse, owning
from service.launch.part import Part, Ready, at_once, http_ok, listens, logs
from service.launch.ports import PortUnusable, free_port
from service.launch.signals import StopSignals, ToldToStop, stop_signals
from service.launch.supervisor import StartFailed, Supervisor

__all__ = [
    "Aside",
    "Part",
    "PortUnusable",
    "Ready",
    "RedisUnusable",
    "Running",
    "StartFailed",
    "StateDirInUse",
    "StopSignals",
    "Supervisor",
    "ToldToStop",
    "at_once",
    "everything",
    "free_port",
    "http_ok",
    "listens",
    "logs",
    "owning",
    "stop_signals",
]
