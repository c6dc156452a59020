from __future__ import annotations

import pytest

from service.fleet import Backend, Ladder, Tier
from service.load.capacity import address, serving_among


def tier(name: str, *urls: str, shadow: tuple[str, ...] = ()) -> Tier:
    return Tier(
        name=name,
        model="m",
        backends=tuple(Backend(url=url) for url in urls),
        shadow=tuple(Backend(url=url) for url in shadow),
    )


LADDER = Ladder(
    model="qwen",
    tiers=(
        tier("bf16", "http://gpu-a:8000", shadow=("http://gpu-b:8000",)),
        tier("w8a8", "http://gpu-c:8000"),
        tier("w4a16", "http://gpu-d:8000", shadow=("http://GPU-A:8000/",)),
    ),
)


def refused(*urls: str, weights: dict[str, dict[str, int]] | None = None) -> tuple[str, ...]:
    targets = [Backend(url=url) for url in urls]
    return serving_among(targets, [LADDER], {"qwen": {"bf16": 95, "w8a8": 5}} if weights is None else weights)


def test_a_backend_of_a_tier_that_serves_is_named_with_what_it_serves() -> None:
    assert refused("http://gpu-a:8000", "http://gpu-b:8000", "http://gpu-d:8000") == (
        "http://gpu-a:8000 serves qwen as bf16 (95 % of its traffic)",
    )
    assert refused("http://gpu-c:8000") == ("http://gpu-c:8000 serves qwen as w8a8 (5 % of its traffic)",)


def test_a_backend_that_is_another_tiers_shadow_serves_all_the_same() -> None:
    shadow = LADDER.tier("w4a16").shadow[0].url
    assert refused(shadow) == (f"{shadow} serves qwen as bf16 (95 % of its traffic)",)


def test_another_models_pool_counts_too() -> None:
    other = Ladder(model="phi", tiers=(tier("bf16", "http://gpu-d:8000"),))
    found = serving_among([Backend(url="http://gpu-d:8000")], [LADDER, other], {"qwen": {"bf16": 100}})
    assert found == ("http://gpu-d:8000 serves phi as bf16 (100 % of its traffic)",)


def test_a_model_without_a_route_is_served_by_its_baseline() -> None:
    assert refused("http://gpu-a:8000", weights={}) != ()
    assert refused("http://gpu-c:8000", weights={}) == ()


def test_a_tier_without_weight_serves_nobody() -> None:
    assert refused("http://gpu-a:8000", weights={"qwen": {"bf16": 0, "w8a8": 100}}) == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://gpu-a:80", "http://gpu-a"),
        ("https://gpu-a", "https://GPU-A.:443/"),
        ("http://127.0.0.1:8000", "http://localhost:8000"),
        ("http://[::1]:8000", "http://127.0.0.1:8000"),
        ("http://0.0.0.0:8000", "http://localhost:8000"),
        ("http://me:secret@gpu-a:8000", "http://gpu-a:8000"),
        ("http://[2001:db8::1]:8000", "http://[2001:0db8:0:0::1]:8000"),
        ("unix:/run/engine.sock", "unix:/run/../run/engine.sock"),
    ],
)
def test_one_listener_has_one_address_however_it_is_spelt(one: str, other: str) -> None:
    assert address(Backend(url=one)) == address(Backend(url=other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://gpu-a:8000", "http://gpu-a:8001"),
        ("http://gpu-a", "https://gpu-a"),
        ("http://gpu-a:8000", "http://gpu-b:8000"),
        ("unix:/run/a.sock", "unix:/run/b.sock"),
    ],
)
def test_others_have_others(one: str, other: str) -> None:
    assert address(Backend(url=one)) != address(Backend(url=other))
