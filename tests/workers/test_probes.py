from __future__ import annotations

from evaluators.exchange import Endpoint
from service.wire import parse_request, write_body
from tests.workers.walk import question
from workers.probes import Probing, questions

FACTS = " ".join(f"The door code of building {name} is {4000 + ord(name)}." for name in "ABCDEFGHIJ")


def asked(text: str = f"{FACTS}\n\nSum it up.", **more: object) -> object:
    return parse_request(Endpoint.CHAT_COMPLETIONS, write_body(question(text, **more)))


def test_a_probe_asks_for_a_fact_of_the_context_at_its_end() -> None:
    probes = questions(asked(), seed="a", probing=Probing(per_capture=2, min_context_chars=10))
    assert len(probes) == 2
    for probe in probes:
        assert probe.needle is not None
        assert probe.messages[-1].text.startswith(FACTS)
        assert probe.messages[-1].text.endswith(probe.needle.question)
        assert probe.needle.value in FACTS


def test_a_short_context_gets_no_probes() -> None:
    assert questions(asked(), seed="a", probing=Probing(min_context_chars=len(FACTS) * 2)) == ()


def test_probing_can_be_off() -> None:
    assert questions(asked(), seed="a", probing=Probing(per_capture=0, min_context_chars=10)) == ()


def test_another_seed_chooses_other_facts() -> None:
    probing = Probing(per_capture=2, min_context_chars=10)
    chosen = {
        tuple(
            probe.needle.value
            for probe in questions(asked(), seed=str(seed), probing=probing)
            if probe.needle
        )
        for seed in range(8)
    }
    assert len(chosen) > 1


def test_a_prompt_of_token_ids_has_no_place_for_a_question() -> None:
    request = parse_request(Endpoint.COMPLETIONS, b'{"model": "m", "prompt": [1, 2, 3]}')
    assert questions(request, seed="a", probing=Probing(min_context_chars=1)) == ()
