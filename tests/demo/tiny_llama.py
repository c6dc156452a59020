"""A llama of two layers with random weights and a tokenizer of bytes: it talks nonsense, quickly."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

WIDTH, HEADS, LAYERS, INNER, CONTEXT = 64, 2, 2, 128, 4096
SPECIAL = ("<unk>", "<s>", "</s>")
NORMAL_TOKEN, CONTROL_TOKEN, BYTE_TOKEN = 1, 3, 6


def write_tiny_llama(path: Path) -> None:
    """A GGUF file that llama.cpp serves, of about 300 kB."""
    draw = np.random.default_rng(1)
    tokens = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256))]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_file_type(0)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([CONTROL_TOKEN] * len(SPECIAL) + [BYTE_TOKEN] * 256)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{% for m in messages %}{{ m.content }}{% endfor %}")
    shapes = {
        "attn_q": (WIDTH, WIDTH), "attn_k": (WIDTH, WIDTH), "attn_v": (WIDTH, WIDTH),
        "attn_output": (WIDTH, WIDTH), "ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH),
        "ffn_down": (WIDTH, INNER),
    }  # fmt: skip
    output = draw.normal(size=(len(tokens), WIDTH))
    # Never the best choice: half a character of UTF-8 would end in an error of the server.
    output[len(SPECIAL) + 128 :] = 0
    tensors = {
        "token_embd.weight": draw.normal(size=(len(tokens), WIDTH)),
        "output.weight": output,
        "output_norm.weight": np.ones(WIDTH),
    }
    for layer in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{layer}.{norm}.weight"] = np.ones(WIDTH)
        for name, shape in shapes.items():
            tensors[f"blk.{layer}.{name}.weight"] = draw.normal(size=shape) / np.sqrt(shape[1])
    for name, values in tensors.items():
        writer.add_tensor(name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
