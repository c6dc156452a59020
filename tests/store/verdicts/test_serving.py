from __future__ import annotations

import pytest

from service.fleet import Backend, Ladder, Route, Tier
from service.store.decided.routes import set_route
from service.store.redis.addresses import address_of
from service.store.sql.database import Database
from service.store.verdicts.serving import in_service, targets_of


def tier(name: str, url: str, shadow: str | None = None) -> Tier:
    return Tier(
        name=name,
        model="m",
        backends=(Backend(url=url),),
        shadow=() if shadow is None else (Backend(url=shadow),),
    )


LADDER = Ladder(
    model="m",
    tiers=(
        tier("bf16", "http://a:8000", shadow="http://spare:8000"),
        tier("w8a8", "http://b:8000"),
        tier("w4a16", "http://c:8000"),
    ),
)


def route(db: Database, **weights: int) -> None:
    set_route(db, Route(model="m", weights=weights), at=1.0, actor="ann")


def test_load_goes_to_shadow_backends_or_to_those_that_would_serve() -> None:
    assert [backend.url for backend in targets_of(LADDER.tiers[0])] == ["http://spare:8000"]
    assert [backend.url for backend in targets_of(LADDER.tiers[1])] == ["http://b:8000"]


def test_a_candidate_that_serves_nobody_may_be_loaded_and_one_with_clients_may_not(
    database: Database,
) -> None:
    ladders = {"m": LADDER}
    assert in_service(database, ladders, "m") == []
    route(database, bf16=95, w8a8=5)
    assert in_service(database, ladders, "m") == ["w8a8: http://b:8000 serves clients as m/w8a8"]
    route(database, bf16=100)
    assert in_service(database, ladders, "m") == []


def test_what_takes_over_when_the_tier_above_is_down_serves_as_well(database: Database) -> None:
    route(database, w4a16=100)
    assert in_service(database, {"m": LADDER}, "m") == [
        "w8a8: http://b:8000 takes over when the tier above is down as m/w8a8",
        "w4a16: http://c:8000 serves clients as m/w4a16",
    ]


def test_pools_of_other_models_count_and_so_does_another_way_of_writing_an_address(
    database: Database,
) -> None:
    own = Ladder(
        model="m", tiers=(tier("bf16", "http://a:1"), tier("w8a8", "http://B.:80", "http://localhost:9"))
    )
    other = Ladder(model="n", tiers=(tier("bf16", "http://127.0.0.1:9"),))
    assert in_service(database, {"m": own, "n": other}, "m") == [
        "bf16: http://a:1 serves clients as m/bf16",
        "w8a8: http://localhost:9 serves clients as n/bf16",
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://Host", "http://host:80"),
        ("https://host", "https://host.:443"),
        ("http://localhost:1", "http://[::1]:1"),
        ("http://127.0.0.2:1", "http://0.0.0.0:1"),
        ("http://[0:0::2]:1", "http://[::2]:1"),
        ("http://[::ffff:10.0.0.1]:1", "http://10.0.0.1:1"),
        ("http://[::ffff:127.0.0.1]:1", "http://localhost:1"),
        ("http://127.1:1", "http://127.0.0.1:1"),
        ("http://10.1:1", "http://10.0.0.1:1"),
        ("http://0xa000001:1", "http://167772161:1"),
        ("unix:/run/a/../vllm.sock", "unix:/run/vllm.sock"),
    ],
)
def test_one_address_in_two_spellings(one: str, other: str) -> None:
    assert address_of(Backend(url=one)) == address_of(Backend(url=other))
