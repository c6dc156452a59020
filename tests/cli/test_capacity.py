"""`tiergate capacity`, and the page that shows what it prints."""

from __future__ import annotations

import json
import os
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


def test_layers_of_several_kinds_are_given_by_hand() -> None:
    """What Gemma 3 of 27B, DeepSeek-V3 and a hybrid keep, 16 sequences at once."""
    windowed = document("kv", "--layer", "52:16:128:1024", "--layer", "10:16:128", "--tokens", "8192")
    assert windowed["token_bytes"]["fp16"] == 507_904
    assert windowed["sequence"]["bytes"]["fp16"] == 16 * 8192 * (52 * 1040 + 10 * 8192)
    assert document("kv", "--layer", "61:latent:512:64")["token_bytes"]["fp16"] == 70_272
    hybrid = document("kv", "--layer", "12:2:256", "--layer", "36:state:1MiB", "--tokens", "16")
    assert hybrid["sequence"]["bytes"]["fp16"] == 16 * (12 * 16 * 2048 + 36 * (1 << 20))


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        ("5", "COUNT:KV_HEADS:HEAD_SIZE[:WINDOW]"),
        ("0:1:8", "got '0:1:8'"),
        ("5:1:8:9:9", "got '5:1:8:9:9'"),
        ("5:latent:512", "got '5:latent:512'"),
        ("5:state:big", "a size has a number and a unit"),
        ("5:-1:8", "got '5:-1:8'"),
    ],
)
def test_layers_in_another_form_are_refused(layer: str, told: str) -> None:
    assert told in refused("kv", "--layer", layer)
    assert "give --layer for each kind, or --layers" in refused(*NUMBERS, "--layer", "5:1:8")


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
        ((*NUMBERS, "--kv-memory", "9" * 400 + "GiB"), "a size has a number and a unit"),
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
        ('{"num_hidden_layers": 2, "block_configs": [{}]}', "block_configs: layers differ"),
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


TRACE = "\n".join(
    json.dumps(
        {"timestamp": 1000 * at, "input_length": 2000, "output_length": 9, "hash_ids": [0, at % 2, 2, at]}
    )
    for at in range(3, 9)
)
PAGE_OF_VLLM = """\
vllm:prefix_cache_queries_total{{engine="0"}} {queries}
vllm:prefix_cache_hits_total{{engine="0"}} {hits}
vllm:request_prefill_time_seconds_sum{{engine="0"}} {prefill}
vllm:request_decode_time_seconds_sum{{engine="0"}} {decode}
"""


def pages(directory: Path, hours: float = 24.0) -> tuple[str, str]:
    before, after = directory / "monday.prom", directory / "tuesday.prom"
    before.write_text(PAGE_OF_VLLM.format(queries=100, hits=100, prefill=0, decode=0))
    after.write_text(PAGE_OF_VLLM.format(queries=1100, hits=800, prefill=50, decode=50))
    os.utime(before, (1_800_000_000, 1_800_000_000))
    os.utime(after, (1_800_000_000 + 3600 * hours, 1_800_000_000 + 3600 * hours))
    return str(before), str(after)


def test_pages_are_as_far_apart_as_their_files_or_as_is_said(tmp_path: Path) -> None:
    assert document("prefix", *pages(tmp_path, 23.98))["hours"] == 24.0, "seconds off"
    assert ran("prefix", *pages(tmp_path, 2.0)).exit_code == 3
    assert document("prefix", *pages(tmp_path, 2.0), "--hours", "24")["advice"] == "own_pool"
    for hours in (0.0, -24.0):
        assert "give --hours" in refused("prefix", *pages(tmp_path, hours))


def test_a_day_of_counters_is_judged(tmp_path: Path) -> None:
    found = document("prefix", *pages(tmp_path))
    assert (found["advice"], found["rate"], found["prefill_share"]) == ("own_pool", 0.7, 0.5)
    assert found["speed_up"] == pytest.approx(1 / 0.65)
    assert found["doubts"]


def test_less_than_a_day_has_an_exit_status_of_its_own(tmp_path: Path) -> None:
    outcome = ran("prefix", *pages(tmp_path), "--hours", "6")
    assert outcome.exit_code == 3
    assert outcome.stdout.startswith("wait\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("prefix",), "give metrics pages, or both"),
        (("prefix", "--prefill-tokens", "9"), "give metrics pages, or both"),
        (("prefix", "--prefill-tokens", "9", "--reused-tokens", "10"), "between 0 and prefill tokens"),
        (("prefix", "none.prom", "none.prom"), "cannot read none.prom: No such file"),
        (("replay", "none.jsonl"), "cannot read none.jsonl: No such file"),
    ],
)
def test_wrong_questions_of_the_prefix_cache_say_what_is_wrong(arguments: tuple[str, ...], told: str) -> None:
    assert told in refused(*arguments)


