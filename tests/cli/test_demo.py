"""What `tiergate demo` refuses before it fetches anything; `tests/demo` has the rest."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from service.cli import app


def test_a_report_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = CliRunner().invoke(
        app,
        ["demo", "--quick", "--exit", "--report", str(tmp_path / "file" / "out")],
        env={"XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    assert refused.exit_code == 1
    assert f"{tmp_path}/file/out: Not a directory" in refused.stderr
    assert not (tmp_path / "cache").exists()
