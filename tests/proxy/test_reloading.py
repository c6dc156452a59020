"""What a reload takes over, and what waits for a restart."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from service.proxy.config import ClientLimits, ListenerTls, Mirroring, ProxyConfig, Timeouts
from service.proxy.processes.reloading import AT_START_ONLY, naming_what_is_pinned, reload
from tests.proxy.standing import ladder

CURRENT = ProxyConfig(ladders={"m": ladder("http://a")})
TAKEN = {
    "ladders": {"n": ladder("http://b", model="n")},
    "timeouts": Timeouts(idle=1.0),
    "clients": ClientLimits(head=1.0),
    "mirroring": Mirroring(sample=1.0),
    "max_request": 1,
    "forward_paths": ("/v2/",),
    "default_model": "n",
    "half_close": True,
    "probe_seconds": None,
    "drain_seconds": 1.0,
    "capture_key_id": "2",
    "capture_keys": {"2": b"k" * 16},
    "tls": ListenerTls(certificate_file=Path("c"), key_file=Path("k"), certificate="x"),
    "admin_hosts": ("ops",),
}
WAITING = {
    "listen_port": (1, "proxy.listen"),
    "listen_path": ("/run/x", "proxy.listen"),
    "admin_host": ("::1", "proxy.admin"),
    "processes": (9, "proxy.processes"),
    "redis_url": ("redis://other", "store.redis"),
    "state_dir": (Path("/other"), "store.state_dir"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_it_is_taken_at_once(name: str) -> None:
    found = reload(CURRENT, replace(CURRENT, **{name: TAKEN[name]}))  # type: ignore[arg-type]
    assert getattr(found.config, name) == TAKEN[name]
    assert (found.waiting, found.is_change) == ((), True)


@pytest.mark.parametrize("name", WAITING)
def test_it_waits_for_a_restart_and_is_named_as_in_the_file(name: str) -> None:
    value, key = WAITING[name]
    found = reload(CURRENT, replace(CURRENT, **{name: value}, max_request=5))  # type: ignore[arg-type]
    assert found.waiting == (key,)
    assert found.config == replace(CURRENT, max_request=5)


def test_a_new_address_is_named_once() -> None:
    found = reload(CURRENT, replace(CURRENT, listen_host="::", listen_port=1))
    assert (found.waiting, found.is_change) == (("proxy.listen",), False)


def test_what_is_pinned_is_named_when_the_file_says_something_new_and_only_then() -> None:
    file = replace(CURRENT, listen_port=0)
    pinned = replace(CURRENT, listen_port=41234)
    same = naming_what_is_pinned(replace(pinned, max_request=5), before=file, now=file)
    assert reload(pinned, same).waiting == ()
    other = naming_what_is_pinned(pinned, before=file, now=replace(file, listen_port=8080))
    assert reload(pinned, other).waiting == ("proxy.listen",)
    assert reload(pinned, other).config == pinned


def test_the_same_again_is_no_change() -> None:
    assert not reload(CURRENT, replace(CURRENT)).is_change


def test_every_field_has_its_place() -> None:
    names = {each.name for each in fields(ProxyConfig)}
    assert set(AT_START_ONLY) <= names
    assert set(WAITING) <= set(AT_START_ONLY)
    assert set(TAKEN) <= names - set(AT_START_ONLY)
