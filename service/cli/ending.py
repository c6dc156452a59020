"""How a command ends that cannot say what it found: with a status that no command uses for a finding.

A pipe that nobody reads any more, a full disk, a defect of ours: Python's own end of each is 1, which would
tell a pipeline `reject`.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

NOT_TOLD = 3
"""Exit status: also that of a question which had no answer."""
DEFECT = "This is a defect of Tiergate, and no answer: please report it with the lines above."


def ended(command: Callable[[], object]) -> None:
    """Run the command line; what keeps it from telling what it found ends with `NOT_TOLD`.

    What the encoding of a terminal lacks (a model may be called anything) is spelled out.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        command()
    except SystemExit as end:
        # Whoever prints for us may make an end of 1 of a closed pipe; what it was stands behind it.
        if not _is_closed_pipe(end.__context__):
            raise
        _give_up()
    except OSError as error:
        with suppress(OSError):
            print(f"{error.filename or 'the output cannot be written'}: {error.strerror}", file=sys.stderr)
        _give_up()
    except Exception:
        traceback.print_exc()
        with suppress(OSError):
            print(DEFECT, file=sys.stderr)
        _give_up()
    finally:
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            _drop_output()


def _is_closed_pipe(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno == errno.EPIPE


def _give_up() -> NoReturn:
    _drop_output()
    raise SystemExit(NOT_TOLD) from None


def _drop_output() -> None:
    """What is still in the buffers; Python would try to write it at its end, and fail in words of its own."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
