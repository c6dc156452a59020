"""The coverage-guided search of both parsers, for as long as one likes, with the checks of the fuzz tests.

    pip install atheris                      # wheels for Linux on x86-64; not among the test dependencies
    python -m tests.proxy.fuzz requests -max_total_time=600 FOUND tests/proxy/corpus/requests
    python -m tests.proxy.fuzz answers -max_total_time=600 FOUND tests/proxy/corpus/answers

What breaks a property is written to the working directory (`crash-...`) and ends the search; what reaches
new code goes to the directory FOUND; what teaches something moves on to the corpus, named by what it is.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["service.proxy", "h11"]):
    from tests.proxy import test_fuzz_answers as answers
    from tests.proxy import test_fuzz_requests as requests


def check_requests(received: bytes) -> None:
    requests.check(received, cuts(received))


def check_answers(received: bytes) -> None:
    for for_head in (False, True):
        answers.check(received, cuts(received), for_head=for_head)


def cuts(received: bytes) -> list[int]:
    """A few that move with the bytes, so that the search may shift them."""
    return [(7 * sum(received[at::5]) + at) % (len(received) + 1) for at in range(4)]


if __name__ == "__main__":
    target = {"requests": check_requests, "answers": check_answers}[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()