def test_pages_that_tell_too_little_are_refused(tmp_path: Path) -> None:
    before, _ = pages(tmp_path)
    assert "at least two readings" in refused("prefix", before)
    other = tmp_path / "go.prom"
    other.write_text("go_goroutines 7\n")
    assert "tells of no prefix cache" in refused("prefix", before, str(other))
    assert "not several" in refused("prefix", before, "--reused-tokens", "5")


def test_a_trace_is_replayed_and_tenants_are_split(tmp_path: Path) -> None:
    chat, batch = tmp_path / "chat.jsonl", tmp_path / "batch.jsonl"
    for path in (chat, batch):
        path.write_text(TRACE + "\nnonsense\n")
    outcome = ran("replay", str(chat), str(batch), "--token-bytes", "1024", "--pool", "8000")
    assert outcome.exit_code == 0, outcome.output
    assert "knee" in outcome.stdout
    assert "in its own" in outcome.stdout
    assert "1 lines left out, first line 7" in outcome.stderr
    found = document("replay", str(chat), "--block", "512")
    assert found["requests"] == 6
    assert found["curve"][-1]["rate"] == found["unlimited_rate"] > 0
    assert found["knee"]["bytes"] is None


def test_a_trace_that_tells_no_prefixes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "azure.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n1,10,10\n")
    assert "has no hash_ids" in refused("replay", str(path))
    path.write_text("a,b\n")
    assert "this is no trace" in refused("replay", str(path))
    path.write_bytes(b"\xff\xfe")
    assert "is not UTF-8" in refused("replay", str(path))
    same = tmp_path / "x" / "azure.csv"
    assert "the same name" in refused("replay", str(path), str(same))
    path.write_text(TRACE)
    assert "no whole number of blocks of 48" in refused("replay", str(path), "--block", "48")


def model_of_8b(directory: Path) -> str:
    config = {
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_hidden_layers": 36,
    }
    (directory / "config.json").write_text(
        json.dumps({**config, "vocab_size": 151936, "max_position_embeddings": 40960})
    )
    return str(directory)


def serve(tmp_path: Path, tier: str, *more: str) -> tuple[str, ...]:
    lengths = ("--longest", "16384", "--typical", "3000")
    return ("serve", model_of_8b(tmp_path), "--memory", "24GiB", "--tier", tier, *lengths, *more)


def test_a_first_line_for_vllm_has_a_reason_for_each_value(tmp_path: Path) -> None:
    outcome = ran(*serve(tmp_path, "w4a16:5.7GiB:fp8", "--model", "Qwen/Qwen3-8B-AWQ"))
    assert outcome.exit_code == 0, outcome.output
    assert "computed, not measured" in outcome.stdout
    assert "vllm serve Qwen/Qwen3-8B-AWQ --max-model-len 16384 --max-num-seqs 73 " in outcome.stdout
    assert "ContinuousBatchingConfig(max_memory_percent=0.832," in outcome.stdout
    assert "the block size stays the engine's own" in outcome.stdout
    assert document(*serve(tmp_path, "a:5.7GiB:INT8"))["command"].endswith("int8_per_token_head")
    found = document(*serve(tmp_path, "bf16:15.3GiB:bf16"))
    assert found["starting_point"] is True
    assert found["command"].endswith("--kv-cache-dtype auto")
    assert all(each["reason"] for each in found["vllm"] + found["transformers"])


def test_transformers_is_left_out_where_16_bits_do_not_fit(tmp_path: Path) -> None:
    outcome = ran(*serve(tmp_path, "a:19.3GiB:fp8"))
    assert outcome.exit_code == 0, outcome.output
    assert "whose cache has 16 bits: one request of 16,384 tokens lacks" in outcome.stdout


def test_a_first_line_that_cannot_run_is_not_printed(tmp_path: Path) -> None:
    outcome = ran(*serve(tmp_path, "bf16:22GiB:bf16"))
    assert outcome.exit_code == 1
    assert "one request of 16,384 tokens lacks" in outcome.stderr
    assert "'fp3' is not known" in refused(*serve(tmp_path, "a:1GiB:fp3"))
    assert "no more than the longest" in refused(*serve(tmp_path, "a:1GiB:fp8", "--typical", "20000"))


def test_classes_of_prompts_stand_for_the_longest_and_the_typical_request(tmp_path: Path) -> None:
    common = ("serve", model_of_8b(tmp_path), "--memory", "24GiB", "--tier", "w4a16:5.7GiB:fp8")
    classes = ("--prompt", "512", "--prompt", "2048", "--prompt", "8192", "--answer", "512")
    told = ran(*common, *classes)
    assert told.exit_code == 0, told.output
    assert told.stdout == ran(*common, "--longest", "8704", "--typical", "2560").stdout
    assert "--max-model-len 8704" in told.stdout
    for wrong in ((*classes, "--longest", "9000"), ("--prompt", "512"), ("--longest", "9000"), ()):
        assert "give --longest and --typical, or --prompt for each class and --answer" in refused(
            *common, *wrong
        )
