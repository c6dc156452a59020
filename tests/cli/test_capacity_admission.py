"""`tiergate capacity admission`: limits with their reasons, alone or in a configuration that is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from service.fleet import Fallback, Priority
from service.settings import load
from tests.cli.test_capacity import ran

MODEL = {
    "model_type": "qwen3",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "num_hidden_layers": 36,
    "vocab_size": 151_936,
    "max_position_embeddings": 40_960,
}
WRITTEN = """\
# mine
models:
  qwen3:
    ladder:
      - {tier: bf16, backends: [http://a:8000]}
      - {tier: w4a16, backends: [http://b:8000, http://c:8000]}
"""


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MODEL))
    asked = "--memory 24GiB --tier w4a16:6GiB:fp8 --prompt 12000 --answer 2048 --typical 3000 --backends 2"
    return ["admission", str(path), *asked.split()]


def test_the_limits_are_a_configuration_with_their_reasons(arguments: list[str]) -> None:
    outcome = ran(*arguments, "--takes", "9s", "--ttft", "1500ms", "--model", "qwen3")
    assert outcome.exit_code == 0, outcome.output
    assert yaml.safe_load(outcome.stdout) == {
        "models": {
            "qwen3": {
                "limits": {
                    "concurrency": 144,
                    "queue": 24,
                    "queue_timeout": "1500ms",
                    "max_prompt_tokens": 15_000,
                    "max_output_tokens": 2048,
                    "require_max_tokens": True,
                    "kv_guard": {"above": "93%", "below": "88%"},
                    "priority": {"short": 3750, "ahead": 4},
                    "fallback": "line",
                }
            }
        }
    }
    assert "each of 2 backends holds 72 requests of 3,000 tokens in its cache" in outcome.stdout
    assert "Computed, not measured" in outcome.stderr


def test_they_are_put_into_a_configuration_which_the_proxy_then_keeps_to(
    arguments: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "tiergate.yaml"
    file.write_text(WRITTEN)
    file.chmod(0o640)
    outcome = ran(*arguments, "--model", "qwen3", "--into", str(file), "-o", str(file))
    assert outcome.exit_code == 0, outcome.output
    assert outcome.stdout == ""
    assert file.read_text().startswith(WRITTEN)
    assert file.stat().st_mode & 0o777 == 0o640
    limits = load(file, {}).proxy.ladders["qwen3"].limits
    assert (limits.concurrency, limits.queue, limits.queue_seconds) == (144, 144, 30.0)
    assert limits.kv_guard is not None
    assert (limits.kv_guard.above, limits.kv_guard.below) == (0.93, 0.88)
    assert limits.priority == Priority(short=3750, ahead=4)
    assert limits.fallback is Fallback.LINE
    relieved = ran(
        *(*arguments, "--below", "bf16:15.3GiB:bf16", "--model", "qwen3"),
        *("--into", str(file), "-o", str(file)),
    )
    assert relieved.exit_code == 0, relieved.output
    limits = load(file, {}).proxy.ladders["qwen3"].limits
    assert (limits.fallback, limits.concurrency) == (Fallback.RUNG_BELOW, 144 + 13)
    again = ran(*arguments, "--sequences", "8", "--model", "qwen3", "--into", str(file), "-o", str(file))
    assert again.exit_code == 0, again.output
    assert load(file, {}).proxy.ladders["qwen3"].limits.concurrency == 16
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == [
        "config.json",
        "tiergate.yaml",
    ]


def test_a_file_that_cannot_be_changed_safely_stays(arguments: list[str], tmp_path: Path) -> None:
    file = tmp_path / "tiergate.yaml"
    file.write_text(WRITTEN)
    outcome = ran(*arguments, "--model", "llama", "--into", str(file), "-o", str(file))
    assert outcome.exit_code == 1
    assert "there is no 'llama' in it" in outcome.output
    assert file.read_text() == WRITTEN


def test_json_has_every_rule_with_its_reason(arguments: list[str]) -> None:
    outcome = ran(*arguments, "--json")
    found = json.loads(outcome.stdout)
    assert [each["name"] for each in found["rules"]][-3:] == ["kv_guard", "priority", "fallback"]
    assert all(each["reason"] for each in found["rules"])


def test_what_does_not_fit_is_refused(arguments: list[str]) -> None:
    outcome = ran(*arguments, "--answer", "30000")
    assert outcome.exit_code == 1
    assert "the model was made for 40,960" in outcome.output


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--takes", "9"), "'9' is not a duration"),
        (("--below", "bf16"), "--below takes NAME:WEIGHTS:KV"),
        (("--below-backends", "2"), "--below-backends are those of --below"),
        (("--typical", "20000"), "no more than the longest"),
        (("--json", "-o", "x"), "neither --into nor --output"),
        (("--into", "no-such-file.yaml"), "cannot read no-such-file.yaml"),
        (("-o", "no/such/place.yaml"), "cannot be written"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(
    more: tuple[str, ...], told: str, arguments: list[str]
) -> None:
    outcome = ran(*arguments, *more)
    assert outcome.exit_code == 2, outcome.output
    assert told in " ".join(outcome.output.replace("│", " ").split())
