"""Files that commands write: whole or not at all, so that a full disk costs nobody the file of before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import typer

from service.cli.configuration import fail


def write(path: Path, text: str, *, status: int = 1) -> None:
    """Write a file of text; where it cannot be, the command ends with that exit status."""
    with writing(path, status=status) as file:
        file.write(text)


@contextmanager
def writing(path: Path, *, status: int = 1, private: bool = False) -> Iterator[TextIO]:
    """A file of UTF-8 text that stands under its name when the block is over; where it cannot, as `write`.

    It keeps the permissions of the one that it replaces, unless it is `private`: then only its owner may read
    it. What is there and no file (a pipe, `/dev/stdout`) is written to as it is.
    """
    try:
        if path.exists() and not path.is_file():
            with path.open("w", encoding="utf-8") as file:
                yield file
            return
        target = path.resolve()  # what a link leads to is replaced, not the link
        fresh = target.with_name(f".{target.name}.{os.getpid()}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
        try:
            with open(descriptor, "w", encoding="utf-8") as file:
                if target.exists() and not private:
                    os.fchmod(file.fileno(), target.stat().st_mode & 0o7777)
                yield file
            fresh.replace(target)
        finally:
            with suppress(FileNotFoundError):
                fresh.unlink()
    except OSError as error:
        raise unwritten(path, error, status) from None


def unwritten(path: Path, error: OSError, status: int = 1) -> typer.Exit:
    """Says that a file cannot be written, and why; the caller raises what it returns."""
    return fail(f"{path} cannot be written: {error.strerror}", status)
