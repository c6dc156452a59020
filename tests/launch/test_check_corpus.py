"""Masks that cannot be used, and texts that are kept without one, are told before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from service.launch.check import Level
from service.launch.check_corpus import corpus_lines
from service.settings import Settings, load

Configured = Callable[[str], Settings]


@pytest.fixture
def configured(tmp_path: Path) -> Configured:
    def configure(corpus: str) -> Settings:
        path = tmp_path / "tiergate.yaml"
        path.write_text(
            f"models: {{m: {{ladder: [{{tier: bf16, backends: ['http://a:1']}}]}}}}\ncorpus: {corpus}\n"
        )
        return load(path, {})

    return configure


def test_nothing_is_said_of_what_is_masked_or_not_kept(configured: Configured) -> None:
    assert corpus_lines(configured("{}")) == []
    assert corpus_lines(configured("{redact: off, per_stratum: 0, answers: 0%}")) == []


def test_what_is_kept_without_a_mask_is_warned_of(configured: Configured) -> None:
    [line] = corpus_lines(configured("{redact: off, retention: 7d}"))
    assert (line.level, line.subject) == (Level.WARN, "corpus.redact")
    assert "for 7 days holds whatever clients sent" in line.text


def test_a_mask_that_cannot_be_used_fails(configured: Configured) -> None:
    settings = configured("{}")
    gone = replace(settings, corpus=replace(settings.corpus, redact="gone"))
    [line] = corpus_lines(gone)
    assert line.level is Level.FAIL
    assert "there are personal, off" in line.text
