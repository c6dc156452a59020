"""Names in Redis, and routes as they are written there."""

from __future__ import annotations

import pytest

from service.fleet import Route
from service.store.redis import redis_keys


def test_a_route_survives_being_written():
    route = Route(model="a|ü", weights={"bf16": 95, "w8a8": 5}, version=7, issued_at=1.7e9 + 0.1)
    read = redis_keys.route_from_json(redis_keys.route_to_json(route))
    assert (read, read.issued_at) == (route, route.issued_at)


def test_a_route_without_a_time_was_issued_before_all_others():
    read = redis_keys.route_from_json('{"model":"m","weights":{"a":100},"version":7}')
    assert read == Route.only("m", "a", 7)
    assert read.is_before(Route(model="m", weights={"a": 100}, version=1, issued_at=1.0))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"model":"m","weights":{"a":50},"version":1}',
        '{"model":"m","weights":[["a",100]],"version":1}',
        '{"model":"m","weights":{"a":"x"},"version":1}',
        '{"model":"m","weights":{"a":100},"version":null}',
        '{"model":"m","weights":{"a":100},"version":Infinity}',
        '{"model":"m","weights":{"a":Infinity},"version":1}',
        '{"model":"m","weights":{"a":100},"version":1000000000000000000}',
        '{"model":"m","weights":{"a":100},"version":-1}',
        '{"model":"m","weights":{"a":100},"version":1,"issued_at":NaN}',
        '{"model":"m","weights":{"a":100},"version":1,"issued_at":1e300}',
        '{"model":"m","weights":{"a":100},"version":1,"issued_at":null}',
        '{"model":["m"],"weights":{"a":100},"version":1}',
        "[" * 100_000,
    ],
)
def test_what_is_not_a_route_is_a_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011 - JSON and Route have words of their own
        redis_keys.route_from_json(text)


def test_no_two_names_collide():
    names = [
        redis_keys.CAPTURES_DUE,
        redis_keys.CAPTURES_BYTES,
        redis_keys.LEDGER_INSTANCES,
        redis_keys.ROUTES,
        redis_keys.capture("i"),
        redis_keys.ledger("i"),
        redis_keys.in_doubt("i"),
    ]
    assert len(set(names)) == len(names)
    assert all(name.startswith("tiergate:") for name in names)
