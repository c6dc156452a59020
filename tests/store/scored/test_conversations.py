"""Which conversation a request belongs to."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import pytest

from service.store.scored.conversations import conversation_of


def chain(*messages):
    """Chained hashes as `wire.message_chain` makes them."""
    links, last = [], ""
    for message in messages:
        last = sha256(f"{last}|{message}".encode()).hexdigest()
        links.append(last)
    return links


@pytest.fixture
def talk(database):
    def ask(*messages, explicit=None, model="m", tenant="t"):
        return conversation_of(
            database, model=model, tenant=tenant, explicit=explicit, chain=chain(*messages)
        )

    return ask


def test_turns_of_one_conversation_belong_together_in_any_order(talk):
    first = talk("s", "u1")
    assert talk("s", "u1", "a1", "u2") == first
    assert talk("s", "u1", "a1", "u2", "a2", "u3") == first
    late = talk("x", "u1", "a1", "u2")
    assert talk("x", "u1") == late != first


def test_the_same_list_again_is_the_same_conversation(talk):
    assert talk("s", "u1") == talk("s", "u1")


def test_a_shared_beginning_that_nobody_sent_as_such_binds_nothing(talk):
    few_shot = ("system", "example question", "example answer")
    assert talk(*few_shot, "question one") != talk(*few_shot, "question two")


def test_a_beginning_that_somebody_sent_binds_both_of_its_branches(talk):
    root = talk("s", "u1")
    assert talk("s", "u1", "a1", "u2") == talk("s", "u1", "other answer", "u2") == root


def test_a_beginning_sent_last_joins_one_of_its_branches(talk):
    branches = {talk("s", "u1", "a1", "u2"), talk("s", "u1", "other", "u2")}
    assert len(branches) == 2
    joined = talk("s", "u1")
    assert joined in branches
    assert talk("s", "u1", "third", "u2") == joined


def test_models_and_tenants_keep_apart(talk):
    assert len({talk("s"), talk("s", model="n"), talk("s", tenant="u")}) == 3


def test_an_explicit_id_wins_over_the_messages(talk):
    one = talk("s", "u1", explicit="chat-1")
    assert talk("something else", explicit="chat-1") == one
    assert talk("s", "u1", explicit="chat-2") != one
    assert talk("s", "u1", explicit="chat-1", tenant="other") != one
    assert talk("s", "u1") != one


def test_neither_id_nor_messages_is_an_error(talk):
    with pytest.raises(ValueError, match="needs its message chain"):
        talk()
    assert talk(explicit="chat")


def test_turns_seen_at_once_agree(talk):
    lists = [[f"m{number}" for number in range(length)] for length in range(1, 9)]
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda messages: talk(*messages), lists))) == 1
