"""What a batch leaves behind beyond its scores: requests for the corpus, answers, retries."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from sqlalchemy import select

from evaluators.exchange import Fault, FaultKind
from service.redaction import mask_personal
from service.store.kept.corpus_members import Member, manifest, opened
from service.store.kept.corpus_plan import TRAFFIC, CorpusPlan
from service.store.kept.prompt_prefixes import read_prefixes
from service.store.sql.corpus_tables import kept_answers
from service.store.sql.database import Database
from service.store.traffic.resends import resend_rates
from tests.conftest import ValkeyServer
from tests.workers.scripted import Reply, Script, ScriptedBackend
from tests.workers.walk import (
    GOOD,
    KEYRING,
    MODEL,
    BenchMaker,
    always,
    exchange,
    question,
    ship,
    tally,
    tier,
)
from workers.drawing import Drawing
from workers.kept import Kept, open_kept
from workers.probes import Probing
from workers.replay import Bench, replay_batch

Backends = Callable[[Script], ScriptedBackend]
BenchOf = Callable[..., Bench]
PLAN = CorpusPlan(per_stratum=3)


@pytest.fixture
def bench(bench_of: BenchMaker, backend: Backends) -> BenchOf:
    """A bench over a baseline and a candidate that both answer well, for a drawing."""
    url = backend(always(GOOD)).url

    def make(drawing: Drawing | None, **more: object) -> Bench:
        return bench_of(
            tier("bf16", None, shadow=url),
            tier("w4a16", url),
            drawing=drawing,
            **more,  # type: ignore[arg-type]
        )

    return make


def members(db: Database) -> list[Member]:
    return list(opened(db, KEYRING, model=MODEL, name=TRAFFIC, per_stratum=3, now=time.time()))


def kept(db: Database) -> list[Kept]:
    with db.read() as connection:
        rows = connection.execute(select(kept_answers.c.capture_id, kept_answers.c.sealed)).all()
    from evaluators.exchange import AnswerRule

    return [open_kept(row.capture_id, bytes(row.sealed), KEYRING, lambda model: AnswerRule()) for row in rows]


def test_scored_captures_leave_some_requests_of_each_stratum_masked_and_the_captures_go(
    valkey: ValkeyServer, bench: BenchOf, db: Database
) -> None:
    chinese = [question(f"第{n}号订单，电话13800138000，请回复") for n in range(2)]
    english = [question(f"order {n} of ann@example.org, please", user="somebody") for n in range(9)]
    made = bench(Drawing(plan=PLAN, salt=b"s", mask=mask_personal))
    ids = ship(valkey.url, [exchange(body) for body in (*chinese, *english)])
    replay_batch(made, ids, delivery="1")
    found = manifest(db, model=MODEL, name=TRAFFIC, per_stratum=3, now=time.time())
    assert [(each.stratum, each.tenant, each.seen, each.members) for each in found.strata] == [
        ("short/en", "t", 9, 3),
        ("short/zh", "t", 2, 2),
    ]
    for member in members(db):
        body = json.loads(member.body)
        assert "user" not in body
        assert "ann@example.org" not in member.body.decode()
        assert "13800138000" not in body["messages"][0]["content"]
        assert member.listed.digest != member.listed.original
        assert member.path == "/v1/chat/completions"
    assert not made.captures.present(ids)


def test_which_are_drawn_depends_on_no_worker_and_no_order(
    valkey: ValkeyServer, bench: BenchOf, db: Database
) -> None:
    bodies = [question(f"order {n}") for n in range(12)]
    drawing = Drawing(plan=PLAN, salt=b"s")
    digests = []
    for turn, order in enumerate((bodies, bodies[::-1])):
        ids = ship(
            valkey.url, [exchange(body, started_at=1e9 + turn * PLAN.retention_seconds) for body in order]
        )
        for part in range(3):
            replay_batch(bench(drawing), ids[part::3], delivery=f"{turn}{part}")
        at = 1e9 + turn * PLAN.retention_seconds
        digests.append(manifest(db, model=MODEL, name=TRAFFIC, per_stratum=3, now=at).digest)
    assert digests[0] == digests[1]


def test_a_mask_that_fails_keeps_nothing_and_costs_no_score(
    valkey: ValkeyServer, bench: BenchOf, db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(text: str) -> str:
        raise RuntimeError("no mask today")

    made = bench(Drawing(plan=PLAN, answers=1.0, salt=b"s", mask=broken))
    replay_batch(made, ship(valkey.url, [exchange(question("hello", structured=True), GOOD)]), delivery="1")
    assert members(db) == []
    assert kept(db) == []
    assert "it could not be masked" in caplog.text
    found = tally(made, "w4a16", "structured_output")
    assert found is not None
    assert found.n == 1


def test_what_the_baseline_refuses_is_not_drawn(valkey: ValkeyServer, bench: BenchOf, db: Database) -> None:
    refused = exchange(question("hello"), status=400)
    replay_batch(bench(Drawing(plan=PLAN, salt=b"s")), ship(valkey.url, [refused]), delivery="1")
    assert manifest(db, model=MODEL, name=TRAFFIC, per_stratum=3, now=time.time()).strata == ()


def test_nothing_is_kept_without_a_drawing(valkey: ValkeyServer, bench: BenchOf, db: Database) -> None:
    replay_batch(bench(None), ship(valkey.url, [exchange(question("hello"))]), delivery="1")
    assert members(db) == []
    assert resend_rates(db, MODEL) == {}


def test_a_share_of_captures_is_kept_with_every_answer_masked(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends, db: Database
) -> None:
    baseline, candidate = backend(always("Ask ann@example.org.")), backend(always("Call 13800138000."))
    made = bench_of(
        tier("bf16", None, shadow=baseline.url),
        tier("w4a16", candidate.url),
        drawing=Drawing(plan=CorpusPlan(per_stratum=0), answers=0.5, salt=b"s"),
    )
    captures = [exchange(question(f"who is bob{n}@example.org?"), "Bob, 13800138000.") for n in range(16)]
    replay_batch(made, ship(valkey.url, captures), delivery="1")
    found = kept(db)
    assert 3 <= len(found) <= 13
    for each in found:
        assert {slot.tier: outcome.text for slot, outcome in each.outcomes.items() if not slot.again} == {
            "bf16": "Bob, 13800000000.",
            "w4a16": "Call 13800000000.",
        }
        assert each.request.messages[0].text == "who is masked@example.com?"
        assert {compared.epoch for compared in each.compared} == {"epoch of bf16", "epoch of w4a16"}
        assert each.live == {0}


def test_a_mask_that_leaves_no_word_as_it_was_leaves_what_became_of_an_answer(
    valkey: ValkeyServer, bench_of: BenchMaker, backend: Backends, db: Database
) -> None:
    baseline, candidate = backend(always(GOOD)), backend(lambda asked: Reply(status=500))
    made = bench_of(
        tier("bf16", None, shadow=baseline.url),
        tier("w4a16", candidate.url),
        drawing=Drawing(
            plan=CorpusPlan(per_stratum=0), answers=1.0, salt=b"s", mask=lambda text: "x" * len(text)
        ),
    )
    replay_batch(made, ship(valkey.url, [exchange(question("hello"))]), delivery="1")
    [found] = kept(db)
    [fault] = [outcome for slot, outcome in found.outcomes.items() if slot.tier == "w4a16"]
    assert isinstance(fault, Fault)
    assert fault.kind is FaultKind.SERVER_ERROR


def test_recall_questions_whose_value_is_masked_are_not_kept(
    valkey: ValkeyServer, bench: BenchOf, db: Database
) -> None:
    text = "The invoice number is INV-20391.\nThe contact address is ann@example.org.\n\nSummarise this."
    probing = Probing(per_capture=8, min_context_chars=0)
    made = bench(Drawing(plan=PLAN, answers=1.0, salt=b"s"), probing=probing)
    replay_batch(made, ship(valkey.url, [exchange(question(text))]), delivery="1")
    [found] = kept(db)
    asked = [each.needle.value for each in found.questions.values() if each.needle is not None]
    items = {slot.item for slot in found.outcomes}
    assert "INV-20391" in asked
    assert not any("@" in value for value in asked)
    assert len(items) > len(asked)


def test_a_prompt_that_its_tenant_sends_again_is_counted_once(
    valkey: ValkeyServer, bench: BenchOf, db: Database
) -> None:
    now = time.time()
    made = bench(Drawing(plan=CorpusPlan(per_stratum=0), salt=b"s", share=0.5))
    again = [exchange(question("hello"), started_at=now + n) for n in range(2)]
    other = exchange(question("good day"), started_at=now)
    ids = ship(valkey.url, [*again, other])
    replay_batch(made, ids, delivery="1")
    replay_batch(made, ids, delivery="2")
    found = resend_rates(db, MODEL)["bf16"]
    assert (found.total, found.resent) == (3, 1)
    assert found.rate == pytest.approx(1 / 1.5)


def test_the_beginnings_of_prompts_are_kept_as_hashes_and_none_of_their_text(
    valkey: ValkeyServer, bench: BenchOf, db: Database
) -> None:
    made = bench(Drawing(plan=CorpusPlan(per_stratum=0), salt=b"s", share=0.5, prefixes=9))
    shared = "the same long beginning " * 40
    bodies = [question(f"{shared} and then {name}") for name in ("ann", "bob")]
    replay_batch(made, ship(valkey.url, [exchange(body, started_at=1e9) for body in bodies]), delivery="1")
    one, other = read_prefixes(db, MODEL)
    assert (one.share, one.together, one.tenant, one.at) == (0.5, False, "t", 1e9)
    assert one.tokens == pytest.approx(len(shared) / 4, abs=10)
    assert len(one.named) == len(other.named) == 4
    assert one.named[:3] == other.named[:3]
    assert one.named[3] != other.named[3]


@pytest.mark.parametrize(
    "drawing", [Drawing(salt=b"s"), Drawing(prefixes=9)], ids=["none asked for", "no key"]
)
def test_without_a_key_or_a_wish_no_hashes_are_kept(
    drawing: Drawing, valkey: ValkeyServer, bench: BenchOf, db: Database
) -> None:
    replay_batch(bench(drawing), ship(valkey.url, [exchange(question("hello"))]), delivery="1")
    assert read_prefixes(db, MODEL) == []
