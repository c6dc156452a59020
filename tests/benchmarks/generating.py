"""Load generators, each a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.benchmarks.children import ROOT
from tests.benchmarks.rig import BESIDE, on_core
from tests.leash import Leashed


@contextmanager
def generating(
    kind: str, port: int, *, seconds: float, **options: float
) -> Iterator[Callable[[], dict[str, Any]]]:
    """A load generator on the core beside, killed at the end of the block; call what it yields for its word.

    That raises RuntimeError when it did not finish.
    """
    options["seconds"] = seconds
    words = [
        word for name, amount in options.items() for word in (f"--{name.replace('_', '-')}", str(amount))
    ]
    command = [*on_core(BESIDE), sys.executable, "-m", f"tests.benchmarks.{kind}", str(port), *words]

    def word() -> dict[str, Any]:
        found, trouble = running.communicate(timeout=seconds + 120)
        if running.returncode:
            raise RuntimeError(f"{kind} ended with {running.returncode}:\n{trouble[-2000:]}")
        return dict(json.loads(found))

    with Leashed(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Unbuffered, Python loses what a write to a full pipe did not take; a word may be megabytes long.
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    ) as running:
        try:
            yield word
        finally:
            running.kill()
