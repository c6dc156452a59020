"""What goes before what, when a command looks for the API."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.cli.whereabouts import DEFAULT_URL, whereabouts


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration in the working directory."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "tiergate.yaml"
    file.write_text("api: {listen: '127.0.0.1:18081'}\nstore: {state_dir: kept}\n")
    return file


def test_an_option_goes_before_the_environment_that_before_the_file_and_that_before_the_default(
    file: Path,
) -> None:
    environ = {"TIERGATE_API_LISTEN": "127.0.0.1:28081"}
    assert whereabouts(None, "http://a:1", environ).url == "http://a:1"
    assert whereabouts(None, None, environ).url == "http://127.0.0.1:28081"
    assert whereabouts(None, None, {}).url == "http://127.0.0.1:18081"
    file.unlink()
    assert whereabouts(None, None, {}).url == DEFAULT_URL


@pytest.mark.parametrize(
    ("listen", "url"), [("0.0.0.0:1", "http://127.0.0.1:1"), ("'[::]:1'", "http://[::1]:1")]
)
def test_an_api_on_every_address_is_asked_on_loopback(file: Path, listen: str, url: str) -> None:
    file.write_text(f"api: {{listen: {listen}}}\n")
    assert whereabouts(None, None, {}).url == url


def test_the_token_is_in_the_state_directory_beside_the_file(file: Path, tmp_path: Path) -> None:
    assert whereabouts(file, None, {}).token_file == tmp_path / "kept" / "token"
    assert whereabouts(file, None, {"TIERGATE_STATE_DIR": "/elsewhere"}).token_file == Path(
        "/elsewhere/token"
    )
    file.write_text("models: {}\n")
    assert whereabouts(file, None, {}).token_file == tmp_path / ".tiergate" / "token"
    assert whereabouts(file, None, {}).url == DEFAULT_URL


def test_a_broken_file_hides_no_url_and_a_missing_one_is_told(file: Path, tmp_path: Path) -> None:
    file.write_text("api: [")
    assert whereabouts(None, "http://a:1", {}).url == "http://a:1"
    with pytest.raises(ValueError, match="say where the API is with --url"):
        whereabouts(None, None, {})
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        whereabouts(tmp_path / "none.yaml", None, {})
