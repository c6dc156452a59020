"""`python -m service.demo.probe_cache`: how much of recall questions llama.cpp serves from its prefix cache.

The demo's texts and its F16 model on one server of its own: each text is asked as a client does, then with
recall questions as a worker does, and the engine's own `cached_tokens` are added up. Exit status 1 when less
than `LEAST` of the captured prompts came from the cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from evaluators.exchange import Answer, Endpoint
from evaluators.needles import mine
from service.demo.llama_server import command
from service.demo.models import cache_dir, prepare
from service.demo.plan import CLIENT_MODEL, QUICK
from service.demo.prompt import Kind
from service.demo.published import ModelUnavailable
from service.demo.tiers import BASELINE
from service.demo.workload import workload
from service.launch import free_port, http_ok
from service.wire import parse_answer, parse_request, probe_request, replay_body, write_body

TEXTS = 6
LEAST = 0.9
"""Share of a captured prompt that its questions should find in the cache."""
_PATIENCE = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Tokens, added up over all questions."""

    questions: int
    captured: int
    """Of the captured prompts, once for each question asked of them."""
    prompts: int
    """Of the questions with all that stands before them."""
    cached: int
    """Of these, as far as the captured prompt goes."""

    @property
    def share(self) -> float:
        """Of the captured prompts, served from the cache; what closes a turn stands behind the question."""
        return self.cached / self.captured if self.captured else 0.0


def measure(http: httpx.Client, *, texts: int = TEXTS, seed: int = 1) -> Measured:
    """Ask a server that nobody else asks. RuntimeError when it does not say what it had in its cache."""
    questions = captured = prompts = cached = 0
    notes = [prompt for prompt in workload(QUICK.load, seed) if prompt.kind is Kind.NOTES][:texts]
    for number, prompt in enumerate(notes):
        body = write_body({**prompt.body(CLIENT_MODEL), "stream": False, "max_tokens": 8})
        request = parse_request(Endpoint.CHAT_COMPLETIONS, body)
        before = _tokens(http, replay_body(request, model=CLIENT_MODEL))
        for needle in mine(request, seed=str(number), limit=QUICK.probes, min_chars=1):
            probe = probe_request(request, needle, max_tokens=8, extra_body={})
            whole, from_cache = _tokens(http, replay_body(probe, model=CLIENT_MODEL))
            questions, captured = questions + 1, captured + before[0]
            # A question begins as the one before it did, which is in the cache as well, and no merit.
            prompts, cached = prompts + whole, cached + min(from_cache, before[0])
    return Measured(questions=questions, captured=captured, prompts=prompts, cached=cached)


def _tokens(http: httpx.Client, body: bytes) -> tuple[int, int]:
    """Of the prompt, and of these from the cache."""
    path = Endpoint.CHAT_COMPLETIONS.value
    response = http.post(path, content=body, headers={"content-type": "application/json"})
    outcome = parse_answer(
        path,
        status=response.status_code,
        content_type=response.headers.get("content-type", ""),
        content_encoding="",
        body=response.content,
        complete=True,
    )
    if not isinstance(outcome, Answer) or outcome.prompt_tokens is None or outcome.cached_tokens is None:
        raise RuntimeError(f"the server does not say how much it had in its cache: {outcome}")
    return outcome.prompt_tokens, outcome.cached_tokens


@contextmanager
def _serving(arguments: Sequence[str], port: int) -> Iterator[httpx.Client]:
    server = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    try:
        url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + _PATIENCE
        while (why := http_ok(f"{url}/health")("")) is not None:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {why}")
            time.sleep(0.2)
        with httpx.Client(base_url=url, timeout=_PATIENCE) as http:
            yield http
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """Measure, print, and say by the exit status whether it is enough."""
    try:
        model = prepare([BASELINE.weights], cache_dir(os.environ), print)[BASELINE.weights]
        port = free_port()
        with _serving(command(model.path, port=port, name=CLIENT_MODEL, kv=BASELINE.kv), port) as http:
            found = measure(http)
    except (ModelUnavailable, RuntimeError, httpx.HTTPError) as error:
        sys.exit(f"probe_cache: {error}")
    print(
        f"{found.questions} recall questions about {TEXTS} texts: {found.prompts} prompt tokens, "
        f"{found.cached} of them from the cache, which is {found.share:.1%} of the captured prompts"
    )
    if found.share < LEAST:
        sys.exit(f"probe_cache: less than {LEAST:.0%} of the captured prompts came from the cache")


if __name__ == "__main__":
    main()
