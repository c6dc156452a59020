"""What comparisons saw, added up by name."""

from __future__ import annotations

from dataclasses import replace

from service.store.scored.details import MOST_NAMES, OTHERS, read_details
from service.store.scored.evidence import Place
from service.store.scored.pairs import record
from service.store.scored.recount import recount


def put(database, unit_of, name, details, **changes):
    unit = unit_of(name, "pf", evaluator="field_agreement", **changes)
    unit = replace(unit, rows=(replace(unit.rows[0], details=tuple(details)),))
    return record(database, capture_id=name, owner="w", units=[unit], at=1.0)


def read(database, version="1"):
    found = read_details(
        database,
        "m",
        candidate=Place("w8a8", "candidate", "e1"),
        control=Place("bf16", "control", "e0"),
        evaluator="field_agreement",
        version=version,
    )
    return {each.name: (dict(each.candidate), dict(each.control)) for each in found}


def test_each_name_adds_up_by_kind_with_the_control_beside_it(database, unit_of):
    put(database, unit_of, "c1", [("/a", "agrees", 3), ("/b", "value", 1)])
    put(database, unit_of, "c2", [("/a", "agrees", 1), ("/a", "type", 1)])
    put(database, unit_of, "c3", [("/b", "value", 2)], tier="bf16", arm="control", epoch="e0")
    put(database, unit_of, "c4", [("/b", "value", 9)], epoch="another")
    put(database, unit_of, "c5", [("/b", "value", 9)], version="2")
    assert read(database) == {"/a": ({"agrees": 4, "type": 1}, {}), "/b": ({"value": 1}, {"value": 2})}
    assert list(read(database)) == ["/a", "/b"]
    assert read(database, version="2") == {"/b": ({"value": 9}, {})}
    assert recount(database).equal


def test_a_capture_that_comes_twice_is_added_once(database, unit_of):
    assert put(database, unit_of, "c1", [("/a", "agrees", 1)])
    assert not put(database, unit_of, "c1", [("/a", "agrees", 1)])
    assert read(database) == {"/a": ({"agrees": 1}, {})}


def test_names_that_requests_make_up_are_bounded(database, unit_of):
    for start in range(0, MOST_NAMES + 60, 60):
        put(
            database,
            unit_of,
            f"c{start}",
            [(f"/n{number}", "agrees", 1) for number in range(start, start + 60)],
        )
    found = read(database)
    assert len(found) == MOST_NAMES + 1
    assert found[OTHERS] == ({"agrees": 60}, {})
    put(database, unit_of, "again", [("/n0", "agrees", 1), ("/new", "value", 1)])
    assert read(database)["/n0"] == ({"agrees": 2}, {})
    assert read(database)[OTHERS] == ({"agrees": 60, "value": 1}, {})
