"""What `tiergate drill` refuses before it starts anything; `tests/drill` has the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from service.cli import app
from tests.launch.conftest import models_page, serving


def configuration(directory: Path, baseline: str, *, models: str = "qwen") -> Path:
    path = directory / "tiergate.yaml"
    path.write_text(
        "models:\n"
        + "".join(
            f"  {name}:\n    ladder:\n      - {{tier: bf16, {baseline}}}\n"
            "      - {tier: w8a8, backends: ['http://127.0.0.1:9']}\n"
            for name in models.split()
        )
    )
    return path


def refused(path: Path, *options: str) -> tuple[int, str]:
    ran = CliRunner().invoke(app, ["drill", *options, "-c", str(path)])
    return ran.exit_code, ran.stderr


SERVING = "backends: ['http://127.0.0.1:9']"


def test_backends_that_serve_clients_are_left_alone_unless_allowed(tmp_path: Path, free_port: int) -> None:
    status, told = refused(configuration(tmp_path, SERVING))
    assert status == 3
    assert "the baseline 'bf16' of 'qwen' has no shadow backends" in told
    assert "--on-serving" in told
    away = configuration(tmp_path, f"backends: ['http://127.0.0.1:{free_port}']")
    status, told = refused(away, "--on-serving")
    assert status == 3
    assert "no backend of the baseline can be asked" in told
    assert "cannot be reached" in told


def test_a_backend_that_serves_another_model_is_named(tmp_path: Path) -> None:
    with serving({"/health": (200, ""), "/v1/models": (200, models_page("llama"))}) as url:
        path = configuration(tmp_path, f"backends: ['http://127.0.0.1:9'], shadow: ['{url}']")
        status, told = refused(path)
    assert status == 3
    assert f"{url} serves llama, not qwen" in told


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--defect", "jsom"), "--defect jsom: one of json, recall, refusal, all"),
        (("--pairs", "0"), "pairs must be 1 to 240, got 0"),
        (("--share", "2"), "share must be in (0, 1], got 2"),
        (("--seconds", "nan"), "the longest time must be more than 0 s, got nan s"),
        (("qven",), "no model 'qven'; did you mean `qwen`?"),
    ],
)
def test_a_wrong_wish_is_a_usage_error(tmp_path: Path, options: tuple[str, ...], complaint: str) -> None:
    status, told = refused(configuration(tmp_path, SERVING), *options)
    assert (status, complaint in told) == (2, True), told


def test_of_several_models_one_must_be_named(tmp_path: Path) -> None:
    status, told = refused(configuration(tmp_path, SERVING, models="qwen llama"))
    assert (status, "say which model: qwen, llama" in told) == (2, True)


def test_the_help_teaches_the_acts_and_the_exit_statuses() -> None:
    told = CliRunner().invoke(app, ["drill", "--help"], env={"COLUMNS": "120"}).stdout
    for words in ("healthy:", "damaged:", "swapped:", "crossed:", "Exit status: 0", "--on-serving"):
        assert words in told
