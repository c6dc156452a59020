"""`python -m service.demo.quantise SOURCE TARGET SCHEME`: rewrite a GGUF model with other weights.

The quantisers are those of ggml, called in the shared library of the xllamacpp wheel. Vectors (norms) keep
their type; embeddings get 8 bits, as llama-quantize gives them for a model of this shape; rows that do not
divide into a scheme's blocks fall back to Q4_0, as there.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from service.demo.tiers import Scheme

FALLBACK = Scheme.Q4_0
EMBEDDINGS = ("token_embd.weight", "output.weight")
NOT_COPIED = ("general.architecture", "general.file_type", "general.quantization_version")
"""Keys that the writer sets itself."""
FILE_TYPE = {Scheme.F16: 1, Scheme.Q4_0: 2, Scheme.Q8_0: 7, Scheme.Q2_K: 10, Scheme.MXFP4: 38}
"""`general.file_type`, LLAMA_FTYPE_* of llama.h."""
QUANTIZATION_VERSION = 2
"""GGML_QNT_VERSION of ggml.h."""


class QuantiserMissing(Exception):
    """No xllamacpp wheel with ggml's quantisers here; install the demo extra: pip install '.[demo]'."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def requantise(source: Path, target: Path, scheme: Scheme) -> Mapping[str, int]:
    """Write `target`, and tell how many tensors it has of each ggml type."""
    import gguf

    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, str(reader.fields["general.architecture"].contents()))
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key in NOT_COPIED:
            continue
        holds = field.types[0]
        of = field.types[-1] if holds == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), holds, sub_type=of)
    writer.add_file_type(FILE_TYPE[scheme])
    writer.add_quantization_version(QUANTIZATION_VERSION)
    made: Counter[str] = Counter()
    for tensor in reader.tensors:
        if len(tensor.shape) == 1:
            stored, kind = np.array(tensor.data), tensor.tensor_type
        else:
            rows = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
            stored, kind = _store(rows.reshape(-1, int(tensor.shape[0])), _scheme_of(tensor.name, scheme))
        writer.add_tensor(tensor.name, stored, raw_dtype=kind)
        made[kind.name] += 1
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()
    return dict(made)


def _scheme_of(tensor: str, scheme: Scheme) -> Scheme:
    return Scheme.Q8_0 if tensor in EMBEDDINGS and scheme is not Scheme.F16 else scheme


def _store(rows: np.ndarray[Any, Any], scheme: Scheme) -> tuple[np.ndarray[Any, Any], Any]:
    """The rows in the scheme's bytes, and their ggml type."""
    import gguf

    kind = gguf.GGMLQuantizationType[scheme.name]
    if scheme is Scheme.F16:
        return rows.astype(np.float16), kind
    per_block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    count, width = rows.shape
    if width % per_block:
        return _store(rows, FALLBACK)
    rows = np.ascontiguousarray(rows)
    stored = np.zeros((count, width // per_block * block_bytes), dtype=np.uint8)
    written = _quantiser()(int(kind), rows.ctypes.data, stored.ctypes.data, 0, count, width, None)
    if written != stored.nbytes:
        raise ValueError(f"ggml wrote {written} bytes of {kind.name}, not {stored.nbytes}")
    return stored, kind


@cache
def _quantiser() -> Any:
    """`ggml_quantize_chunk(type, source, target, first weight, rows, row width, importance)` of ggml.h."""
    found = importlib.util.find_spec("xllamacpp")
    if found is None or found.origin is None:
        raise QuantiserMissing
    for library in sorted(Path(found.origin).parent.glob("*.so")):
        quantise = getattr(ctypes.CDLL(str(library)), "ggml_quantize_chunk", None)
        if quantise is not None:
            quantise.restype = ctypes.c_size_t
            quantise.argtypes = [
                ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
                ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p,
            ]  # fmt: skip
            return quantise
    raise QuantiserMissing


def main() -> None:
    """The command line; prints the tensors made of each type."""
    if len(sys.argv) != 4:
        sys.exit("usage: python -m service.demo.quantise SOURCE.gguf TARGET.gguf SCHEME")
    made = requantise(Path(sys.argv[1]), Path(sys.argv[2]), Scheme(sys.argv[3]))
    print(", ".join(f"{count} {kind}" for kind, count in sorted(made.items())))


if __name__ == "__main__":
    main()
