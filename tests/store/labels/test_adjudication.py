"""The queue: blind, in a random order, each item to as many as it needs, and what was said is kept once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Barrier, BrokenBarrierError

import pytest
from sqlalchemy import Engine, event, func, select

from service.store.labels.access_log import read_access
from service.store.labels.adjudication import BlindItem, Where, expire_texts, export_items, lot, next_item
from service.store.labels.judge_queue import claim_for_judge, note_judge, open_for_judge, release_judged
from service.store.labels.labelling import Conflict, Given, Recorded, Said, record_labels
from service.store.redis.capture import Keyring, SealBroken
from service.store.scored.adjudicated import labelled_items, labels_at, queue_counts
from service.store.scored.adjudicated import labels_of as labels_of_items
from service.store.scored.evidence import Place
from service.store.sql.adjudication_tables import adjudication_items, adjudication_texts
from service.store.sql.database import Database, open_database
from tests.adjudicating import BASELINE, CANDIDATE, KEYRING, Queueing

HERE = [Where("m", "w8a8", "e1")]
PLACE = Place("w8a8", "candidate", "e1")
NOW = 1500.0


@pytest.fixture
def queueing(database: Database) -> Queueing:
    return Queueing(db=database)


def following(db: Database, who: str = "anna", **more: object) -> BlindItem | None:
    return next_item(db, KEYRING, HERE, labeller=who, actor=f"token of {who}", now=NOW, **more)  # type: ignore[arg-type]


def say(db: Database, item: str, said: str, who: str = "anna", **more: object) -> object:
    given = Given(item_id=item, labeller=who, said=Said(said), at=NOW)
    return record_labels(db, [given], token=f"token of {who}", **more)  # type: ignore[arg-type]


def labels_of(db: Database) -> dict[str, object]:
    with db.read() as connection:
        return dict(labels_at(connection, "m", [PLACE])[PLACE])


def test_a_labeller_works_through_the_queue_in_the_order_of_the_ids(
    queueing: Queueing, database: Database
) -> None:
    ids = sorted(queueing.add("pf", 2) + queueing.add("pp", 3))
    seen = []
    while (item := following(database)) is not None:
        seen.append(item.id)
        say(database, item.id, "both")
    assert seen == ids


def test_an_item_tells_both_answers_and_nothing_of_whose_they_are(
    queueing: Queueing, database: Database
) -> None:
    queueing.add("pf", 60)
    items = export_items(database, KEYRING, HERE, actor="x", now=NOW, limit=60)
    assert {each.turns[0].text for each in items} == {"the secret question"}
    assert all({each.a.text, each.b.text} == {BASELINE, CANDIDATE} for each in items)
    first = sum(each.a.text == CANDIDATE for each in items)
    # A fair coin leaves 12 to 48 of 60 out once in a million.
    assert 12 <= first <= 48
    assert not any("w8a8" in str(each) or "e1" in each.model for each in items)


def test_sides_stay_where_they_are_so_that_labels_of_two_people_mean_the_same(
    queueing: Queueing, database: Database
) -> None:
    queueing.add("pf", by_two=True)
    first, second = following(database, "anna"), following(database, "ben")
    assert first is not None
    assert first == second


def test_most_items_are_for_one_and_some_for_two(queueing: Queueing, database: Database) -> None:
    (alone,), (twice,) = queueing.add("pf"), queueing.add("pp", by_two=True)
    for item in (alone, twice):
        say(database, item, "both", "anna")
    assert following(database, "anna") is None
    item = following(database, "ben")
    assert item is not None
    assert item.id == twice
    say(database, twice, "both", "ben")
    assert following(database, "carl") is None


def test_only_what_counts_or_will_in_the_present_epoch_is_given_out(
    queueing: Queueing, database: Database
) -> None:
    queueing.add("pf", counted=False)
    queueing.add("pf", epoch="e0")
    queueing.add("pf", model="other")
    (wanted,) = queueing.add("pf")
    waiting = Queueing(db=database, tier="w4a16").add("pf", counted=False, waits=True)
    assert [each.id for each in export_items(database, KEYRING, HERE, actor="x", now=NOW)] == [wanted]
    there = export_items(database, KEYRING, [Where("m", "w4a16", "e1")], actor="x", now=NOW)
    assert [each.id for each in there] == waiting
    assert export_items(database, KEYRING, [], actor="x", now=NOW) == []


def test_an_evaluator_can_be_asked_for(queueing: Queueing, database: Database) -> None:
    queueing.add("pf")
    json_ = Queueing(db=database, evaluator="structured_output").add("pf")
    found = following(database, evaluator="structured_output")
    assert found is not None
    assert [found.id] == json_


def test_saying_it_again_changes_nothing_and_saying_otherwise_is_a_conflict(
    queueing: Queueing, database: Database
) -> None:
    (item,) = queueing.add("pf")
    assert say(database, item, "a").recorded == 1  # type: ignore[attr-defined]
    assert say(database, item, "a").unchanged == 1  # type: ignore[attr-defined]
    told = say(database, item, "b")
    assert told.conflicts == [Conflict(item_id=item, labeller="anna", had=Said.A, said=Said.B)]  # type: ignore[attr-defined]
    assert say(database, item, "a").unchanged == 1  # type: ignore[attr-defined]
    assert say(database, item, "b", replace=True).replaced == 1  # type: ignore[attr-defined]
    assert say(database, item, "b").unchanged == 1  # type: ignore[attr-defined]
    assert say(database, "0" * 32, "a").unknown == ["0" * 32]  # type: ignore[attr-defined]
    actions = [(each.action, each.detail) for each in read_access(database)]
    assert actions == [("label", "anna: a"), ("relabel", "anna: b")]


def test_who_says_two_things_of_an_item_at_once_contradicts_the_first(
    queueing: Queueing, database: Database
) -> None:
    (item,) = queueing.add("pf")
    both = [Given(item_id=item, labeller="anna", said=said, at=1.0) for said in (Said.B, Said.A, Said.B)]
    told = record_labels(database, both, token="ops")
    assert (told.recorded, told.unchanged) == (1, 1)
    assert [(each.had, each.said) for each in told.conflicts] == [(Said.B, Said.A)]
    replaced = record_labels(database, both[:2], token="ops", replace=True)
    assert (replaced.unchanged, replaced.replaced) == (1, 1)
    assert record_labels(database, both[1:2], token="ops").unchanged == 1


def test_of_two_who_say_different_things_by_one_name_at_once_one_is_a_conflict(
    queueing: Queueing, database: Database
) -> None:
    """Both go on when both have read what was said before, or one of them cannot until the other is done."""
    first, second = queueing.add("pf", 2)
    both_read = Barrier(2)

    def wait(*told: object) -> None:
        statement = str(told[2])
        if statement.startswith("SELECT") and "FROM adjudication_labels" in statement:
            with suppress(BrokenBarrierError):
                both_read.wait(timeout=0.5)

    def record_as(said: Said, *items: str) -> Recorded:
        given = [Given(item_id=item, labeller="anna", said=said, at=NOW) for item in items]
        return record_labels(database, given, token="anna")

    event.listen(Engine, "after_cursor_execute", wait)
    try:
        with ThreadPoolExecutor(2) as pool:
            asked = [
                pool.submit(record_as, Said.A, first, second),
                pool.submit(record_as, Said.B, second, first),
            ]
            one, other = (each.result() for each in asked)
    finally:
        event.remove(Engine, "after_cursor_execute", wait)
    assert sorted((one.recorded, other.recorded)) == [0, 2]
    assert sorted((len(one.conflicts), len(other.conflicts))) == [0, 2]
    assert [each.action for each in read_access(database)] == ["label", "label"]


def test_who_saw_which_text_is_written_down(queueing: Queueing, database: Database) -> None:
    first, second = sorted(queueing.add("pf", 2))
    following(database, "anna")
    export_items(database, KEYRING, HERE, actor="exporter", now=NOW + 1)
    told = [(each.actor, each.action, each.item_id, each.at) for each in read_access(database)]
    assert told == [
        ("token of anna", "next", first, NOW),
        ("exporter", "export", first, NOW + 1),
        ("exporter", "export", second, NOW + 1),
    ]
    assert [each.item_id for each in read_access(database, item_id=second)] == [second]
    assert [each.seq for each in read_access(database, after=read_access(database)[0].seq)] != []
    with pytest.raises(ValueError, match="at least 1"):
        read_access(database, limit=0)


def test_texts_go_after_their_time_and_labels_stay(queueing: Queueing, database: Database) -> None:
    (item,) = queueing.add("pf")
    say(database, item, "neither")
    assert expire_texts(database, now=NOW) == 0
    late = queueing.at + queueing.keep_seconds
    assert next_item(database, KEYRING, HERE, labeller="ben", actor="x", now=late) is None
    assert expire_texts(database, now=late) == 1
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(adjudication_texts)).scalar_one() == 0
        assert connection.execute(select(func.count()).select_from(adjudication_items)).scalar_one() == 1
    assert labels_of(database)["refusal"].labelled == 1  # type: ignore[attr-defined]
    (count,) = queue_counts(database, HERE)
    assert (count.queued, count.kept, count.discordant) == (1, 0, 1)


def test_a_text_that_does_not_open_is_passed_over_and_told_when_none_does(
    queueing: Queueing, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    foreign = Keyring(current="k9", keys={"k9": bytes(32)})
    Queueing(db=database, keyring=foreign, tier="w8a8", evaluator="lost").add("pf", 3)
    with pytest.raises(SealBroken, match="sealed with key 'k9'"):
        following(database)
    (mine,) = queueing.add("pf")
    found = following(database)
    assert found is not None
    assert found.id == mine
    assert "sealed with key 'k9'" in caplog.text


def test_many_texts_that_do_not_open_are_in_nobodys_way(queueing: Queueing, database: Database) -> None:
    """As after a key was taken out of the configuration."""
    queueing.keyring = Keyring(current="k9", keys={"k9": bytes(32)})
    broken = queueing.add("pf", 120)
    queueing.keyring = KEYRING
    readable = max(queueing.add("pf", 4))
    assert sum(each < readable for each in broken) > 60
    for _ in range(4):
        found = following(database)
        assert found is not None
        say(database, found.id, "a")
    assert found.id == readable
    with pytest.raises(SealBroken):
        following(database)


def test_no_text_is_in_the_database_in_the_clear(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'clear.db'}")
    Queueing(db=database).add("pf", 3)
    database.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"secret question" not in stored
    assert BASELINE.encode() not in stored
    assert CANDIDATE.encode() not in stored


def test_a_capture_recorded_twice_queues_its_pairs_once(queueing: Queueing, database: Database) -> None:
    queueing.add("pf")
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(adjudication_items)).scalar_one() == 1


def test_lots_are_the_same_whoever_draws_and_spread_evenly() -> None:
    drawn = [lot("audit", f"unit {number}", 0) for number in range(2000)]
    assert drawn == [lot("audit", f"unit {number}", 0) for number in range(2000)]
    assert 0 <= min(drawn) < 0.01
    assert 0.99 < max(drawn) < 1
    # 5 % of 2000, give or take five standard deviations.
    assert abs(sum(each < 0.05 for each in drawn) - 100) < 49
    assert drawn != [lot("overlap", f"unit {number}", 0) for number in range(2000)]


def test_people_are_counted_once_an_item_and_open_where_they_disagree(
    queueing: Queueing, database: Database
) -> None:
    queueing.add("pf", 4, by_two=True)
    shown = export_items(database, KEYRING, HERE, actor="x", now=NOW)
    sides = {each.id: "a" if each.a.text == BASELINE else "b" for each in shown}
    agreed, disputed, skipped, half = sorted(sides)
    other = {"a": "b", "b": "a"}
    for who in ("anna", "ben"):
        say(database, agreed, sides[agreed], who)  # only the baseline passes: harm
        say(database, skipped, "skip", who)
    say(database, disputed, sides[disputed], "anna")
    say(database, disputed, other[sides[disputed]], "ben")
    say(database, half, other[sides[half]], "anna")  # only the candidate passes: benefit
    say(database, half, "skip", "ben")
    found = labels_of(database)["refusal"]
    harm, benefit = (False, True), (True, False)
    assert dict(found.table) == {(harm, harm): 1, (harm, benefit): 1}  # type: ignore[attr-defined]
    assert dict(found.open) == {harm: 2}  # type: ignore[attr-defined]
    assert found.by_two == 2  # type: ignore[attr-defined]
    with database.read() as connection:
        items = labelled_items(connection, "m", [("w8a8", "e1")], {"refusal": "2"})
    assert items == []


def test_the_judges_labels_are_in_no_count_of_people(queueing: Queueing, database: Database) -> None:
    (item,) = queueing.add("pf")
    say(database, item, "both", "judge:j", judge=True)
    assert labels_of(database) == {}
    found = following(database)
    assert found is not None
    assert found.id == item


def claimed(db: Database, *, now: float = NOW, limit: int = 8) -> list[str]:
    return claim_for_judge(db, HERE, labeller="judge:j", now=now, seconds=300.0, attempts=2, limit=limit)


def test_the_judge_holds_what_it_takes_and_tries_it_so_often(queueing: Queueing, database: Database) -> None:
    ids = sorted(queueing.add("pf", 3))
    assert claimed(database, limit=2) == ids[:2]
    assert claimed(database) == ids[2:]
    assert claimed(database) == []
    release_judged(database, ids[:1], untried=True)
    release_judged(database, ids[1:2], untried=False)
    release_judged(database, ids[2:], untried=True, until=NOW + 50)
    release_judged(database, [], untried=True)
    assert claimed(database) == ids[:2]
    assert claimed(database, now=NOW + 301) == [ids[0], ids[2]]
    assert [each.id for each in open_for_judge(database, KEYRING, ids[:1])] == ids[:1]
    assert read_access(database) == []
    note_judge(database, ids[:1], actor="judge:j", now=NOW)
    assert [(each.actor, each.action) for each in read_access(database)] == [("judge:j", "judge")]


def test_labels_mean_the_tiers_whichever_letter_they_stood_under(
    queueing: Queueing, database: Database
) -> None:
    queueing.add("pf", 30)
    for item in export_items(database, KEYRING, HERE, actor="x", now=NOW, limit=30):
        say(database, item.id, "a" if item.a.text == BASELINE else "b")
    assert dict(labels_of(database)["refusal"].table) == {((False, True), (False, True)): 30}  # type: ignore[attr-defined]


def test_what_the_database_sums_up_is_what_the_single_items_say(
    queueing: Queueing, database: Database
) -> None:
    chance = Random(7)
    ids = [item for judged in ("pf", "fp", "pp", "ff") for item in queueing.add(judged, 12, by_two=True)]
    given = [
        Given(item_id=item, labeller=who, said=chance.choice(list(Said)), at=NOW)
        for item in ids
        for who in ("anna", "ben", "carl")
        if chance.random() < 0.7
    ]
    record_labels(database, given, token="t")
    judged_too = [Given(item_id=item, labeller="judge:j", said=Said.A, at=NOW) for item in ids[:20]]
    record_labels(database, judged_too, token="t", judge=True)
    with database.read() as connection:
        one_by_one = labels_of_items(labelled_items(connection, "m", [("w8a8", "e1")]))
    found = labels_of(database)["refusal"]
    assert found == one_by_one
    assert found.by_two > 10  # type: ignore[attr-defined]
    assert found.kappa is not None  # type: ignore[attr-defined]
