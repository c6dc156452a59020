"""Failures of any criterion, counted once a request."""

from __future__ import annotations

from service.decision.tally import Tally, Triple
from service.store.redis.capture import capture_id
from service.store.scored.failures import read_failures
from service.store.scored.leases import lease
from service.store.scored.pairs import record

CRITERIA = ("structured_output", "refusal")


def put(database, *units, at=1.0):
    record(database, capture_id=units[0].capture_id, owner="w", units=units, at=at)


def read(database, *evaluators, **changes):
    place = {"model": "m", "tier": "w8a8", "epoch": "e1", **changes}
    versions = place.pop("versions", {})
    return read_failures(
        database,
        place["model"],
        place["tier"],
        place["epoch"],
        evaluators or CRITERIA,
        versions=versions,
    )


def test_a_request_that_fails_two_criteria_failed_once(database, unit_of):
    put(database, unit_of("c1", "pf"), unit_of("c1", "pf", evaluator="refusal"))
    put(database, unit_of("c2", "fp"), unit_of("c2", "pp", evaluator="refusal"))
    put(database, unit_of("c3", "fp"), unit_of("c3", "pf", evaluator="refusal"))
    put(database, unit_of("c4", "pp"))
    assert read(database) == Tally(
        units={Triple(1, 1, 0): 1, Triple(1, 0, 1): 1, Triple(1, 0, 0): 2}, both_failed=1
    )
    assert read(database, "refusal").harm == 2


def test_several_needles_of_a_request_are_one_pair(database, unit_of):
    put(database, unit_of("c1", ["pp", "pf", "pf"], evaluator="long_context_recall"))
    assert read(database, "long_context_recall") == Tally(units={Triple(1, 1, 0): 1})


def test_requests_of_a_conversation_are_one_unit(database, unit_of):
    for number, judged in enumerate(("pf", "pp", "fp")):
        put(database, unit_of(f"c{number}", judged, conversation="talk", evaluator="refusal", waits=False))
    found = read(database)
    assert found.conversations == 1
    assert found.n == 1, "only the first counts"


def test_only_what_counts_here_is_counted(database, unit_of):
    put(database, unit_of("c1", "pf"))
    put(database, unit_of("c2", "pf", tier="w4a16"))
    put(database, unit_of("c3", "pf", epoch="e2"))
    put(database, unit_of("c4", "pf", arm="control"))
    put(database, unit_of("c5", "pf", counted=False))
    put(database, unit_of("c6", "u"))
    put(database, unit_of("c7", "pf", evaluator="answer_health"))
    put(database, unit_of("c8", "pf", version="2"))
    assert read(database, versions={"structured_output": "1"}) == Tally(units={Triple(1, 1, 0): 1})
    assert read(database).n == 2
    assert read(database, tier="none") == Tally()
    assert read_failures(database, "m", "w8a8", "e1", ()) == Tally()


def test_what_overtook_a_capture_at_work_does_not_count_yet(database, unit_of):
    put(database, unit_of("c1", "pf"), at=1.0)
    lease(database, [capture_id("p", 1, "m")], owner="w", now=5.0, seconds=1e9)
    name = capture_id("p", 2, "m")
    lease(database, [name], owner="w", now=6.0)
    put(database, unit_of(name, "pp"), at=7.0)
    assert read(database) == Tally(units={Triple(1, 1, 0): 1})
