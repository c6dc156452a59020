"""`python -m service.demo.llama_server MODEL.gguf --port N`: one OpenAI-compatible llama.cpp server.

It is the server of llama.cpp itself, out of the xllamacpp wheel, on loopback. One slot and one thread by
default: several servers with two threads each on two cores stall each other, and answers batched together
differ in the last digits. Prompts whose slot was taken over by another stay in memory, so that the control
and the probes of a long text do not pay for it again. It ends on SIGTERM or SIGINT.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from service.demo.tiers import KvType

STOPPING = {signal.SIGTERM, signal.SIGINT}
WARNINGS = 1
"""Log level of llama.cpp that leaves out a dozen lines per request."""


def command(model: Path, *, port: int, name: str, kv: KvType, threads: int = 1) -> tuple[str, ...]:
    """The command line of a server of its own."""
    return (
        sys.executable, "-m", "service.demo.llama_server", str(model),
        "--port", str(port), "--name", name, "--kv", kv.value, "--threads", str(threads),
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until told to stop."""
    asked = _parser().parse_args(arguments)
    # Before the server makes its threads: they inherit the mask, and only `sigwait` below takes the signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    server = _serve(asked)
    print(f"serving {asked.model} at {server.listening_address}", flush=True)
    signal.sigwait(STOPPING)
    # The server has no stop of its own; nothing here needs saving.
    os._exit(0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="llama_server", description="One llama.cpp server on loopback.")
    parser.add_argument("model", type=Path, help="GGUF file")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", default="model", help="what /v1/models calls it")
    parser.add_argument("--kv", type=KvType, default=KvType.F16, choices=list(KvType), help="type of K and V")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--context", type=int, default=2048, help="tokens of prompt and answer together")
    parser.add_argument(
        "--prompt-cache-mib", type=int, default=192, help="memory for prompts out of their slot"
    )
    return parser


def _serve(asked: argparse.Namespace) -> Any:
    if not asked.model.is_file():
        sys.exit(f"there is no model file {asked.model}")
    import xllamacpp  # half a second, and it is an optional dependency

    kinds, attention = xllamacpp.ggml_type, xllamacpp.llama_flash_attn_type
    params = xllamacpp.CommonParams()
    params.model.path = str(asked.model)
    params.model_alias = [asked.name]
    params.hostnames = ["127.0.0.1"]
    params.port = asked.port
    params.n_ctx = asked.context
    params.n_parallel = 1
    params.cpuparams.n_threads = asked.threads
    params.cpuparams_batch.n_threads = asked.threads
    params.cache_type_k = params.cache_type_v = kinds[f"GGML_TYPE_{asked.kv.name}"]
    quantised = asked.kv is not KvType.F16
    # A quantised V needs flash attention.
    params.flash_attn_type = attention[f"LLAMA_FLASH_ATTN_TYPE_{'ENABLED' if quantised else 'AUTO'}"]
    params.cache_ram_mib = asked.prompt_cache_mib
    params.endpoint_metrics = True
    params.endpoint_props = True
    params.verbosity = WARNINGS
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
