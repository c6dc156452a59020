"""`tiergate capacity`, and the page that shows what it prints."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from service.cli import capacity, offline

PAGE = Path(__file__).parents[2] / "docs" / "capacity.md"
EXAMPLES = [block.split("```")[0] for block in PAGE.read_text(encoding="utf-8").split("```\n$ ")[1:]]
NUMBERS = ("kv", "--layers", "30", "--kv-heads", "3", "--head-size", "64")


def ran(*arguments: str) -> Result:
    app = typer.Typer()
    offline.register(app)  # a second command, so that `capacity` is one of several
    capacity.register(app)
    return CliRunner().invoke(app, ["capacity", *arguments], env={"COLUMNS": "100", "TERM": "dumb"})


def document(*arguments: str) -> Any:
    outcome = ran(*arguments, "--json")
    assert outcome.exit_code == 0, outcome.output
    return json.loads(outcome.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def refused(*arguments: str) -> str:
    outcome = ran(*arguments)
    assert outcome.exit_code == 2, outcome.output
    return " ".join(outcome.output.replace("│", " ").split())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.splitlines()[0][:40])
def test_the_page_shows_what_it_prints(example: str) -> None:
    command, *lines = example.splitlines()
    outcome = ran(*shlex.split(command)[2:])
    assert outcome.exit_code == 0, outcome.output
    assert [line.rstrip() for line in outcome.stdout.splitlines()] == lines


def test_the_page_has_the_engine_s_own_figures() -> None:
    assert "46,592" in EXAMPLES[0]
    assert "93,184" in EXAMPLES[0]
    assert "3.0 times what is kept" in EXAMPLES[0]


def test_json_has_bytes() -> None:
    found = document(*NUMBERS, "--kv-memory", "1GiB", "--block", "128")
    assert found["token_bytes"]["fp16"] == 23_040
    assert found["naive_token_bytes"]["fp16"] is None
    assert [each["tokens"] for each in found["fits"]][:2] == [46_592, 93_184]
    assert found["fits"][0]["budget"] is None


def test_a_configuration_is_read_from_its_file_or_its_directory(tmp_path: Path) -> None:
    config = {"hidden_size": 576, "num_attention_heads": 9, "num_key_value_heads": 3, "num_hidden_layers": 30}
    (tmp_path / "config.json").write_text(json.dumps({**config, "vocab_size": 49152}))
    by_directory = document("kv", str(tmp_path), "--memory", "2GiB", "--tier", "a:257MiB:fp8")
    assert by_directory["naive_token_bytes"]["fp16"] == 3 * by_directory["token_bytes"]["fp16"]
    assert by_directory["fits"][0]["budget"]["logits"] == 4 * 49152 * 16
    assert by_directory == document(
        *("kv", str(tmp_path / "config.json"), "--memory", "2GiB", "--tier", "a:257MiB:fp8")
    )


def test_a_tier_that_does_not_fit_is_told() -> None:
    budget = ("--memory", "1GiB", "--tier", "big:2.5GiB:auto", "--vocabulary", "0")
    assert "It does not start." in ran(*NUMBERS, *budget).stdout
    assert document(*NUMBERS, *budget)["fits"][0]["most_sequences"] == 0


def test_without_memory_the_next_step_is_told() -> None:
    assert "give --kv-memory 8GiB" in ran(*NUMBERS).stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("kv",), "give CONFIG, or all of --layers, --kv-heads and --head-size"),
        ((*NUMBERS, "--kv-memory", "1"), "a size has a number and a unit"),
        ((*NUMBERS, "--kv-memory", "1GiB", "--memory", "2GiB"), "not both"),
        ((*NUMBERS, "--memory", "2GiB"), "--memory and --tier go together"),
        ((*NUMBERS, "--memory", "2GiB", "--tier", "a:1GiB"), "--tier takes NAME:WEIGHTS:KV"),
        ((*NUMBERS, "--memory", "2GiB", "--tier", "a:1GiB:fp8"), "give --vocabulary"),
        ((*NUMBERS, "--memory", "2GiB", "--tier", "a:1GiB:fp3", "--vocabulary", "9"), "'fp3' is not known"),
        (
            (
                *NUMBERS,
                "--memory",
                "2GiB",
                "--tier",
                "a:1GiB:fp8",
                "--vocabulary",
                "9",
                "--memory-share",
                "2",
            ),
            "the share of memory is above 0",
        ),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(arguments: tuple[str, ...], told: str) -> None:
    assert told in refused(*arguments)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a JSON object"),
        ("{}", "num_hidden_layers is missing"),
        ('{"num_hidden_layers": 2, "block_configs": []}', "block_configs: layers differ"),
    ],
)
def test_a_file_that_is_not_understood_says_why(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    assert told in refused("kv", str(path))
    assert "not both" in refused("kv", str(path), "--layers", "2")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "No such file" in refused("kv", str(tmp_path / "none.json"))


def test_the_help_teaches() -> None:
    shown = ran("kv", "--help").stdout
    assert "2 x layers x KV heads x head size" in shown
    assert "tiergate capacity kv ./Qwen3-32B/config.json" in shown
