"""Which pairs of live captures come into the queue, and what is kept of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from service.redaction import mask_personal
from service.store.labels.adjudication import BlindItem, Where, export_items
from service.store.labels.kept_text import AnswerText
from service.store.sql.adjudication_tables import adjudication_items
from service.store.sql.database import Database
from tests.conftest import ValkeyServer
from tests.workers.scripted import Reply, Script, ScriptedBackend
from tests.workers.walk import (
    BROKEN,
    GOOD,
    KEYRING,
    MODEL,
    BenchMaker,
    always,
    exchange,
    orders,
    question,
    ship,
    tally,
    tier,
)
from workers.keeping import MOST_ANSWER, Keeping, cut
from workers.probes import Probing
from workers.replay import Bench, replay_batch

Backends = Callable[[Script], ScriptedBackend]
REFUSED, COMPLIED = "I'm sorry, but I can't help with that.", "Here is what you asked for."
BOTH = frozenset({"refusal", "structured_output"})
HERE = [Where(MODEL, "w4a16", "epoch of w4a16")]


def bench_with(bench: Bench, **changes: Any) -> Bench:
    given = {"evaluators": frozenset({"refusal"}), "audit": 0.0, **changes}
    return replace(bench, terms=replace(bench.terms, keeping=Keeping(**given)))


def queued(db: Database) -> list[BlindItem]:
    return export_items(db, KEYRING, HERE, actor="test", now=0.0, limit=500)


def sides(item: BlindItem) -> set[str]:
    return {item.a.text, item.b.text}


@pytest.fixture
def refusing(bench_of: BenchMaker, backend: Backends) -> Bench:
    """The candidate declines every second question; the client was always helped."""
    server = backend(lambda asked: Reply(text=REFUSED if int(asked.prompt.split()[-1]) % 2 else COMPLIED))
    return bench_of(tier("bf16", None), tier("w4a16", server.url))


def replayed(bench: Bench, redis_url: str, count: int = 8, **more: Any) -> None:
    captures = [exchange(question(f"Tell me number {n}"), COMPLIED, **more) for n in range(count)]
    replay_batch(bench, ship(redis_url, captures), delivery="1")


def test_every_pair_in_which_the_arms_differ_is_queued_with_both_answers(
    valkey: ValkeyServer, refusing: Bench
) -> None:
    bench = bench_with(refusing)
    replayed(bench, valkey.url)
    items = queued(bench.db)
    assert len(items) == tally(bench, "w4a16", "refusal").harm == 4
    assert all(sides(each) == {REFUSED, COMPLIED} for each in items)
    assert {each.turns[-1].text for each in items} == {f"Tell me number {n}" for n in (1, 3, 5, 7)}


def test_concordant_pairs_are_audited_by_a_hash_and_with_their_chance_written_down(
    valkey: ValkeyServer, refusing: Bench
) -> None:
    bench = bench_with(refusing, audit=0.4, overlap=0.5)
    replayed(bench, valkey.url, 60)
    with bench.db.read() as connection:
        rows = connection.execute(select(adjudication_items)).all()
    drawn = [row for row in rows if row.baseline_failed == row.candidate_failed]
    assert len(rows) - len(drawn) == 30
    # 40 % of 30, give or take four standard deviations; the hash decides, so a run proves little more.
    assert 2 <= len(drawn) <= 23
    assert {row.chance for row in drawn} == {0.4}
    assert {row.chance for row in rows} == {0.4, 1.0}
    assert {row.by_two for row in rows} == {True, False}


def test_nothing_is_kept_without_evaluators_nor_of_the_control_nor_of_others(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    baseline, candidate = backend(always(GOOD)), backend(always(BROKEN))
    made = bench_of(tier("bf16", None, shadow=baseline.url), tier("w4a16", candidate.url))
    for bench in (made, bench_with(made, audit=1.0, evaluators=frozenset())):
        replay_batch(bench, ship(valkey.url, orders(2)), delivery="1")
    assert queued(made.db) == []
    replay_batch(bench_with(made, audit=1.0), ship(valkey.url, orders(3)), delivery="2")
    with made.db.read() as connection:
        places = connection.execute(
            select(adjudication_items.c.tier, adjudication_items.c.evaluator).distinct()
        ).all()
    # Orders of the same text counted before: only those that are new in the epoch do.
    assert {tuple(row) for row in places} <= {("w4a16", "refusal")}


def test_what_is_asked_for_is_kept_beside_the_turns(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    bench = bench_with(
        bench_of(tier("bf16", None), tier("w4a16", backend(always(BROKEN)).url)), evaluators=BOTH
    )
    replay_batch(bench, ship(valkey.url, orders(1)), delivery="1")
    (item,) = queued(bench.db)
    assert item.evaluator == "structured_output"
    assert item.asked.startswith('JSON that satisfies {"type": "object"')
    assert sides(item) == {GOOD, BROKEN}


def test_a_recall_question_is_kept_with_the_value_that_is_asked_for(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    context = "Order number: QX-48213\nShipped to: Reykjavik\n" + "\n".join(
        f"Remark {n}: nothing of note happened on the way." for n in range(60)
    )
    right = backend(lambda asked: Reply(text="QX-48213"))
    wrong = backend(lambda asked: Reply(text="It does not say."))
    bench = bench_with(
        bench_of(
            tier("bf16", None, shadow=right.url),
            tier("w4a16", wrong.url),
            probing=Probing(per_capture=1, min_context_chars=500),
        ),
        evaluators=frozenset({"long_context_recall"}),
    )
    captures = [exchange(question(f"{context}\n\nPlease summarise."), COMPLIED)]
    replay_batch(bench, ship(valkey.url, captures), delivery="1")
    (item,) = queued(bench.db)
    assert item.asked == "the value QX-48213"
    assert sides(item) == {"QX-48213", "It does not say."}
    assert item.turns[-1].text.endswith("?") or "Order number" in item.turns[-1].text


def test_a_fault_is_told_by_its_kind_alone(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    broken = backend(lambda asked: Reply(text=GOOD, cut_off=True))
    bench = bench_with(bench_of(tier("bf16", None), tier("w4a16", broken.url)), evaluators=BOTH)
    replay_batch(bench, ship(valkey.url, orders(1)), delivery="1")
    (item,) = queued(bench.db)
    assert AnswerText(fault="cut_off") in (item.a, item.b)
    assert broken.url not in str(item)


def test_texts_are_masked_before_they_are_kept_and_what_cannot_be_masked_is_not(
    valkey: ValkeyServer, refusing: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    captures = [exchange(question("Write to ann@firm.example number 1"), COMPLIED)]
    bench = bench_with(refusing, mask=mask_personal)
    replay_batch(bench, ship(valkey.url, captures), delivery="1")
    (item,) = queued(bench.db)
    assert "ann@firm.example" not in str(item)

    def failing(text: str) -> str:
        raise KeyError(text)

    replayed(bench_with(refusing, mask=failing), valkey.url, 2)
    assert len(queued(bench.db)) == 1
    assert tally(bench, "w4a16", "refusal").n == 3
    assert "is not kept: it could not be masked" in caplog.text


def test_a_long_answer_keeps_its_beginning_and_its_end(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends
) -> None:
    flood = "I can't help. " + "\x1b[31mfill\ud800 " * 80_000 + "THE END"
    bench = bench_with(bench_of(tier("bf16", None), tier("w4a16", backend(always(flood)).url)), audit=1.0)
    replay_batch(bench, ship(valkey.url, [exchange(question("Say it"), COMPLIED)]), delivery="1")
    (item,) = queued(bench.db)
    text = max((item.a.text, item.b.text), key=len)
    assert len(text) < MOST_ANSWER + 100
    assert text.startswith("I can't help.")
    assert text.endswith("THE END")
    assert "characters left out" in text
    assert cut("x" * 100, 200) == "x" * 100
    assert cut("0123456789" * 10, 40) == "0123456789\n[... 60 characters left out ...]\n" + "0123456789" * 3


def test_a_long_history_keeps_its_latest_turns(valkey: ValkeyServer, refusing: Bench) -> None:
    bench = bench_with(refusing)
    turns = [{"role": "user", "content": f"turn {n} " + "x" * 30_000} for n in range(6)]
    body = question("Last question number 1")
    body["messages"] = [*turns, *body["messages"]]
    replay_batch(bench, ship(valkey.url, [exchange(body, COMPLIED)]), delivery="1")
    (item,) = queued(bench.db)
    assert item.turns[-1].text == "Last question number 1"
    assert item.turns[0].text == "[... 3 earlier turns left out ...]"
    assert sum(len(turn.text) for turn in item.turns) < 70_000
