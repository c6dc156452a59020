from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.settings import units


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("1500ms", 1.5), ("90s", 90), ("3m", 180), ("6h", 21600), ("7d", 604800), ("0.5 s", 0.5)],
)
def test_a_duration_is_read_in_seconds(written: str, seconds: float) -> None:
    assert units.seconds(written) == pytest.approx(seconds)


@pytest.mark.parametrize("written", [5, 5.0, "5", "5 min", "-1s", "s", "", True, None, [], "1e3s", "٣s"])
def test_a_duration_without_a_known_unit_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="duration"):
        units.seconds(written)


def test_no_limit_is_written_none() -> None:
    assert units.limit_seconds("none") is None
    assert units.limit_seconds("2m") == 120


@pytest.mark.parametrize(
    ("written", "size"),
    [("8MiB", 8 * 2**20), ("1GiB", 2**30), ("500kB", 500_000), ("1.5KiB", 1536), ("0B", 0)],
)
def test_a_size_is_read_in_bytes(written: str, size: int) -> None:
    assert units.size(written) == size


@pytest.mark.parametrize("written", [8, "8", "8Mib", "8 megabytes", "0.3B", "-1MiB"])
def test_a_size_without_a_known_unit_or_of_part_of_a_byte_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r"size|whole number"):
        units.size(written)


@pytest.mark.parametrize(
    ("written", "share"), [("5%", 0.05), ("100 %", 1.0), (0.05, 0.05), (0, 0.0), (1, 1.0), ("0.05", 0.05)]
)
def test_a_share_is_a_percentage_or_a_fraction(written: object, share: float) -> None:
    assert units.share(written) == pytest.approx(share)


def test_a_share_written_as_a_bare_number_of_percent_says_how_to_write_it() -> None:
    with pytest.raises(ValueError, match="write 5% "):
        units.share(5)


def test_percentage_points_written_as_a_bare_number_say_how_to_write_them() -> None:
    with pytest.raises(ValueError, match="write 3pp "):
        units.points(3)


@pytest.mark.parametrize("written", ["-1pp", "one", "200pp", 500, True, "1px"])
def test_percentage_points_that_are_none_are_told_as_they_are_written(written: object) -> None:
    with pytest.raises(ValueError, match="expected percentage points from 0pp to 100pp") as refused:
        units.points(written)
    assert str(refused.value).endswith(f"got {written!r}")


@pytest.mark.parametrize("written", ["500%", 500, "101%"])
def test_no_share_above_all_is_suggested(written: object) -> None:
    with pytest.raises(ValueError, match="between 0% and 100%") as refused:
        units.share(written)
    assert "write" not in str(refused.value)


@pytest.mark.parametrize(
    ("written", "points"), [("1pp", 0.01), ("0.5 pp", 0.005), ("1%", 0.01), (0.01, 0.01)]
)
def test_percentage_points_are_a_share(written: object, points: float) -> None:
    assert units.points(written) == pytest.approx(points)


@pytest.mark.parametrize(
    ("written", "count"),
    [("20M", 20_000_000), ("500k", 500_000), (300, 300), ("1.5M", 1_500_000), ("1G", 10**9)],
)
def test_a_count_may_be_abbreviated(written: object, count: int) -> None:
    assert units.count(written) == count


@pytest.mark.parametrize("written", [-1, 0.5, "0.5", "20MM", True, "many", float("inf"), float("nan")])
def test_a_count_is_a_whole_number(written: object) -> None:
    with pytest.raises(ValueError, match=r"whole number|count"):
        units.count(written)


@pytest.mark.parametrize(("written", "times"), [("6x", 6), ("1.5x", 1.5), (2, 2)])
def test_a_multiple_is_written_with_an_x(written: object, times: float) -> None:
    assert units.factor(written) == times


@pytest.mark.parametrize(
    ("written", "host", "port"),
    [("127.0.0.1:8080", "127.0.0.1", 8080), ("[::1]:80", "::1", 80), ("localhost:0", "localhost", 0)],
)
def test_an_address_to_bind_is_host_and_port_and_prints_as_written(
    written: str, host: str, port: int
) -> None:
    listen = units.listen(written)
    assert (listen.host, listen.port) == (host, port)
    assert str(listen) == written


@pytest.mark.parametrize(
    "written", [8080, "8080", ":8080", "127.0.0.1", "::1:80", "a b:1", "h:99999", "h:-1", None]
)
def test_anything_else_is_no_address_to_bind(written: object) -> None:
    with pytest.raises(ValueError, match=r"HOST:PORT|at most 65535"):
        units.listen(written)


@given(st.integers(0, 10**9), st.sampled_from(sorted(units.BYTES)))
def test_every_whole_number_of_every_unit_is_read_exactly(number: int, unit: str) -> None:
    assert units.size(f"{number}{unit}") == number * units.BYTES[unit]


@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none()))
def test_whatever_is_written_is_read_or_refused_with_a_reason(written: object) -> None:
    for read in (
        units.seconds,
        units.size,
        units.share,
        units.points,
        units.count,
        units.factor,
        units.listen,
    ):
        with contextlib.suppress(ValueError):
            read(written)
