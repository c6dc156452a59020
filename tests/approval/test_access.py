"""Who may do what, row by row."""

from __future__ import annotations

import base64

import pytest

from service.approval.access import (
    Caller,
    Head,
    Scope,
    asks_loopback,
    check_host,
    check_origin,
    credentials,
    is_local,
    require,
    widest,
)
from service.approval.errors import Problem

ALLOWED = ("127.0.0.1", "localhost", "::1", "tiergate.example")


def head(*headers: tuple[str, str], method: str = "GET", peer: str | None = "127.0.0.1") -> Head:
    return Head(method=method, peer=peer, headers=headers)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:8081",
        "localhost:1",
        "LOCALHOST",
        "localhost.",
        "[::1]",
        "[::1]:8081",
        "Tiergate.Example:443",
    ],
)
def test_our_own_names_are_hosts_under_any_port(host: str) -> None:
    check_host(head(("host", host)), ALLOWED)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8081",
        "evil.example:127.0.0.1",
        "",
        " ",
        "127.0.0.1@evil.example",
        "xlocalhost",
        "[::1].evil.example.x]",
        "0.0.0.0",
        "0",
        "2130706433",
        "127.1",
    ],
)
def test_any_other_name_is_refused(host: str) -> None:
    with pytest.raises(Problem) as refused:
        check_host(head(("host", host)), ALLOWED)
    assert (refused.value.status, refused.value.code) == (403, "host_not_allowed")


@pytest.mark.parametrize("hosts", [(), (("host", "localhost"), ("host", "evil.example"))])
def test_no_host_or_two_are_refused(hosts: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(Problem) as refused:
        check_host(head(*hosts), ALLOWED)
    assert refused.value.status == 400


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8081", "https://127.0.0.1:8081"])
def test_pages_of_our_own_origin_may_write(origin: str) -> None:
    check_origin(head(("host", "127.0.0.1:8081"), ("origin", origin), method="PUT"), ())


def test_a_configured_origin_may_write() -> None:
    check_origin(
        head(("host", "127.0.0.1:8081"), ("origin", "https://ops.example"), method="PUT"),
        ("https://ops.example",),
    )


def test_under_a_public_name_by_https_our_own_pages_are_those_by_https() -> None:
    public = "https://tiergate.example"
    asked = ("host", "tiergate.example")
    check_origin(head(asked, ("origin", public), method="POST"), (public,), public)
    with pytest.raises(Problem):
        check_origin(head(asked, ("origin", "http://tiergate.example"), method="POST"), (public,), public)
    local = head(("host", "127.0.0.1:8081"), ("origin", "http://127.0.0.1:8081"), method="POST")
    check_origin(local, (public,), public)
    check_origin(
        head(asked, ("origin", "http://tiergate.example"), method="POST"), (), "http://tiergate.example"
    )


def test_programs_that_send_no_origin_may_write() -> None:
    check_origin(head(("host", "127.0.0.1:8081"), method="PUT"), ())


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "",
        "http://127.0.0.1",
        "http://127.0.0.1:8082",
        "http://127.0.0.1:8081.evil.example",
        "http://evil.example/127.0.0.1:8081",
        "http://evil.example@127.0.0.1:8081",
        "http://[",
        "127.0.0.1:8081",
        "https://ops.example.evil",
    ],
)
def test_pages_of_another_origin_may_not_write(origin: str) -> None:
    with pytest.raises(Problem) as refused:
        check_origin(head(("host", "127.0.0.1:8081"), ("origin", origin)), ("https://ops.example",))
    assert refused.value.code == "origin_not_allowed"


def test_one_foreign_origin_among_two_is_enough_to_refuse() -> None:
    with pytest.raises(Problem):
        check_origin(
            head(("host", "h"), ("origin", "http://h"), ("origin", "http://evil.example"), method="PUT"), ()
        )


@pytest.mark.parametrize(
    ("shown", "secret"),
    [("Bearer tg_a_b", "tg_a_b"), ("bearer tg_a_b", "tg_a_b"), ("Bearer   tg_a_b  ", "tg_a_b")],
)
def test_a_bearer_token_is_read(shown: str, secret: str) -> None:
    assert credentials(head(("authorization", shown))) == secret


def test_no_authorization_is_no_secret() -> None:
    assert credentials(head()) is None


