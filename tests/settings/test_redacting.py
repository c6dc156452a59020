"""What is kept, as configured; masks of other packages, and such as cannot be used."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.redaction import mask_personal
from service.settings import Settings, load
from service.settings.redacting import GROUP, MaskUnusable, known_masks, mask_of
from workers.app import create_app

Loaded = Callable[..., Settings]
_numbers = itertools.count()


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installs a package of masks where this process finds it."""

    def install(text: str, **masks: str) -> None:
        name = f"masks_of_a_test_{next(_numbers)}"  # modules of one name are loaded once in a process
        site = tmp_path / name
        (site / f"{name}-1.0.dist-info").mkdir(parents=True)
        (site / f"{name}.py").write_text(text)
        (site / f"{name}-1.0.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        )
        lines = [f"[{GROUP}]", *(f"{key} = {name}:{value}" for key, value in masks.items())]
        (site / f"{name}-1.0.dist-info" / "entry_points.txt").write_text("\n".join(lines) + "\n")
        monkeypatch.syspath_prepend(str(site))

    return install


def test_what_is_kept_without_a_word_is_little_and_masked(minimal: dict[str, Any], loaded: Loaded) -> None:
    corpus = loaded(minimal).corpus
    assert (corpus.plan.per_stratum, corpus.plan.retention_seconds) == (20, 28 * 86_400)
    assert (corpus.plan.max_bytes, corpus.answers, corpus.use) == (256 * 1024 * 1024, 0.05, "traffic")
    assert mask_of(corpus.redact) is mask_personal
    assert corpus.resend_seconds == 300


def test_every_key_is_read(minimal: dict[str, Any], loaded: Loaded) -> None:
    given = {
        "per_stratum": 0,
        "retention": "7d",
        "max_bytes": "1MiB",
        "answers": "0%",
        "redact": "off",
        "resend_window": "none",
        "use": "azure",
    }
    corpus = loaded({**minimal, "corpus": given}).corpus
    assert (corpus.plan.per_stratum, corpus.plan.retention_seconds) == (0, 7 * 86_400)
    assert (corpus.plan.max_bytes, corpus.answers, corpus.use) == (1024 * 1024, 0.0, "azure")
    assert (corpus.redact, corpus.resend_seconds) == ("off", 0.0)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"redact": "personel"}, "no mask has this name; there are personal, off"),
        ({"retention": "10s"}, "at least 1m"),
        ({"per_stratum": -1}, "greater than or equal to 0"),
        ({"answers": "150%"}, "between 0% and 100%"),
        ({"max_bytes": "0B"}, "greater than 0"),
    ],
)
def test_what_cannot_be_is_an_error_with_its_place(
    minimal: dict[str, Any], problems: Callable[..., list[str]], given: dict[str, Any], told: str
) -> None:
    [problem] = problems({**minimal, "corpus": given})
    assert f"corpus.{next(iter(given))}" in problem
    assert told in problem


def test_a_mask_of_another_package_is_found_by_its_name(
    offered: Callable[..., None], minimal: dict[str, Any], loaded: Loaded
) -> None:
    offered("def shout(text): return text.upper()", shout="shout")
    assert known_masks() == ("personal", "off", "shout")
    assert loaded({**minimal, "corpus": {"redact": "shout"}}).corpus.redact == "shout"
    assert mask_of("shout")("a") == "A"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("mask = 7", "TypeError"),
        ("def mask(text): return None", "it gave NoneType for text"),
        ("def mask(text): raise KeyError('x')", "KeyError"),
        ("other = 1", "AttributeError"),
    ],
)
def test_a_mask_that_cannot_be_used_names_its_package_and_why(
    offered: Callable[..., None], text: str, told: str
) -> None:
    offered(text, broken="mask")
    with pytest.raises(MaskUnusable, match=r"of the package 'masks_of_a_test_\d+' cannot be used") as caught:
        mask_of("broken")
    assert told in str(caught.value)


def test_a_name_that_is_gone_or_taken_twice_is_told(offered: Callable[..., None]) -> None:
    with pytest.raises(MaskUnusable, match="there are personal, off"):
        mask_of("gone")
    offered("def mask(text): return text", twice="mask")
    offered("def mask(text): return text", twice="mask")
    with pytest.raises(MaskUnusable, match="2 packages offer one"):
        mask_of("twice")


def test_a_worker_does_not_start_with_a_mask_that_cannot_be_used(
    offered: Callable[..., None], write: Callable[[object], Path], minimal: dict[str, Any]
) -> None:
    offered("def mask(text): return 7", broken="mask")
    settings = load(write({**minimal, "corpus": {"redact": "broken"}}), {})
    with pytest.raises(SystemExit, match="the mask 'broken'"):
        create_app(settings, {})
