from __future__ import annotations

import gzip
from dataclasses import replace

import pytest

from evaluators.exchange import Answer, AnswerRule, Fault, FaultKind
from service.fleet import Backend, Ladder
from service.store.redis.capture import Capture, Ending
from service.wire import NotARequest
from tests.workers.walk import exchange, question, tier
from workers.opening import Opened, live_outcome, open_capture
from workers.probes import Probing

LADDER = Ladder(model="m", tiers=(tier("bf16", None), tier("w4a16", None)))
BACKENDS = {"bf16": (Backend(url="http://a"),), "w4a16": (Backend(url="http://b"),)}


def opened(capture: Capture) -> Opened:
    return open_capture(capture, LADDER, BACKENDS, Probing(min_context_chars=10))


@pytest.mark.parametrize(
    ("capture", "kind"),
    [
        (exchange(question("x"), status=500), FaultKind.SERVER_ERROR),
        (exchange(question("x"), status=429), FaultKind.OVERLOADED),
        (exchange(question("x"), status=400), FaultKind.REJECTED),
        (exchange(question("x"), None, status=None, ending=Ending.CUT_OFF), FaultKind.CUT_OFF),
        (exchange(question("x"), None, ending=Ending.CUT_OFF), FaultKind.CUT_OFF),
        (exchange(question("x"), ending=Ending.CENSORED), FaultKind.CENSORED),
        (exchange(question("x"), None, status=None, ending=Ending.TIMEOUT), FaultKind.TIMEOUT),
        (exchange(question("x"), None, status=None, ending=Ending.UNREACHABLE), FaultKind.UNREACHABLE),
    ],
)
def test_a_live_exchange_without_an_answer_is_the_fault_it_was(capture: Capture, kind: FaultKind) -> None:
    outcome = live_outcome(capture)
    assert isinstance(outcome, Fault)
    assert outcome.kind is kind


def test_a_complete_exchange_is_an_answer() -> None:
    assert isinstance(live_outcome(exchange(question("x"), "Fine.")), Answer)


def test_the_rule_of_a_model_is_part_of_what_is_judged_and_not_of_the_request() -> None:
    rule = AnswerRule(json_lines=True, accept_recoverable=True)
    one = exchange(question("x"))
    ruled = open_capture(one, LADDER, BACKENDS, Probing(min_context_chars=10), rule)
    assert (ruled.request.expects_json, ruled.request.json_lines, ruled.request.accept_recoverable) == (
        True,
        True,
        True,
    )
    assert not opened(one).request.expects_json
    assert ruled.digest == opened(one).digest


def test_the_same_request_has_the_same_digest_whoever_sends_it() -> None:
    one, other = exchange(question("x", user="a")), exchange(question("x", user="b", metadata={"n": "1"}))
    assert opened(one).digest == opened(other).digest
    assert opened(one).digest != opened(exchange(question("y"))).digest
    assert opened(one).digest != opened(exchange(question("x", temperature=1))).digest


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"model": "m"}, "messages"),
        (
            question("x")
            | {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]},
            "its own server",
        ),
        (
            question("x")
            | {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "image_url", "image_url": {"url": "https://elsewhere/x.png"}}],
                    }
                ]
            },
            "media elsewhere",
        ),
    ],
)
def test_what_cannot_be_put_to_another_backend_is_no_request(body: dict, told: str) -> None:
    with pytest.raises(NotARequest, match=told):
        opened(exchange(body))


def test_a_compressed_request_is_read() -> None:
    plain = exchange(question("hello"))
    packed = replace(plain, request_body=gzip.compress(plain.request_body), request_encoding="gzip")
    assert opened(packed).request == opened(plain).request


def test_probes_of_a_capture_are_the_same_on_every_worker() -> None:
    facts = " ".join(f"The door code of building {name} is {4000 + ord(name)}." for name in "ABCDEFGHIJ")
    capture = exchange(question(f"{facts}\n\nSum it up."))
    first, again = opened(capture), opened(capture)
    assert first.questions == again.questions
    assert len(first.questions) == 4


def asked(*turns: str, **more: object) -> dict[str, object]:
    """A conversation of so many user turns, with the instructions of an English application."""
    messages: list[dict[str, str]] = [{"role": "system", "content": "You are a helpful assistant."}]
    for turn in turns:
        messages += [{"role": "user", "content": turn}, {"role": "assistant", "content": "好的。"}]
    return {"model": "m", "messages": messages[:-1], **more}


@pytest.mark.parametrize(
    ("body", "strata"),
    [
        (asked("What is the total of the invoice?"), ("unconstrained", "en", "1")),
        (asked("发票总额是多少？"), ("unconstrained", "zh", "1")),
        (asked("发票总额是多少？", "再算一次。"), ("unconstrained", "zh", "2-5")),
        (asked(*["и так далее"] * 7), ("unconstrained", "other", "6-20")),
        (
            asked("List the items as JSON, please.", response_format={"type": "json_object"}),
            ("constrained", "en", "1"),
        ),
    ],
)
def test_the_strata_of_a_capture_are_told_from_what_was_asked(
    body: dict[str, object], strata: tuple[str, ...]
) -> None:
    """Whatever was answered, or went wrong."""
    captures = [
        replace(exchange(body, answer), stratum="2k-8k/structured/stream")
        for answer in ("Fine.", "很好，谢谢。", None)
    ]
    found = {opened(capture).marginals for capture in captures}
    names = ("constrained", "language", "turns")
    assert found == {
        (
            "length=2k-8k",
            "structured=structured",
            "streaming=stream",
            *(f"{name}={bucket}" for name, bucket in zip(names, strata, strict=True)),
        )
    }


def test_what_a_request_says_of_its_answer_goes_before_the_model_s_rule() -> None:
    capture = replace(exchange(question("x")), expects="jsonl")
    assert opened(capture).request.json_lines
    rule = AnswerRule(expects_json=True)
    told = open_capture(replace(capture, expects="none"), LADDER, BACKENDS, Probing(), rule)
    assert not told.request.expects_json
    assert open_capture(replace(capture, expects=""), LADDER, BACKENDS, Probing(), rule).request.expects_json