@pytest.mark.parametrize(
    "shown",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer a b",
        "Bearer a\tb",
        "Bearer \x00",
        "Token abc",
        "tg_a_b",
        "Bearer " + "a" * 2000,
        "Bearer tökén",
        "Basic",
        "Basic !!!",
        "Basic " + base64.b64encode(b"user").decode(),
        "Basic " + base64.b64encode(b"user:").decode(),
        "Basic " + base64.b64encode(b"user:\xff").decode(),
        "Negotiate abc",
    ],
)
def test_what_cannot_be_a_token_is_unauthorized(shown: str) -> None:
    with pytest.raises(Problem) as refused:
        credentials(head(("authorization", shown)))
    assert refused.value.status == 401
    assert "abc" not in refused.value.message, "an error never repeats a secret"


def test_two_tokens_are_refused_rather_than_chosen_from() -> None:
    with pytest.raises(Problem):
        credentials(head(("authorization", "Bearer a"), ("authorization", "Bearer b")))


def test_a_browser_may_show_its_token_as_a_password_for_reading_alone() -> None:
    shown = ("authorization", "Basic " + base64.b64encode(b"me:tg_a_b").decode())
    assert credentials(head(shown)) == "tg_a_b"
    with pytest.raises(Problem):
        credentials(head(shown, method="PUT"))


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
def test_loopback_addresses_are_local(peer: str) -> None:
    assert is_local(head(peer=peer))


@pytest.mark.parametrize("peer", [None, "", "10.0.0.1", "::ffff:10.0.0.1", "localhost", "fe80::1", "0.0.0.0"])
def test_other_addresses_are_not_local(peer: str | None) -> None:
    assert not is_local(head(peer=peer))


@pytest.mark.parametrize(
    ("hosts", "asked"),
    [
        (("127.0.0.1:8081",), True),
        (("LOCALHOST",), True),
        (("[::1]:8081",), True),
        (("127.8.9.10",), True),
        (("tiergate.example",), False),
        (("0.0.0.0:8081",), False),
        (("localhost.evil.example",), False),
        (("127.0.0.1", "tiergate.example"), False),
        (("",), False),
        ((), False),
    ],
)
def test_callers_here_ask_for_a_name_of_loopback(hosts: tuple[str, ...], asked: bool) -> None:
    assert asks_loopback(head(*(("host", host) for host in hosts))) is asked


@pytest.mark.parametrize(
    "name",
    [
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "forwarded",
        "x-real-ip",
        "via",
        "cf-connecting-ip",
    ],
)
def test_a_forwarded_request_is_not_local(name: str) -> None:
    assert not is_local(head((name, "127.0.0.1")))


@pytest.mark.parametrize(
    ("has", "needs", "allowed"),
    [
        (Scope.READ, Scope.READ, True),
        (Scope.READ, Scope.APPROVE, False),
        (Scope.READ, Scope.ADMIN, False),
        (Scope.APPROVE, Scope.READ, True),
        (Scope.APPROVE, Scope.APPROVE, True),
        (Scope.APPROVE, Scope.ADMIN, False),
        (Scope.ADMIN, Scope.READ, True),
        (Scope.ADMIN, Scope.APPROVE, True),
        (Scope.ADMIN, Scope.ADMIN, True),
    ],
)
def test_a_wider_scope_includes_the_narrower_ones(has: Scope, needs: Scope, allowed: bool) -> None:
    caller = Caller(name="ci", scope=has)
    assert caller.may(needs) is allowed
    if not allowed:
        with pytest.raises(Problem) as refused:
            require(caller, needs, "this")
        assert refused.value.status == 403
        assert f'scope="{needs}"' in refused.value.headers["WWW-Authenticate"]


def test_nobody_is_asked_for_a_token_first() -> None:
    with pytest.raises(Problem) as refused:
        require(Caller(name="anybody", scope=None), Scope.READ, "reading")
    assert refused.value.status == 401


@pytest.mark.parametrize(
    ("scopes", "most"),
    [
        ((), None),
        (("read",), Scope.READ),
        (("admin", "read"), Scope.ADMIN),
        (("approve",), Scope.APPROVE),
        (("root",), None),
    ],
)
def test_a_token_is_worth_its_widest_known_scope(scopes: tuple[str, ...], most: Scope | None) -> None:
    assert widest(scopes) is most
