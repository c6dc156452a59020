"""The corpus: who stays, whoever draws and in whatever order; and what leaves."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import pytest
from sqlalchemy import event, func, select

from service.store.kept.corpus import (
    CorpusFull,
    Drawn,
    Place,
    bytes_used,
    draw_within,
    place_of,
    rank_of,
    rooms,
    seal_request,
    take_in,
)
from service.store.kept.corpus_members import corpora, digest_of, has_any, listed, manifest, opened
from service.store.kept.corpus_plan import TRAFFIC, CorpusPlan
from service.store.kept.forgetting import expire_kept, forget_corpus, forget_tenant
from service.store.scored.pairs import record
from service.store.sql.corpus_tables import corpus
from service.store.sql.database import Database

SALT = b"salt"
DAY = 86_400.0
PLAN = CorpusPlan(per_stratum=3, retention_seconds=28 * DAY)

Draw = Callable[..., Drawn]


@pytest.fixture
def request_of(keyring) -> Draw:
    """A sealed request; name what differs."""

    def build(
        number: int,
        *,
        stratum: str = "short/en",
        tenant: str = "t1",
        at: float = 100 * DAY,
        size: int = 10,
        place: Place | None = None,
        **changes: object,
    ) -> Drawn:
        where = place or place_of(PLAN, model="m", stratum=stratum, tenant=tenant, at=at)
        body = f'{{"model":"m","messages":[{{"role":"user","content":"{number}{"x" * size}"}}]}}'.encode()
        digest = sha256(body).hexdigest()
        fields: dict[str, object] = {
            "place": where,
            "digest": digest,
            "original": digest,
            "rank": rank_of(SALT, digest),
            "arrived_at": at,
            "blob": seal_request(
                where,
                digest=digest,
                path="/v1/chat/completions",
                body=body,
                conversation=f"talk {number}",
                at=at,
                keyring=keyring,
            ),
        }
        return Drawn(**{**fields, **changes})  # type: ignore[arg-type]

    return build


def draw(db: Database, drawn: Iterable[Drawn], plan: CorpusPlan = PLAN) -> None:
    """As workers do: those without a chance are counted alone."""
    for each in drawn:
        last = rooms(db, plan, [each.place])[each.place.key]
        with db.write() as connection:
            draw_within(db, connection, plan, each.place, each if each.rank < last else None)


def digests(db: Database, now: float = 101 * DAY, name: str = TRAFFIC) -> set[str]:
    return {each.digest for each in listed(db, model="m", name=name, per_stratum=3, now=now)}


def test_of_each_stratum_those_with_the_smallest_ranks_stay_in_whatever_order_they_come(
    database: Database, request_of: Draw
) -> None:
    requests = [
        request_of(number, stratum=f"{'long' if number % 4 == 0 else 'short'}/en") for number in range(40)
    ]
    random.Random(1).shuffle(requests)
    draw(database, requests)
    for stratum in ("long/en", "short/en"):
        of_it = sorted(
            (each for each in requests if each.place.stratum == stratum), key=lambda each: each.rank
        )
        kept = listed(database, model="m", name=TRAFFIC, per_stratum=3, now=101 * DAY)
        assert [each.digest for each in kept if each.stratum == stratum] == [
            each.digest for each in of_it[:3]
        ]
    found = manifest(database, model="m", name=TRAFFIC, per_stratum=3, now=101 * DAY)
    assert [(each.stratum, each.seen, each.members) for each in found.strata] == [
        ("long/en", 10, 3),
        ("short/en", 30, 3),
    ]


def test_samples_of_several_periods_are_one_sample_and_leave_with_their_period(
    database: Database, request_of: Draw
) -> None:
    requests = [request_of(number, at=(100 + number) * DAY) for number in range(20)]
    draw(database, requests)
    best = sorted(requests, key=lambda each: each.rank)
    assert digests(database, now=120 * DAY) == {each.digest for each in best[:3]}
    first_end = min(each.place.expires_at or 0.0 for each in requests)
    later = [each for each in best if (each.place.expires_at or 0.0) > first_end]
    assert len(later) < len(best)
    assert digests(database, now=first_end) == {each.digest for each in later[:3]}
    gone = expire_kept(database, now=first_end)
    assert gone.requests > 0
    assert digests(database, now=first_end) == {each.digest for each in later[:3]}
    expire_kept(database, now=1000 * DAY)
    assert corpora(database) == []


def test_every_request_is_gone_within_its_retention_and_stays_for_three_quarters_of_it() -> None:
    for at in (0.0, 1.0, 6.9 * DAY, 7 * DAY, 1234567890.5):
        _, expires_at = PLAN.period_of(at)
        assert 21 * DAY < expires_at - at <= 28 * DAY


def test_the_same_request_is_kept_once_and_seen_as_often_as_it_comes(
    database: Database, request_of: Draw
) -> None:
    draw(database, [request_of(1), request_of(1), request_of(1)])
    found = manifest(database, model="m", name=TRAFFIC, per_stratum=3, now=101 * DAY)
    assert (len(found.members), found.strata[0].seen) == (1, 3)


def test_a_member_opens_with_its_weight_and_conversation(
    database: Database, request_of: Draw, keyring
) -> None:
    draw(database, [request_of(number) for number in range(12)])
    members = list(opened(database, keyring, model="m", name=TRAFFIC, per_stratum=3, now=101 * DAY))
    assert {each.weight for each in members} == {4.0}
    assert all(sha256(each.body).hexdigest() == each.listed.digest for each in members)
    assert all(each.conversation and each.conversation.startswith("talk ") for each in members)


def test_what_is_sealed_with_a_key_that_is_gone_is_left_out_and_told(
    database: Database, request_of: Draw, caplog
) -> None:
    from service.store.redis.capture import Keyring

    draw(database, [request_of(1)])
    other = Keyring(current="new", keys={"new": bytes(32)})
    assert list(opened(database, other, model="m", name=TRAFFIC, per_stratum=3, now=101 * DAY)) == []
    assert "sealed with key 'k2'" in caplog.text


def test_no_text_can_be_read_in_the_database(database: Database, request_of: Draw) -> None:
    draw(database, [request_of(1, size=400)])
    with database.read() as connection:
        [sealed] = connection.execute(select(corpus.c.sealed)).scalars()
    assert b"xxxx" not in bytes(sealed)


def test_beyond_the_limit_in_bytes_the_fullest_stratum_gives_up_its_last(
    database: Database, request_of: Draw
) -> None:
    one = len(request_of(0).blob)
    plan = CorpusPlan(per_stratum=10, retention_seconds=28 * DAY, max_bytes=6 * (one + 8))
    many = [request_of(number) for number in range(10)]
    few = [request_of(number, tenant="t2") for number in range(100, 102)]
    draw(database, [*many[:5], *few, *many[5:]], plan)
    with database.read() as connection:
        assert bytes_used(connection) <= plan.max_bytes
        by_tenant = dict(
            connection.execute(select(corpus.c.tenant, func.count()).group_by(corpus.c.tenant)).all()
        )
    assert by_tenant["t2"] == 2
    assert 3 <= by_tenant["t1"] <= 4
    left = {each.digest for each in listed(database, model="m", name=TRAFFIC, per_stratum=10, now=101 * DAY)}
    best = sorted(many, key=lambda each: each.rank)
    assert {each.digest for each in best[:2]} <= left


def test_a_limit_that_was_lowered_is_kept_to_at_the_next_draw_by_asking_once_for_each_stratum(
    database: Database, request_of: Draw
) -> None:
    one = len(request_of(0).blob)
    wide = CorpusPlan(per_stratum=40, retention_seconds=28 * DAY)
    many = [request_of(number) for number in range(100, 130)]
    few = [request_of(number, tenant="t2") for number in range(200, 206)]
    draw(database, [*many, *few], wide)
    tight = CorpusPlan(per_stratum=40, retention_seconds=28 * DAY, max_bytes=6 * (one + 8))
    statements: list[str] = []

    def listen(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    with database.write() as connection:
        event.listen(connection, "before_cursor_execute", listen)
        draw_within(database, connection, tight, few[0].place, None)
        assert sum("SELECT" in each for each in statements) == 0, "what is not drawn is only counted"
        statements.clear()
        draw_within(database, connection, tight, few[0].place, few[0])
        assert sum("DELETE" in each for each in statements) == 2
        assert bytes_used(connection) <= tight.max_bytes
    left = listed(database, model="m", name=TRAFFIC, per_stratum=40, now=101 * DAY)
    by_tenant = {tenant: {each.digest for each in left if each.tenant == tenant} for tenant in ("t1", "t2")}
    assert {tenant: len(digests) for tenant, digests in by_tenant.items()} == {"t1": 3, "t2": 3}
    for tenant, drawn in (("t1", many), ("t2", few)):
        best = sorted(drawn, key=lambda each: each.rank)[:3]
        assert by_tenant[tenant] == {each.digest for each in best}


def test_nothing_is_kept_where_none_is_asked_for(database: Database, request_of: Draw) -> None:
    plan = CorpusPlan(per_stratum=0)
    draw(database, [request_of(1)], plan)
    assert digests(database) == set()


def imported(request_of: Draw, numbers: Iterable[int], name: str = "mine") -> list[Drawn]:
    place = Place(model="m", name=name, stratum="short/en", tenant="")
    return [request_of(number, place=place, label=f"id-{number}") for number in numbers]


def test_an_import_is_kept_whole_once_and_until_it_is_forgotten(database: Database, request_of: Draw) -> None:
    assert take_in(database, PLAN, imported(request_of, [1, 2, 3, 4, 5, 5])) == 5
    assert take_in(database, PLAN, imported(request_of, [5, 6])) == 1
    assert len(digests(database, now=10_000 * DAY, name="mine")) == 6
    expire_kept(database, now=10_000 * DAY)
    assert corpora(database) == [("m", "mine")]
    assert forget_corpus(database, model="m", name="mine").requests == 6
    assert corpora(database) == []


def test_an_import_that_does_not_fit_changes_nothing(database: Database, request_of: Draw) -> None:
    with pytest.raises(CorpusFull, match=r"raise it, import less, or forget"):
        take_in(database, CorpusPlan(max_bytes=100), imported(request_of, range(5)))
    assert corpora(database) == []


def test_whether_there_is_any_request_is_what_the_list_would_say(
    database: Database, request_of: Draw
) -> None:
    draw(database, [request_of(1, at=100 * DAY)])
    take_in(database, PLAN, imported(request_of, [1]))
    end = request_of(1, at=100 * DAY).place.expires_at
    assert end is not None
    for model, name, per_stratum, now, found in (
        ("m", TRAFFIC, 3, end - 1, True),
        ("m", TRAFFIC, 3, end, False),
        ("m", TRAFFIC, 0, end - 1, False),
        ("m", "mine", 0, 10_000 * DAY, True),
        ("m", "none", 3, end - 1, False),
        ("another", TRAFFIC, 3, end - 1, False),
    ):
        asked = {"model": model, "name": name, "per_stratum": per_stratum, "now": now}
        assert has_any(database, **asked) is found is bool(listed(database, **asked))


def test_the_digest_is_of_the_requests_and_of_nothing_else(database: Database, request_of: Draw) -> None:
    take_in(database, PLAN, imported(request_of, [1, 2, 3], name="a"))
    take_in(database, PLAN, imported(request_of, [3, 1, 2], name="b"))
    take_in(database, PLAN, imported(request_of, [1, 2], name="c"))
    a, b, c = (manifest(database, model="m", name=name, per_stratum=3, now=0.0) for name in "abc")
    assert a.digest == b.digest != c.digest
    assert a.digest == sha256("".join(f"{each}\n" for each in sorted(a.members)).encode()).hexdigest()
    assert manifest(database, model="m", name="none", per_stratum=3, now=0.0).digest == digest_of([])
    assert a.document()["strata"] == [{"stratum": "short/en", "tenant": "", "seen": 3, "requests": 3}]


def test_a_tenant_is_forgotten_with_its_reasons_and_its_counts_stay(
    database: Database, request_of: Draw, unit_of
) -> None:
    draw(database, [request_of(1), request_of(2), request_of(3, tenant="t2")])
    record(database, capture_id="c1", owner="w", units=[unit_of("c1", "pf")], at=1.0)
    gone = forget_tenant(database, "t1")
    assert (gone.requests, gone.reasons) == (2, 1)
    assert [
        each.tenant for each in listed(database, model="m", name=TRAFFIC, per_stratum=3, now=101 * DAY)
    ] == ["t2"]
    assert forget_tenant(database, "t1").plus(gone).requests == 2


def test_ranks_are_uniform_and_nobody_without_the_salt_can_aim_at_them() -> None:
    ranks = [rank_of(SALT, str(number)) for number in range(4000)]
    assert all(0 <= rank < 1 for rank in ranks)
    assert 0.45 < sum(ranks) / len(ranks) < 0.55
    assert rank_of(SALT, "1") != rank_of(b"other", "1")


def test_workers_that_draw_at_once_draw_the_sample_of_all(database: Database, request_of: Draw) -> None:
    requests = [request_of(number) for number in range(24)]
    with ThreadPoolExecutor(3) as workers:
        list(workers.map(lambda part: draw(database, requests[part::3]), range(3)))
    best = sorted(requests, key=lambda each: each.rank)
    assert digests(database) == {each.digest for each in best[:3]}
    assert manifest(database, model="m", name=TRAFFIC, per_stratum=3, now=101 * DAY).strata[0].seen == 24
