"""`tiergate artifact digest`: from a file, from the backends, and the one against the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from service.cli import artifact
from tests.engines.test_pages import vllm_metrics
from tests.launch.conftest import Pages, models_page, serving

DECLARED = """
model: Qwen/Qwen3-32B@9216db57
recipe: {weights: int8, kv_cache: fp8}
engine: {name: vllm, version: 0.32.0}
flags: {enforce_eager: true}
parallelism: {tensor: 2}
"""


def vllm(version: str = "0.32.0", model: str = "m") -> Pages:
    return {
        "/health": (200, ""),
        "/v1/models": (200, models_page(model)),
        "/version": (200, json.dumps({"version": version})),
        "/metrics": (200, vllm_metrics("fp8_e5m2", 93184)),
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "w8a8.yaml"
    path.write_text(DECLARED)
    return path


@pytest.fixture
def ran(tmp_path: Path) -> Iterator[Callable[..., Result]]:
    """Runs with a configuration whose tier `w8a8` has a backend for each of `backends`."""
    app = typer.Typer()
    artifact.register(app)
    with ExitStack() as stack:

        def run(*arguments: str, backends: tuple[Pages, ...] = ()) -> Result:
            urls = [stack.enter_context(serving(pages)) for pages in backends] or ["http://127.0.0.1:9"]
            tiers: list[Any] = [
                {"tier": "bf16", "backends": ["http://127.0.0.1:9"]},
                {"tier": "w8a8", "backends": urls, "declares": {"weights": "int8", "artifact": "ab" * 32}},
            ]
            path = tmp_path / "tiergate.yaml"
            path.write_text(json.dumps({"models": {"m": {"ladder": tiers}}}))
            environ = {"COLUMNS": "200", "TERM": "dumb", "TIERGATE_CONFIG": str(path)}
            return CliRunner().invoke(app, ["artifact", "digest", *arguments], env=environ)

        yield run


OF_TIER = ("--tier", "m", "w8a8")


def test_a_declared_file_has_its_digest_in_yaml_and_in_json(
    ran: Callable[..., Result], file: Path, tmp_path: Path
) -> None:
    printed = ran(str(file))
    assert printed.exit_code == 0, printed.output
    document = json.loads(ran(str(file), "--json").stdout)
    assert printed.stdout.strip() == document["digest"]
    assert document["not_told"] == []
    same = tmp_path / "w8a8.json"
    same.write_text(
        json.dumps(
            {
                "parallelism": {"tensor": 2},
                "flags": ["--enforce-eager", "--port=8001"],
                "engine": {"version": "0.32.0", "name": "vllm"},
                "recipe": {"kv_cache": "fp8", "weights": "int8"},
                "model": "Qwen/Qwen3-32B@9216db57",
            }
        )
    )
    assert ran(str(same)).stdout == printed.stdout


def test_the_backends_of_a_tier_tell_an_artifact_if_they_tell_the_same(ran: Callable[..., Result]) -> None:
    told = ran(*OF_TIER, "--json", backends=(vllm(), vllm()))
    assert told.exit_code == 0, told.output
    document = json.loads(told.stdout)
    assert document["artifact"]["version"] == "0.32.0"
    assert document["artifact"]["recipe"]["weights"] == "int8"
    assert "artifact" not in document["artifact"]["recipe"], "a digest of itself"
    assert document["not_told"] == ["parallelism"]
    upgraded = ran(*OF_TIER, backends=(vllm("0.32.1"),))
    assert upgraded.stdout.strip() not in ("", document["digest"])
    mixed = ran(*OF_TIER, backends=(vllm(), vllm("0.32.1")))
    assert (mixed.exit_code, "two artifacts" in mixed.stderr, mixed.stdout) == (1, True, "")


def test_a_file_is_held_against_what_the_backends_tell(ran: Callable[..., Result], file: Path) -> None:
    agreeing = ran(str(file), *OF_TIER, backends=(vllm(),))
    assert agreeing.exit_code == 0, agreeing.output
    assert agreeing.stdout == ran(str(file)).stdout
    other = ran(str(file), *OF_TIER, backends=(vllm(), vllm("0.31.0")))
    assert (other.exit_code, other.stdout) == (1, "")
    assert "vllm 0.32.0 is declared, vllm 0.31.0 answers" in other.stderr


def test_what_cannot_be_told_says_what_to_do(ran: Callable[..., Result], file: Path, tmp_path: Path) -> None:
    assert ran(*OF_TIER).exit_code == 3, "nobody answers"
    silent = {"/health": (200, ""), "/v1/models": (200, models_page("m"))}
    untold = ran(*OF_TIER, backends=(silent,))
    assert (untold.exit_code, "declare the artifact" in untold.stderr) == (3, True)
    foreign = ran(*OF_TIER, backends=(vllm(model="other"),))
    assert (foreign.exit_code, "serves other" in foreign.stderr) == (1, True)
    for arguments, told in (
        ((), "--tier MODEL TIER"),
        (("--tier", "m", "w8a9"), "did you mean 'w8a8'?"),
        (("--tier", "n", "w8a8"), "did you mean 'm'?"),
        ((str(tmp_path / "none"),), "cannot be read"),
    ):
        asked = ran(*arguments)
        assert (asked.exit_code, told in asked.stderr) == (2, True), asked.stderr
    for content, told in (
        ("model: [", "YAML"),
        ("model: x\n", "'engine' is missing"),
        ("[]", "expected keys"),
    ):
        file.write_text(content)
        asked = ran(str(file))
        assert (asked.exit_code, told in asked.stderr) == (2, True), asked.stderr


def test_a_digest_is_one_that_an_approval_takes(ran: Callable[..., Result], file: Path) -> None:
    from pydantic import TypeAdapter

    from service.approval.dialects.gate_schemas import AnyDigest
    from service.approval.schemas import Digest

    digest = ran(str(file)).stdout.strip()
    assert TypeAdapter(Digest).validate_python(digest) == digest
    assert TypeAdapter(AnyDigest).validate_python(digest) == digest
