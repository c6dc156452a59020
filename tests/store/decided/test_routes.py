"""Changes of route: one version each, one entry each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from service.fleet import Route
from service.store.decided.decisions import read, verify
from service.store.decided.routes import RouteMoved, current_route, current_routes, set_route


def change(database, tier, **options):
    return set_route(database, Route.only("m", tier), at=1.0, actor="ci", **options)


def test_before_the_first_change_there_is_no_route(database):
    assert current_route(database, "m") is None
    assert current_routes(database) == []


def test_a_change_grows_the_version_and_is_logged_with_what_was_before(database):
    assert change(database, "w8a8").version == 1
    assert change(database, "bf16", action="roll_back", detail={"reason": "harm"}).version == 2
    assert current_route(database, "m") == Route.only("m", "bf16", 2)
    first, second = read(database, "m")
    assert (first.action, first.tier, first.detail["before"]) == ("route", "w8a8", None)
    assert (second.action, second.tier) == ("roll_back", "bf16")
    assert second.detail == {
        "reason": "harm",
        "weights": {"bf16": 100},
        "before": {"w8a8": 100},
        "route_version": 2,
    }


def test_a_change_from_a_stale_view_is_refused_and_leaves_no_trace(database):
    change(database, "w8a8", expect=0)
    with pytest.raises(RouteMoved, match="version 1, not 0"):
        change(database, "w4a16", expect=0)
    assert current_route(database, "m") == Route.only("m", "w8a8", 1)
    assert len(read(database)) == 1
    assert change(database, "w4a16", expect=1).version == 2


def test_changes_at_once_get_versions_of_their_own(database):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: change(database, f"t{number}"), range(16)))
    assert sorted(route.version for route in made) == list(range(1, 17))
    assert current_route(database, "m") == max(made, key=lambda route: route.version)
    assert verify(database) is None


def test_routes_of_all_models_are_there_to_be_published_again(database):
    change(database, "w8a8")
    set_route(database, Route(model="n", weights={"a": 95, "b": 5}), at=1.0, actor="ci", tier="b")
    assert current_routes(database) == [
        Route.only("m", "w8a8", 1),
        Route(model="n", weights={"a": 95, "b": 5}, version=1),
    ]
    assert read(database, "n")[0].tier == "b"


def test_each_change_is_issued_later_whatever_the_clocks_say(database):
    def issue(at):
        return set_route(database, Route.only("m", "a"), at=at, actor="ci").issued_at

    assert issue(1000.0) == 1000.0
    assert 1000.0 < issue(990.0) < 1000.1  # another machine, ten seconds behind
    assert issue(1001.0) == 1001.0
    found = current_route(database, "m")
    assert found is not None
    assert found.issued_at == 1001.0
    assert [route.issued_at for route in current_routes(database)] == [1001.0]


def test_a_clock_that_was_years_ahead_once_does_not_keep_later_changes_back(database):
    set_route(database, Route.only("m", "a"), at=9e9, actor="ci")
    assert set_route(database, Route.only("m", "b"), at=1000.0, actor="ci").issued_at == 1000.0
