"""Rewriting a model: what is kept, what is rounded, and by how much."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gguf
import numpy as np
import pytest

from service.demo.quantise import requantise
from service.demo.tiers import Scheme

WIDE, NARROW = 256, 96
"""Q2_K has blocks of 256 weights; rows of 96 have to fall back."""


def write_model(path: Path) -> dict[str, np.ndarray]:
    """A GGUF file with one tensor of each sort, and its tensors."""
    draw = np.random.default_rng(1)
    tensors = {
        "token_embd.weight": draw.normal(size=(8, NARROW)),
        "blk.0.ffn_down.weight": draw.normal(size=(4, WIDE)),
        "blk.0.attn_q.weight": draw.normal(size=(6, NARROW)),
        "blk.0.attn_norm.weight": draw.normal(size=NARROW),
    }
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(64)
    writer.add_token_list(["<s>", "naïve", "你好"])
    for name, values in tensors.items():
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tensors


def read(path: Path) -> dict[str, tuple[str, np.ndarray]]:
    """Type and values of every tensor."""
    return {
        tensor.name: (
            tensor.tensor_type.name,
            gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float64),
        )
        for tensor in gguf.GGUFReader(path).tensors
    }


@pytest.mark.parametrize(
    ("scheme", "embeddings", "wide", "narrow", "error"),
    [
        # largest difference of a unit normal weight: half a step of the scheme's grid over about +-3.5
        (Scheme.F16, "F16", "F16", "F16", 0.002),
        (Scheme.Q8_0, "Q8_0", "Q8_0", "Q8_0", 0.02),
        (Scheme.Q4_0, "Q8_0", "Q4_0", "Q4_0", 0.5),
        (Scheme.MXFP4, "Q8_0", "MXFP4", "MXFP4", 1.0),
        (Scheme.Q2_K, "Q8_0", "Q2_K", "Q4_0", 1.5),
    ],
)
def test_matrices_get_the_scheme_and_stay_close(
    tmp_path: Path, scheme: Scheme, embeddings: str, wide: str, narrow: str, error: float
) -> None:
    original = write_model(tmp_path / "in.gguf")
    made = requantise(tmp_path / "in.gguf", tmp_path / "out.gguf", scheme)
    found = read(tmp_path / "out.gguf")
    kinds = {name: kind for name, (kind, _) in found.items()}
    assert kinds == {
        "token_embd.weight": embeddings,
        "blk.0.ffn_down.weight": wide,
        "blk.0.attn_q.weight": narrow,
        "blk.0.attn_norm.weight": "F32",
    }
    assert sum(made.values()) == len(original)
    for name, (_, values) in found.items():
        assert np.abs(values.reshape(original[name].shape) - original[name]).max() < error


def test_fewer_bits_are_further_from_the_original(tmp_path: Path) -> None:
    original = write_model(tmp_path / "in.gguf")["blk.0.ffn_down.weight"]
    errors = []
    for scheme in (Scheme.F16, Scheme.Q8_0, Scheme.Q4_0, Scheme.Q2_K):
        requantise(tmp_path / "in.gguf", tmp_path / "out.gguf", scheme)
        values = read(tmp_path / "out.gguf")["blk.0.ffn_down.weight"][1]
        errors.append(float(np.square(values.reshape(original.shape) - original).mean()))
    assert errors == sorted(errors)
    assert errors[0] > 0


def test_everything_that_is_not_a_matrix_is_kept(tmp_path: Path) -> None:
    norm = write_model(tmp_path / "in.gguf")["blk.0.attn_norm.weight"]
    requantise(tmp_path / "in.gguf", tmp_path / "out.gguf", Scheme.Q4_0)
    reader = gguf.GGUFReader(tmp_path / "out.gguf")
    assert reader.fields["general.architecture"].contents() == "llama"
    assert reader.fields["general.name"].contents() == "tiny"
    assert reader.fields["llama.context_length"].contents() == 64
    assert reader.fields["tokenizer.ggml.tokens"].contents() == ["<s>", "naïve", "你好"]
    assert reader.fields["general.file_type"].contents() == 2
    np.testing.assert_array_equal(
        read(tmp_path / "out.gguf")["blk.0.attn_norm.weight"][1], norm.astype(np.float32)
    )


def test_the_command_tells_what_it_made(tmp_path: Path) -> None:
    write_model(tmp_path / "in.gguf")
    command = [sys.executable, "-m", "service.demo.quantise", "in.gguf", "out.gguf", "q2_k"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "1 F32, 1 Q2_K, 1 Q4_0, 1 Q8_0"


def test_the_command_says_how_it_is_used() -> None:
    command = [sys.executable, "-m", "service.demo.quantise", "in.gguf"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert "usage:" in told.stderr
