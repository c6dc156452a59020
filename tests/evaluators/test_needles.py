"""Natural needles: unique facts under unambiguous names, outside the closing question."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.exchange import Endpoint, Message, Needle, Request, ToolCall
from evaluators.needles import mine
from evaluators.values import normal, occurrences
from tests.patience import here

Make = Callable[..., Request]
FILLER = "The river near the old market was quiet, and the garden stayed bright all day. "


def chat(*turns: tuple[str, str]) -> Request:
    return Request(
        endpoint=Endpoint.CHAT_COMPLETIONS,
        model="m",
        messages=tuple(Message(role=role, text=text) for role, text in turns),
    )


def asked(context: str, question: str = "\n\nPlease sum this up.") -> Request:
    return chat(("user", context + question))


def facts(request: Request, limit: int = 50) -> list[tuple[str, str]]:
    return [(n.key, n.value) for n in mine(request, seed=1, limit=limit, min_chars=0)]


@pytest.mark.parametrize(
    ("sentence", "key", "value", "question"),
    [
        ("The magic number is 73512.", "magic number", "73512", "What is the magic number?"),
        (
            "The access code of the blue room is 4821.",
            "access code of the blue room",
            "4821",
            "What is the access code of the blue room?",
        ),
        ("Invoice number: INV-20391\n", "invoice number", "INV-20391", "What is the invoice number?"),
        ("- **Total amount**: $1,234.50\n", "total amount", "1,234.50", "What is the total amount?"),
        ("The total due was 45,000 dollars.", "total due", "45,000", "What is the total due?"),
        ("Due date: 2024-03-05\n", "due date", "2024-03-05", "What is the due date?"),
        ("The start date is March 5, 2024.", "start date", "March 5, 2024", "What is the start date?"),
        (
            "Contact email: a.b@acme-corp.com\n",
            "contact email",
            "a.b@acme-corp.com",
            "What is the contact email?",
        ),
        ('{"order_id": "ZX-99-17"}', "order_id", "ZX-99-17", "What is the order_id?"),
        ("订单号为20391。", "订单号", "20391", "订单号是什么？"),
        ("蓝色房间的门禁密码是4821。", "蓝色房间的门禁密码", "4821", "蓝色房间的门禁密码是什么？"),
        ("合同编号：HT-2023-0091，", "合同编号", "HT-2023-0091", "合同编号是什么？"),
        ("本次总金额:¥56,700.00 元", "总金额", "56,700.00", "总金额是什么？"),
        ("验收日期是2024年5月6日。", "验收日期", "2024年5月6日", "验收日期是什么？"),
        ("The warehouse PIN is `A7F-99Q`.", "warehouse PIN", "A7F-99Q", "What is the warehouse PIN?"),
        ("Our support hotline is 555-0199.", "support hotline", "555-0199", "What is the support hotline?"),
    ],
)
def test_a_fact_becomes_a_question_that_the_text_answers(
    sentence: str, key: str, value: str, question: str
) -> None:
    (needle,) = mine(asked(FILLER * 3 + sentence + " " + FILLER * 3), seed=1, limit=5, min_chars=100)
    assert (needle.key, needle.value, needle.question) == (key, value, question)
    assert 0.3 < needle.depth < 0.7


@pytest.mark.parametrize(
    "context",
    [
        "The magic number is 73512. And 73512 is nice.",  # twice
        "The magic number is 73,512. They paid 73512.00 for it.",  # twice, written otherwise
        "The magic number is 73512. The magic number is 99999.",  # the key names two values
        "The magic number is 73512. The magic number is large.",  # something else is said of the key
        "Total cost: 4000\nTotal cost: ten\n",
        "The magic number is 7.",  # guessable
        "The room of 4821 is 4821.",
        "He said that it is 73512.",
        "It is 73512.",
        "The result of v73512x was fine, 73512x",
        "I think 73512 is fine. See 2024-03-05.",
        "The bonus is 15% of pay. The share is 4821%.",
        "他说密码是778899。",
        "",
    ],
)
def test_what_is_ambiguous_guessable_or_said_twice_is_no_needle(context: str) -> None:
    assert facts(asked(context + "\n" + FILLER)) == []


def test_of_two_keys_that_could_be_meant_only_the_longer_is_asked() -> None:
    context = "The cost is 50300. The grand cost of the trip is 90250.\n"
    assert facts(asked(context + FILLER)) == [("grand cost of the trip", "90250")]


def test_the_closing_question_yields_no_needle_and_a_value_in_it_is_not_unique() -> None:
    assert facts(asked(FILLER, "\n\nThe magic number is 73512. Is that right?")) == []
    assert facts(asked("The magic number is 73512.", "\n\nIs 73512 a prime?")) == []
    assert facts(asked("The magic number is 73512.", "")) == []
    assert facts(asked("The magic number is 73512.\n\n", "What is the magic number?")) == [
        ("magic number", "73512")
    ]


@pytest.mark.parametrize(
    ("before", "asked_for"),
    [
        ("What is the door code in these notes?", True),
        ("Read this and tell me the door code.", True),
        ("The door code is 4821? No!", False),
        ("Tell me whether the door code is still 9977.", False),
        ("Yesterday they talked about the door code.", False),
        ("9977 is the door code.", False),
    ],
)
def test_a_question_ahead_of_the_context_names_a_key_and_says_nothing(before: str, asked_for: bool) -> None:
    request = asked(f"{before}\n\n{FILLER}The door code is 4821. {FILLER}")
    assert facts(request) == ([("door code", "4821")] if asked_for else [])


def test_a_question_in_chinese_ahead_of_the_context_says_nothing() -> None:
    assert facts(asked("请告诉我订单号。\n\n订单号为20391。")) == [("订单号", "20391")]
    assert facts(asked("我们谈到了订单号。\n\n订单号为20391。")) == []


def test_the_last_user_turn_is_the_one_with_the_closing_question() -> None:
    request = chat(
        ("system", "The ticket number is T-55512."),
        ("user", "The door code is 4821."),
        ("assistant", "Noted. The reference number is R-10001."),
        ("user", "The locker code is 9977."),
        ("tool", "The stock count is 31415."),
    )
    assert facts(request) == [
        ("ticket number", "T-55512"),
        ("door code", "4821"),
        ("reference number", "R-10001"),
        ("stock count", "31415"),
    ]


def test_a_value_in_the_arguments_of_a_call_counts_as_said() -> None:
    call = ToolCall(name="look_up", arguments='{"code":4821}')
    request = Request(
        endpoint=Endpoint.CHAT_COMPLETIONS,
        model="m",
        messages=(
            Message(role="user", text="The door code is 4821.\n\nOpen it."),
            Message(role="assistant", tool_calls=(call,)),
        ),
    )
    assert facts(request) == []


def test_one_user_message_of_context_and_question_yields_needles() -> None:
    """The common shape of retrieval-augmented prompts."""
    passages = "\n\n".join(f"[{n}] {FILLER}The code of ward {chr(65 + n)} is {41017 + n}." for n in range(8))
    request = asked(f"Answer from the passages.\n\n{passages}", "\n\nQuestion: which wards are there?")
    assert len(facts(request)) == 8


def test_short_contexts_and_a_limit_of_none_yield_nothing() -> None:
    request = asked("The magic number is 73512.\n" + FILLER)
    assert mine(request, seed=1, limit=5, min_chars=10_000) == ()
    assert mine(request, seed=1, limit=0, min_chars=0) == ()
    assert mine(chat(("user", "")), seed=1, limit=5, min_chars=0) == ()
    assert mine(chat(), seed=1, limit=5, min_chars=0) == ()
    assert facts(chat(("system", "The magic number is 73512."))) == [("magic number", "73512")]


def many(count: int) -> Request:
    return asked("".join(f"{FILLER}The code of ward {n} is {41017 + 37 * n}. " for n in range(count)))


def test_the_same_seed_gives_the_same_needles_and_another_seed_others() -> None:
    request = many(60)
    first = mine(request, seed="a", limit=6, min_chars=0)
    assert first == mine(request, seed="a", limit=6, min_chars=0)
    assert len({mine(request, seed=seed, limit=6, min_chars=0) for seed in range(5)}) > 1


def test_needles_are_spread_over_the_depth_in_order() -> None:
    found = mine(many(60), seed=3, limit=6, min_chars=0)
    assert len(found) == 6
    assert [int(needle.depth * 6) for needle in found] == [0, 1, 2, 3, 4, 5]


def test_one_deep_stretch_may_fill_the_limit() -> None:
    request = asked(FILLER * 50 + "The door code is 48211. The locker code is 99772. The gate code is 31415.")
    assert len(mine(request, seed=3, limit=3, min_chars=0)) == 3


def test_many_candidates_are_thinned_before_they_are_compared() -> None:
    assert len(mine(many(600), seed=3, limit=20, min_chars=0)) == 20


def test_a_long_context_is_mined_in_linear_time() -> None:
    request = asked(FILLER * 3000 + "The magic number is 73512. " + "a is " * 20_000 + "1 2 3: 4= " * 10_000)
    began = time.process_time()
    assert ("magic number", "73512") in facts(request)
    took = time.process_time() - began
    assert took < here(3)


# --- an exact reader answers every question from the text alone, a reader of another text none ---


def read(context: str, needle: Needle) -> str:
    """Answers by finding the key and copying what follows it."""
    after = context.partition(needle.key)[2] or context.lower().partition(needle.key.lower())[2]
    return after[:60]


def ward(n: int) -> str:
    code = int(hashlib.sha256(str(n).encode()).hexdigest()[:8], 16) % 90_000 + 10_000
    return f"The code of ward {n} is {code}."


def test_an_exact_reader_answers_all_and_a_reader_of_another_context_none() -> None:
    contexts = [" ".join(f"{FILLER}{ward(100 * c + n)}" for n in range(20)) for c in range(5)]
    requests = [asked(context) for context in contexts]
    right = wrong = total = 0
    for number, request in enumerate(requests):
        for needle in mine(request, seed=1, limit=8, min_chars=0):
            total += 1
            own, other = contexts[number], contexts[(number + 1) % 5]
            right += occurrences(normal(needle.value), normal(read(own, needle)))
            wrong += occurrences(normal(needle.value), normal(read(other, needle)))
    assert (right, wrong) == (total, 0)
    assert total == 40


def test_a_context_of_many_thousand_facts_is_mined_in_seconds() -> None:
    context = "\n".join(
        f"Field {chr(97 + n % 8)}{n} code: V-{n * 7919 % 10**7 + 10**8}" for n in range(20_000)
    )
    began = time.process_time()
    found = mine(asked(context), seed=1, limit=8, min_chars=0)
    took = time.process_time() - began
    assert took < here(5)
    assert len(found) == 8


@settings(deadline=None)
@given(st.lists(st.text(max_size=80), max_size=4), st.integers(0, 5))
def test_any_text_is_mined_without_error_and_every_needle_is_unique(texts: list[str], seed: int) -> None:
    request = chat(*(("user", text + " The magic number is 73512. \n\nok?") for text in texts))
    whole = normal("\n\n".join(message.text for message in request.messages))
    for needle in mine(request, seed=seed, limit=5, min_chars=0):
        assert occurrences(normal(needle.value), whole) == 1
        assert needle.value not in needle.question
        assert 0 <= needle.depth <= 1
