from __future__ import annotations

import pytest

from service.approval.backends import Health
from service.approval.capacity import declared, in_the_way, needed
from service.fleet import Backend, Ladder, Limits, Route, Tier


def tier(name: str, *rooms: int | None) -> Tier:
    backends = tuple(
        Backend(url=f"http://{name}-{number}:8000", max_concurrency=room) for number, room in enumerate(rooms)
    )
    return Tier(name=name, model=name, backends=backends)


def ladder(baseline: tuple[int | None, ...], candidate: tuple[int | None, ...], **limits: int) -> Ladder:
    return Ladder(
        model="m", tiers=(tier("bf16", *baseline), tier("w8a8", *candidate)), limits=Limits(**limits)
    )


def health(of: Tier, *, down: int = 0) -> Health:
    """The last `down` backends are."""
    urls = [backend.url for backend in of.backends]
    up = urls[: len(urls) - down]
    return Health(tier=of.name, up=tuple(up), down=dict.fromkeys(urls[len(up) :], "refused"))


ALL = Route.only("m", "bf16")


def route(**weights: int) -> Route:
    return Route(model="m", weights=weights)


@pytest.mark.parametrize(
    ("rooms", "together"), [((), None), ((None,), None), ((8, None), None), ((8, 16), 24)]
)
def test_room_is_known_when_every_backend_declares_it(
    rooms: tuple[int | None, ...], together: int | None
) -> None:
    assert declared(tier("w8a8", *rooms).backends) == together


@pytest.mark.parametrize(("share", "expected"), [(5, 4), (25, 16), (26, 17), (100, 64)])
def test_a_share_is_needed_of_what_the_main_tier_is_declared_to_take(share: int, expected: int) -> None:
    after = route(bf16=100 - share, w8a8=share)
    assert needed(ladder((32, 32), (64,)), ALL, after, "w8a8") == expected


def test_the_limit_of_the_model_goes_before() -> None:
    assert needed(ladder((64,), (8,), concurrency=10), ALL, route(w8a8=100), "w8a8") == 10


def test_nothing_is_known_of_what_is_not_declared() -> None:
    assert needed(ladder((64, None), (8,)), ALL, route(w8a8=100), "w8a8") is None
    # The main tier itself takes over what another had: that it bears the load is known.
    assert needed(ladder((64,), (8,)), route(bf16=95, w8a8=5), ALL, "bf16") is None


@pytest.mark.parametrize(
    ("candidate", "down", "problem"),
    [
        ((64,), 0, None),
        ((None,), 0, None),
        ((32, 32), 0, None),
        ((32, 32), 1, "healthy backends of 'w8a8' take 32 requests at once (max_concurrency) < 64"),
        ((64, 64), 1, None),
        ((None, 32), 1, None),
        ((64,), 1, "no backend of 'w8a8' is up: http://w8a8-0:8000: refused"),
        ((), 0, "no backend of 'w8a8' is up: none configured"),
    ],
)
def test_only_healthy_backends_count(
    candidate: tuple[int | None, ...], down: int, problem: str | None
) -> None:
    fleet = ladder((64,), candidate)
    found = in_the_way(fleet, health(fleet.tier("w8a8"), down=down), ALL, route(w8a8=100))
    assert found is None if problem is None else (found or "").startswith(problem)
