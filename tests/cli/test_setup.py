"""`init`, `check`, `schema` and `token` as a person at a shell meets them."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from service.cli import app
from service.cli.sections import SECTIONS
from tests.launch.answering import reading, thinking
from tests.launch.conftest import models_page, serving
from tests.ports import free_port

Tiergate = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def tiergate(tmp_path: Path) -> Tiergate:
    """Runs the command in a directory of its own, with no TIERGATE_ variable but these."""

    def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TIERGATE_")}
        return subprocess.run(
            [sys.executable, "-m", "service.cli", *arguments],
            cwd=tmp_path,
            env={**clean, "NO_COLOR": "1", **environ},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def configuration(directory: Path, url: str, spare: str = "http://b:1", *, more: str = "") -> None:
    (directory / "tiergate.yaml").write_text(
        "models:\n  qwen:\n    ladder:\n"
        f"      - {{tier: bf16, backends: ['{url}'], shadow: ['{spare}']}}\n"
        f"      - {{tier: w8a8, backends: ['{spare}']}}\n"
        f"policy: {{gates: {{slo: off, money: off}}}}\n{more}"
    )


def test_init_writes_a_file_that_check_accepts_and_says_what_comes_next(
    tiergate: Tiergate, tmp_path: Path
) -> None:
    made = tiergate("init")
    assert made.returncode == 0
    assert "tiergate check -c tiergate.yaml" in made.stdout
    checked = tiergate("check", "--offline")
    assert checked.returncode == 0, checked.stderr
    assert (tmp_path / "tiergate.yaml").read_text().startswith("# Tiergate.")


def test_init_replaces_a_file_only_when_told_to(tiergate: Tiergate, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("precious")
    refused = tiergate("init", "mine.yaml")
    assert (refused.returncode, "--force" in refused.stderr) == (1, True)
    assert (tmp_path / "mine.yaml").read_text() == "precious"
    assert tiergate("init", "mine.yaml", "--force").returncode == 0
    assert (tmp_path / "mine.yaml").read_text() != "precious"


def test_init_where_nothing_can_be_written_says_so(tiergate: Tiergate) -> None:
    refused = tiergate("init", "no/such/directory.yaml")
    assert (refused.returncode, "cannot be written" in refused.stderr) == (1, True)
    folder = tiergate("init", ".", "--force")
    assert (folder.returncode, folder.stderr) == (
        1,
        ". is a directory; name a file in it, such as tiergate.yaml\n",
    )


def test_check_has_one_line_for_each_thing_and_succeeds_when_all_is_well(
    tiergate: Tiergate, tmp_path: Path
) -> None:
    pages = {"/health": (200, ""), "/v1/models": (200, models_page("qwen"))}
    with serving(pages) as url, serving(pages, post=reading) as spare:
        configuration(tmp_path, url, spare)
        checked = tiergate("check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    *lines, summary = checked.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["ok"] * 7
    assert summary.endswith("0 failed, 0 warnings, 7 ok")


@pytest.mark.parametrize(
    ("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_check_has_colours_where_a_terminal_wants_them(
    tmp_path: Path, more: dict[str, str], coloured: bool
) -> None:
    (tmp_path / "tiergate.yaml").write_text(
        "models: {qwen: {ladder: [{tier: a, backends: ['http://a:1']}]}}\n"
    )
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("TIERGATE_", "NO_COLOR"))
    }
    terminal, ours = pty.openpty()
    try:
        subprocess.run(
            [sys.executable, "-m", "service.cli", "check", "--offline"],
            cwd=tmp_path,
            env={**clean, "TERM": "xterm", **more},
            stdout=ours,
            check=True,
        )
        printed = os.read(terminal, 65536)
    finally:
        os.close(ours)
        os.close(terminal)
    assert printed.startswith(b"\x1b[33mwarn\x1b[0m  qwen" if coloured else b"warn  qwen"), printed


def test_check_fails_for_a_baseline_that_cannot_answer_what_it_will_be_asked(
    tiergate: Tiergate, tmp_path: Path
) -> None:
    pages = {"/health": (200, ""), "/v1/models": (200, models_page("qwen"))}
    with serving(pages) as url, serving(pages, post=thinking) as spare:
        configuration(tmp_path, url, spare)
        checked = tiergate("check")
    assert checked.returncode == 1
    assert "answers 0 of 10 recall questions within 128 tokens" in checked.stdout


def test_check_fails_for_a_dead_backend_and_names_it(tiergate: Tiergate, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    configuration(tmp_path, url)
    checked = tiergate("check")
    assert checked.returncode == 1
    assert f"fail  qwen/bf16 {url}: cannot be reached" in checked.stdout


def test_a_wrong_configuration_lists_everything_on_standard_error(tiergate: Tiergate, tmp_path: Path) -> None:
    configuration(tmp_path, "http://a:1", more="mirorr: {}\nproxy: {listten: x}\n")
    checked = tiergate("check")
    assert checked.returncode == 2
    assert "did you mean `mirror`?" in checked.stderr
    assert "did you mean `listen`?" in checked.stderr
    assert "Traceback" not in checked.stderr


def test_without_a_configuration_every_command_says_how_to_get_one(tiergate: Tiergate) -> None:
    for command in (["check"], ["up"], ["token", "list"], ["proxy"], ["api"]):
        refused = tiergate(*command)
        assert refused.returncode == 2, command
        assert "tiergate init" in refused.stderr, command


def test_the_schema_is_json_on_standard_output_or_in_a_file(tiergate: Tiergate, tmp_path: Path) -> None:
    shown = tiergate("schema")
    assert json.loads(shown.stdout)["title"] == "tiergate.yaml"
    assert tiergate("schema", "-o", "schema.json").returncode == 0
    assert json.loads((tmp_path / "schema.json").read_text()) == json.loads(shown.stdout)


def test_a_token_is_shown_once_listed_without_its_secret_and_revoked_by_name(
    tiergate: Tiergate, tmp_path: Path
) -> None:
    configuration(tmp_path, "http://a:1")
    made = tiergate("token", "new", "pipeline", "--scope", "read", "--scope", "approve", "--days", "90")
    assert made.returncode == 0, made.stderr
    secret = made.stdout.strip()
    assert re.fullmatch(r"tg_\w+_\S{40,}", secret)
    listed = tiergate("token", "list").stdout
    assert re.fullmatch(r"pipeline\tapprove,read\tsince .* UTC\tuntil .* UTC\tall models\n", listed)
    assert secret not in listed
    assert not any(secret.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert tiergate("token", "revoke", "pipeline").returncode == 0
    none = tiergate("token", "list")
    assert (none.returncode, none.stdout) == (0, "")
    assert "no token is in force" in none.stderr


def test_a_token_is_made_for_some_models_and_rotated(tiergate: Tiergate, tmp_path: Path) -> None:
    ladder = "{ladder: [{tier: bf16, backends: ['http://a:1']}]}"
    (tmp_path / "tiergate.yaml").write_text(f"models: {{a: {ladder}, b: {ladder}}}\n")
    stranger = tiergate("token", "new", "ci", "--scope", "read", "--model", "c")
    assert stranger.returncode == 2
    assert "no model is called 'c'; did you mean 'a'?" in stranger.stderr
    made = tiergate("token", "new", "ci", "--scope", "read", "--model", "b", "--model", "a")
    rotated = tiergate("token", "rotate", "ci", "--grace-hours", "24", "--days", "90")
    assert rotated.returncode == 0, rotated.stderr
    assert re.fullmatch(r"tg_\w+_\S{40,}\n", rotated.stdout)
    assert rotated.stdout != made.stdout
    assert re.fullmatch(r"ci\tread\tsince .* UTC\tuntil .* UTC\ta,b\n", tiergate("token", "list").stdout)
    for arguments, words in (
        (("rotate", "nobody"), "no token in force is named 'nobody'; there are: ci"),
        (("rotate", "ci", "--grace-hours", "1000"), "good for 0 to"),
        (("rotate", "ci", "--days", "-1"), "expire"),
    ):
        refused = tiergate("token", *arguments)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert words in refused.stderr


def test_looking_makes_nothing(tiergate: Tiergate, tmp_path: Path) -> None:
    configuration(tmp_path, "http://a:1")
    for arguments in (("check", "--offline"), ("token", "list"), ("token", "revoke", "nobody")):
        looked = tiergate(*arguments)
        assert ("there is no database" in looked.stderr) == (arguments[0] == "token"), looked.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["tiergate.yaml"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["token", "new", "x", "--scope", "root"], "unknown scopes ['root']"),
        (["token", "new", "x", "--scope", "read", "--days", "-1"], "expires later than now"),
        (["token", "new", "x", "--scope", "read", "--days", "nan"], "expires later than now"),
        (["token", "new", "x", "--scope", "read", "--days", "1e300"], "within a hundred years"),
        (["token", "rotate", "somebody", "--days", "inf"], "within a hundred years"),
        (["token", "rotate", "somebody", "--grace-hours", "nan"], "0 to 720 hours"),
        (["token", "revoke", "nobody"], "no token in force is named 'nobody'"),
    ],
)
def test_a_token_command_that_cannot_be_meant_says_why(
    tiergate: Tiergate, tmp_path: Path, arguments: list[str], message: str
) -> None:
    configuration(tmp_path, "http://a:1")
    assert tiergate("token", "new", "somebody", "--scope", "read").returncode == 0
    refused = tiergate(*arguments)
    assert refused.returncode == 1
    assert message in refused.stderr


def test_a_token_for_a_corrupt_database_says_what_to_do(tiergate: Tiergate, tmp_path: Path) -> None:
    configuration(tmp_path, "http://a:1")
    (tmp_path / ".tiergate").mkdir()
    (tmp_path / ".tiergate" / "tiergate.db").write_bytes(b"no database" * 1000)
    refused = tiergate("token", "list")
    assert (refused.returncode, "move it away" in refused.stderr) == (1, True)


def test_help_lists_every_command_and_loads_nothing_slow(tiergate: Tiergate) -> None:
    shown = tiergate("--help").stdout
    listed = [name for names in SECTIONS.values() for name in names]
    assert sorted(listed) == sorted(get_command(app).commands)  # type: ignore[attr-defined]
    for name in listed:
        assert re.search(rf"^  {name} ", shown, re.MULTILINE), name
    assert "..." not in shown.partition("To begin")[2]
    slow = "scipy", "numpy", "sqlalchemy", "celery", "fastapi", "pydantic"
    code = f"import service.cli, sys; print(sorted(set({slow}) & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"


def test_every_option_says_what_it_is_for() -> None:
    def walk(command: Any, path: str) -> Iterator[str]:
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, f"{path} {name}")
        for parameter in command.params:
            if not parameter.help and not getattr(parameter, "hidden", False):
                yield f"{path} {parameter.name}"
        if not command.help:
            yield path

    assert list(walk(get_command(app), "tiergate")) == []


def test_a_configuration_is_read_without_what_a_proxy_has_no_use_for() -> None:
    slow = "scipy", "numpy", "sqlalchemy", "celery", "fastapi", "httpx", "rich"
    code = f"import service.settings, sys; print(sorted(set({slow}) & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"


def test_the_version_is_told_and_help_has_its_short_form(tiergate: Tiergate) -> None:
    assert re.fullmatch(r"tiergate \d+\.\d+\.\d+\n", tiergate("--version").stdout)
    assert "COMMAND [ARGS]" in tiergate("-h").stdout
    assert "check [OPTIONS]" in tiergate("check", "-h").stdout
