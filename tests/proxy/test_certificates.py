"""A certificate's files are read whole, tried out, and watched."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.proxy.config import ListenerTls
from service.proxy.processes.certificates import Watch, days_left, read_tls
from service.tls import Part, TlsUnusable
from tests.authority import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def current(authority: Authority) -> ListenerTls:
    pair = authority.issue("proxy", days=30)
    return read_tls(pair.certificate, pair.key, authority.file)


def looked(watch: Watch, times: int = 2) -> ListenerTls | None:
    """What so many looks at files that do not change between them find."""
    found = [watch.look() for _ in range(times)]
    assert all(each is None for each in found[:-1])
    return found[-1]


def test_what_was_read_is_there_with_where_it_was(current: ListenerTls, authority: Authority) -> None:
    assert current.certificate == current.certificate_file.read_text()
    assert current.client_ca == authority.text
    assert "PRIVATE" not in repr(current)


@pytest.mark.parametrize("part", Part)
def test_a_file_that_is_not_there_is_named(part: Part, current: ListenerTls, tmp_path: Path) -> None:
    files = {
        Part.CERTIFICATE: current.certificate_file,
        Part.KEY: current.key_file,
        Part.CA: current.client_ca_file,
    }
    files[part] = tmp_path / "gone.pem"
    with pytest.raises(TlsUnusable, match=r"gone\.pem cannot be read: No such file") as caught:
        read_tls(*files.values())  # type: ignore[arg-type]
    assert caught.value.part is part


def test_days_left_count_down_through_zero(current: ListenerTls) -> None:
    now = datetime.now(UTC)
    assert days_left(current, now) == pytest.approx(30, abs=0.01)
    assert days_left(current, now + timedelta(days=31)) == pytest.approx(-1, abs=0.01)
    assert days_left(current) == pytest.approx(30, abs=0.01)


def test_files_that_say_the_same_are_left_alone(current: ListenerTls) -> None:
    assert looked(Watch(current), 5) is None


def test_a_renewed_pair_is_taken_when_two_looks_agree(current: ListenerTls, authority: Authority) -> None:
    watch = Watch(current)
    authority.issue("proxy")
    renewed = looked(watch)
    assert renewed is not None
    assert renewed.certificate == current.certificate_file.read_text() != current.certificate
    assert looked(watch, 3) is None


def test_a_chain_that_no_client_takes_is_refused_and_the_one_in_use_stands(current: ListenerTls) -> None:
    """As of a hook that appends the certificate each time instead of writing it."""
    watch = Watch(current)
    current.certificate_file.write_text(current.certificate * 300)
    assert watch.look() is None
    with pytest.raises(TlsUnusable, match="no client can use it: excessive message size"):
        watch.look()
    assert watch.current == current
    current.certificate_file.write_text(current.certificate * 3)
    assert looked(watch) is not None, "odd, and harmless"


def test_a_pair_that_is_written_in_two_steps_is_never_taken_for_broken(
    current: ListenerTls, authority: Authority
) -> None:
    watch = Watch(current)
    old_key = current.key
    pair = authority.issue("proxy")
    new_key = pair.key_text
    pair.key.write_text(old_key)
    assert watch.look() is None, "certificate and key do not fit at this moment"
    pair.key.write_text(new_key)
    assert looked(watch) is not None


def test_a_broken_pair_is_told_once_and_the_one_in_use_stands(
    current: ListenerTls, authority: Authority
) -> None:
    watch = Watch(current)
    current.key_file.write_text("rubbish")
    assert watch.look() is None
    with pytest.raises(TlsUnusable, match="no private key"):
        watch.look()
    assert looked(watch, 3) is None
    assert watch.current == current
    current.key_file.unlink()
    assert watch.look() is None
    with pytest.raises(TlsUnusable, match="cannot be read"):
        watch.look()
    assert looked(watch, 3) is None
    current.key_file.write_text(current.key)
    assert looked(watch, 3) is None, "what was in use is back"
    authority.issue("proxy")
    assert looked(watch) is not None
