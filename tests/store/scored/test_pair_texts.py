"""Texts with the names of their sides: every look is written down, and ends blind judging of that capture."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from service.store.labels.access_log import LOOK, read_access
from service.store.labels.adjudication import Where, export_items, left_to_judge, next_item
from service.store.labels.labelling import Given, Labelled, Said, last_label, record_labels, take_back
from service.store.redis.capture import Keyring, SealBroken
from service.store.scored.pair_listing import ListedPair, Wanted, list_pairs
from service.store.scored.pair_texts import note_look, open_pair
from service.store.sql.database import Database
from service.store.sql.schema import units
from tests.adjudicating import BASELINE, CANDIDATE, KEYRING, Queueing

HERE = [Where("m", "w8a8", "e1"), Where("m", "w4a16", "e1")]
NOW = 1500.0


@pytest.fixture
def queueing(database: Database) -> Queueing:
    return Queueing(db=database)


def pairs_of(db: Database, tier: str = "w8a8") -> tuple[ListedPair, ...]:
    wanted = Wanted(model="m", tier=tier, epoch="e1", evaluators=())
    return list_pairs(db, wanted, page=1, size=50, now=NOW).pairs


def say(db: Database, item: str, said: str, who: str = "anna", at: float = NOW) -> object:
    return record_labels(db, [Given(item_id=item, labeller=who, said=Said(said), at=at)], token=who)


def upcoming(db: Database, who: str) -> str | None:
    found = next_item(db, KEYRING, HERE, labeller=who, actor=who, now=NOW)
    return None if found is None else found.id


def test_the_text_of_a_queued_pair_tells_which_side_is_whose(database: Database, queueing: Queueing) -> None:
    queueing.add("pf")
    (pair,) = pairs_of(database)
    text = open_pair(database, KEYRING, pair, now=NOW).queued
    assert text is not None
    assert (text.baseline.text, text.candidate.text) == (BASELINE, CANDIDATE)


def test_a_text_whose_time_is_over_is_not_given(database: Database, queueing: Queueing) -> None:
    queueing.add("pf")
    (pair,) = pairs_of(database)
    opened = open_pair(database, KEYRING, pair, now=2000.0)
    assert (opened.queued, opened.answers) == (None, None)


def test_a_text_under_a_lost_key_says_so(database: Database, queueing: Queueing) -> None:
    queueing.add("pf")
    (pair,) = pairs_of(database)
    with pytest.raises(SealBroken, match="k1"):
        open_pair(database, Keyring(current="k9", keys={"k9": bytes(32)}), pair, now=NOW)


def test_who_has_looked_is_not_given_the_pair_to_judge_and_others_are(
    database: Database, queueing: Queueing
) -> None:
    first, second = queueing.add("pf", 2)
    pair = next(each for each in pairs_of(database) if each.item_id == first)
    note_look(database, pair, actor="anna", now=NOW, detail="answers")
    assert upcoming(database, "anna") == second
    assert upcoming(database, "ben") == min(first, second)
    exported = export_items(database, KEYRING, HERE, actor="anna", now=NOW)
    assert [each.id for each in exported] == [second]
    assert left_to_judge(database, HERE, labeller="anna", actor="anna", now=NOW) == 1
    assert left_to_judge(database, HERE, labeller="ben", actor="ben", now=NOW) == 2
    (entry,) = read_access(database, item_id=first, limit=1)
    assert (entry.actor, entry.action, entry.at, entry.detail) == ("anna", LOOK, NOW, "answers")


def test_a_look_is_one_at_every_queued_pair_of_the_capture_since_its_baseline_is_the_same(
    database: Database, queueing: Queueing
) -> None:
    (seen,) = queueing.add("pf")
    (pair,) = pairs_of(database)
    unit = {"capture_id": pair.capture_id, "conversation": pair.conversation}
    other = Queueing(db=database, tier="w4a16")
    (elsewhere,) = other.add("pf")
    with database.write() as connection:
        connection.execute(update(units).where(units.c.tier == "w4a16").values(**unit))
    note_look(database, pair, actor="anna", now=NOW, detail="answers")
    assert upcoming(database, "anna") is None
    assert {each.item_id for each in read_access(database)} == {seen, elsewhere}


def test_what_is_said_after_a_look_is_left_out_and_what_was_said_before_stays(
    database: Database, queueing: Queueing
) -> None:
    before, after = queueing.add("pf", 2)
    say(database, before, "a")
    for pair in pairs_of(database):
        note_look(database, pair, actor="anna", now=NOW, detail="answers")
    told = record_labels(
        database,
        [
            Given(item_id=before, labeller="anna", said=Said.A, at=NOW),
            Given(item_id=after, labeller="anna", said=Said.B, at=NOW),
        ],
        token="anna",
        replace=True,
    )
    assert (told.unchanged, told.recorded, told.seen_openly) == (1, 0, [after])
    changed = record_labels(
        database,
        [Given(item_id=before, labeller="anna", said=Said.B, at=NOW)],
        token="anna",
        replace=True,
    )
    assert (changed.replaced, changed.seen_openly) == (0, [before])


def test_a_token_for_some_models_labels_no_others(database: Database, queueing: Queueing) -> None:
    (item,) = queueing.add("pf")
    given = [Given(item_id=item, labeller="anna", said=Said.A, at=NOW)]
    assert record_labels(database, given, token="anna", models={"other"}).unknown == [item]
    assert record_labels(database, given, token="anna", models={"m"}).recorded == 1


def test_the_last_label_is_taken_back_and_the_log_keeps_both(database: Database, queueing: Queueing) -> None:
    first, second = queueing.add("pf", 2)
    assert last_label(database, "anna") is None
    say(database, first, "a", at=NOW)
    say(database, second, "both", at=NOW + 1)
    say(database, first, "b", who="ben", at=NOW + 2)
    assert last_label(database, "anna") == Labelled(item_id=second, said=Said.BOTH, at=NOW + 1)
    assert take_back(database, second, labeller="anna", token="anna", at=NOW + 3) is Said.BOTH
    assert last_label(database, "anna") == Labelled(item_id=first, said=Said.A, at=NOW)
    assert take_back(database, second, labeller="anna", token="anna", at=NOW + 4) is None
    actions = [(each.action, each.detail) for each in read_access(database, item_id=second)]
    assert actions == [("label", "anna: both"), ("unlabel", "anna: both")]
    assert upcoming(database, "anna") == second
