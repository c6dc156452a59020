from __future__ import annotations

import pytest

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


PROSE = "\n\n".join(f"Paragraph {n} says little, and says it slowly." for n in range(40))
PLANTED = Probing(per_capture=2, planted=4, min_context_chars=10)


def test_where_a_quarter_of_the_depth_has_no_fact_one_is_planted() -> None:
    probes = questions(asked(f"{FACTS}\n\n{PROSE}\n\nSum it up."), seed="a", probing=PLANTED)
    needles = [probe.needle for probe in probes if probe.needle]
    assert len(needles) == len(probes) == 2 + 3
    assert [int(needle.depth * 4) for needle in needles] == [0, 0, 1, 2, 3]
    for probe, needle in zip(probes[2:], needles[2:], strict=True):
        text = probe.messages[-1].text
        assert text.index(needle.value) / len(text) == pytest.approx(needle.depth, abs=0.12)
        assert all(text.count(value) == 1 for value in (needle.value, *needle.others))
        assert text.endswith(f"Sum it up.\n\nNow answer only this: {needle.question}")
    assert all(needle.value not in FACTS for needle in needles[2:])


def test_planted_facts_are_of_all_kinds_and_in_the_language_of_the_context() -> None:
    chinese = "\n\n".join(f"第{n}段说得很少，也说得很慢。" for n in range(40))
    probes = questions(asked(f"{chinese}\n\n请总结。"), seed="a", probing=PLANTED)
    assert len(probes) == 4
    assert len({len(probe.needle.others) for probe in probes if probe.needle}) == 2
    assert all("现在只回答这个问题：" in probe.messages[-1].text for probe in probes)
    assert probes == questions(asked(f"{chinese}\n\n请总结。"), seed="a", probing=PLANTED)


@pytest.mark.parametrize(
    "probing",
    [
        Probing(per_capture=0, planted=4, min_context_chars=10),
        Probing(per_capture=2, planted=4, min_context_chars=10**6),
        Probing(per_capture=2, planted=0, min_context_chars=10),
    ],
)
def test_nothing_is_planted_unless_asked_for_nor_where_nothing_is_probed(probing: Probing) -> None:
    assert questions(asked(f"{PROSE}\n\nSum it up."), seed="a", probing=probing) == ()


def test_a_bare_question_has_no_place_for_a_fact() -> None:
    assert questions(asked("What is it, then?"), seed="a", probing=PLANTED) == ()
