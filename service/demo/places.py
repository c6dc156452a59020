"""Where a run lives: ports that are free, a directory of its own, an environment without foreign settings."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from service.demo.configuration import STATE_DIR
from service.launch import PortUnusable, StateDirInUse, free_port, owning
from service.launch.ports import check_free
from service.settings.units import Listen

PORTS = {"proxy": 8080, "api": 8081, "admin": 8082}
"""The documented ones, of `tiergate up` as well."""


def listen_addresses(say: Callable[[str], None], ports: Mapping[str, int] = PORTS) -> dict[str, str]:
    """The documented ports where they are free, others where they are not."""
    chosen: dict[str, str] = {}
    for name, port in ports.items():
        listen = Listen(host="127.0.0.1", port=port)
        try:
            check_free(listen, name)
        except PortUnusable:
            listen = Listen(host="127.0.0.1", port=free_port())
            say(f"port {port} is in use; the {name} listens on {listen} instead")
        chosen[name] = str(listen)
    return chosen


def own_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without TIERGATE_* settings: they are meant for another installation."""
    return {name: value for name, value in environ.items() if not name.startswith("TIERGATE_")}


@contextmanager
def run_directory(place: Path) -> Iterator[Path]:
    """A fresh directory for one run: evidence starts anew. It goes at the end, unless the run failed."""
    place.mkdir(parents=True, exist_ok=True)
    _clear(place)
    # Locked before it has a name that `_clear` of another run looks for.
    fresh = Path(tempfile.mkdtemp(prefix="new-", dir=place))
    with owning(fresh):
        directory = fresh.rename(place / fresh.name.replace("new-", "run-", 1))
        try:
            yield directory
        except Exception:
            # Its logs say what went wrong, so it stays; the next run clears it away.
            raise
        except BaseException:
            shutil.rmtree(directory)
            raise
        shutil.rmtree(directory)


def _clear(place: Path) -> None:
    """Remove what runs that are over have left: nobody holds their locks, not even a watchdog."""
    for left in place.glob("run-*"):
        with suppress(StateDirInUse, OSError), owning(left), owning(left / STATE_DIR):
            shutil.rmtree(left)
