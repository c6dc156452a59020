"""Models in the cache: made once, checked at every start, made again when they are not what they were."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

from service.demo.models import cache_dir, prepare
from service.demo.published import sha256_of
from service.demo.tiers import Scheme
from tests.demo.conftest import Index


def test_models_are_fetched_and_made_once(tmp_path: Path, index: Index) -> None:
    said: list[str] = []
    first = prepare([Scheme.F16, Scheme.Q8_0], tmp_path / "cache", said.append, source=index.source)
    assert [text.split()[0] for text in said] == ["fetching", "requantising"]
    assert {file.tensors for file in first.values()} == {"16 F16, 5 F32", "5 F32, 16 Q8_0"}
    for file in first.values():
        assert sha256_of(file.path) == file.sha256
    said.clear()
    assert prepare([Scheme.F16, Scheme.Q8_0], tmp_path / "cache", said.append, source=index.source) == first
    assert said == []


def test_a_further_scheme_needs_no_second_fetch(tmp_path: Path, index: Index) -> None:
    prepare([Scheme.F16], tmp_path / "cache", lambda _: None, source=index.source)
    said: list[str] = []
    prepare([Scheme.F16, Scheme.Q4_0], tmp_path / "cache", said.append, source=index.source)
    assert said == ["requantising Tiny to q4_0"]


def test_a_damaged_model_is_made_again(tmp_path: Path, index: Index) -> None:
    made = prepare([Scheme.Q8_0], tmp_path / "cache", lambda _: None, source=index.source)[Scheme.Q8_0]
    made.path.write_bytes(made.path.read_bytes()[:-1] + b"\0")
    again = prepare([Scheme.Q8_0], tmp_path / "cache", lambda _: None, source=index.source)[Scheme.Q8_0]
    assert again == made
    assert sha256_of(made.path) == made.sha256


def test_a_model_without_its_note_is_made_again(tmp_path: Path, index: Index) -> None:
    made = prepare([Scheme.Q8_0], tmp_path / "cache", lambda _: None, source=index.source)[Scheme.Q8_0]
    made.path.with_suffix(".json").write_text("{", encoding="utf-8")
    said: list[str] = []
    assert prepare([Scheme.Q8_0], tmp_path / "cache", said.append, source=index.source)[Scheme.Q8_0] == made
    assert said == ["requantising Tiny to q8_0"]


def test_nothing_unfinished_is_left_behind(tmp_path: Path, index: Index) -> None:
    prepare([Scheme.F16, Scheme.Q8_0], tmp_path / "cache", lambda _: None, source=index.source)
    left = {path.name for path in (tmp_path / "cache" / "models" / "Tiny").iterdir()}
    assert left == {"lock", "source.gguf", "f16.gguf", "f16.json", "q8_0.gguf", "q8_0.json"}


def test_a_second_demo_waits_for_the_first(tmp_path: Path, index: Index) -> None:
    place = tmp_path / "cache" / "models" / "Tiny"
    place.mkdir(parents=True)
    said: list[str] = []
    waits = threading.Event()

    def say(text: str) -> None:
        said.append(text)
        waits.set()

    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = threading.Thread(
            target=prepare, args=([Scheme.F16], tmp_path / "cache", say), kwargs={"source": index.source}
        )
        second.start()
        assert waits.wait(30)
        assert said == ["waiting for another demo that prepares the same models"]
        assert not (place / "f16.gguf").exists()
    second.join(60)
    assert (place / "f16.gguf").exists()


def test_the_cache_is_where_xdg_says(tmp_path: Path) -> None:
    assert cache_dir({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "tiergate"
    assert cache_dir({}) == Path.home() / ".cache" / "tiergate"
    assert cache_dir({"XDG_CACHE_HOME": "relative"}) == Path.home() / ".cache" / "tiergate"
