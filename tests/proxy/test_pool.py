"""Which backend is asked: the least loaded one that is not ejected."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service.fleet import Backend, BackendTls, KvGuard, Ladder, Limits, Tier
from service.proxy.traffic.pool import FAILURES_TO_EJECT, LONGEST_EJECTION, SHORTEST_EJECTION, Server
from service.proxy.traffic.servers import Servers
from service.proxy.traffic.shares import Share
from service.proxy.traffic.upstream import BackendConnection
from tests.proxy.standing import ladder


def test_the_least_outstanding_is_asked_and_ties_take_turns() -> None:
    model = ladder(["http://a", "http://b", "http://c"])
    servers = Servers({"m": model})
    a, b, c = servers.of("m", "t0")
    picked = [pick[1] for _ in range(6) if (pick := servers.pick(model, model.baseline, now=0.0))]
    assert {picked.count(server) for server in (a, b, c)} == {2}
    a.begin(object())
    b.begin(object())
    assert [servers.pick(model, model.baseline, now=0.0)[1] for _ in range(3)] == [c] * 3  # type: ignore[index]


def test_failures_in_a_row_eject_and_an_answer_between_them_does_not() -> None:
    server = Server(Backend(url="http://a"))
    for _ in range(FAILURES_TO_EJECT - 1):
        assert not server.failed(0.0)
    server.answered()
    for _ in range(FAILURES_TO_EJECT - 1):
        assert not server.failed(0.0)
    assert server.is_usable(0.0)
    assert server.failed(0.0)
    assert not server.is_usable(0.0)


def test_after_an_ejection_one_request_tries_and_its_failure_doubles_the_time() -> None:
    server = Server(Backend(url="http://a"))
    now, length = 0.0, SHORTEST_EJECTION
    server.failed(now, surely=True)
    for _ in range(10):
        assert not server.is_usable(now + length * 0.99)
        now += length
        assert server.is_usable(now)
        server.begin(trial := object())
        assert not server.is_usable(now), "one trial at a time"
        server.end(trial)
        server.failed(now, surely=True)
        length = min(length * 2, LONGEST_EJECTION)
    server.begin(trial := object())
    assert server.answered()
    server.end(trial)
    assert server.is_usable(now)
    server.failed(now, surely=True)
    assert server.is_usable(now + SHORTEST_EJECTION), "an answer makes the next ejection short again"


def test_only_the_trial_itself_ends_the_trial() -> None:
    server = Server(Backend(url="http://a"))
    older, trial = object(), object()
    server.begin(older)
    server.failed(0.0, surely=True)
    server.begin(trial)
    server.end(older)
    assert not server.is_usable(SHORTEST_EJECTION), "the trial still runs"
    server.end(trial)
    assert server.is_usable(SHORTEST_EJECTION), "it ended without an answer, so another may try"
    assert server.outstanding == 0


def test_a_second_request_during_a_trial_does_not_take_it_over() -> None:
    server = Server(Backend(url="http://a"))
    server.failed(0.0, surely=True)
    trial, other = object(), object()
    server.begin(trial)
    server.begin(other)  # picked by who knew no better
    server.end(other)
    assert not server.is_usable(SHORTEST_EJECTION)
    server.end(trial)
    assert server.is_usable(SHORTEST_EJECTION)


def test_a_trial_that_was_answered_and_streams_on_is_no_trial_of_the_next_ejection() -> None:
    server = Server(Backend(url="http://a"))
    server.failed(0.0, surely=True)
    server.begin(stream := object())
    assert server.answered()
    server.failed(5.0, surely=True)
    assert server.is_usable(5.0 + SHORTEST_EJECTION), "somebody may try although the old stream goes on"
    server.begin(trial := object())
    server.end(stream)
    assert not server.is_usable(5.0 + SHORTEST_EJECTION)
    server.end(trial)


def test_failures_while_ejected_neither_prolong_nor_count_as_ejections() -> None:
    server = Server(Backend(url="http://a"))
    assert server.failed(0.0, surely=True)
    assert not any(server.failed(SHORTEST_EJECTION / 2) for _ in range(10))
    assert server.is_usable(SHORTEST_EJECTION)
    assert server.ejections == 1


def test_a_lower_rung_stands_in_and_a_higher_one_never() -> None:
    model = ladder("http://a", "http://b", "http://c")
    servers = Servers({"m": model})
    for tier in ("t1", "t2"):
        servers.of("m", tier)[0].failed(0.0, surely=True)
    pick = servers.pick(model, model.tiers[2], now=0.0)
    assert pick is not None
    assert pick[0] is model.baseline
    servers.of("m", "t0")[0].failed(0.0, surely=True)
    assert servers.pick(model, model.tiers[2], now=0.0) is None
    assert not servers.is_up(model, model.baseline, 0.0)


def test_a_backend_named_twice_is_one_server() -> None:
    shared = Backend(url="http://gpu:8000/")
    ladders = {
        name: Ladder(model=name, tiers=(Tier(name="t0", backends=(shared,), model=name),))
        for name in ("m", "n")
    }
    servers = Servers(ladders)
    assert servers.of("m", "t0") == servers.of("n", "t0")
    assert len(list(servers)) == 1


def test_a_reload_keeps_what_is_known_of_a_backend_that_is_configured_as_before() -> None:
    before = ladder(["http://a", "http://b"], "http://c")
    servers = Servers({"m": before})
    a, b = servers.of("m", "t0")
    [c] = servers.of("m", "t1")
    a.failed(0.0, surely=True)
    b.begin(stream := object())
    after = ladder(["http://d", "http://a"], ["http://c"])
    assert servers.adopt({"m": after}) == [b]
    d, still_a = servers.of("m", "t0")
    assert still_a is a
    assert not a.is_usable(0.5), "an ejection outlives a reload"
    assert servers.of("m", "t1") == (c,)
    assert d.url == "http://d"
    b.end(stream)
    assert b.is_retired
    assert set(servers) == {a, c, d}


@pytest.mark.parametrize(
    "change",
    [
        {"api_key": "other"},
        {"headers": (("x-tenant", "gold"),)},
        {"tls": BackendTls(insecure_skip_verify=True)},
    ],
)
def test_another_key_header_or_trust_makes_another_backend(change: dict[str, Any]) -> None:
    backend = Backend(url="https://a")

    def only(backend: Backend) -> dict[str, Ladder]:
        return {"m": Ladder(model="m", tiers=(Tier(name="t0", backends=(backend,), model="m"),))}

    servers = Servers(only(backend))
    [server] = servers
    assert servers.adopt(only(replace(backend, url="https://a/", max_concurrency=5))) == []
    assert list(servers) == [server], "how much it can take is no other backend"
    assert servers.adopt(only(replace(backend, **change))) == [server]


def test_a_request_of_before_a_reload_is_asked_again_by_the_ladder_of_after() -> None:
    before = ladder("http://a", "http://b", calls_it="old")
    servers = Servers({"m": before})
    after = ladder("http://c", "http://b", calls_it="new")
    servers.adopt({"m": after})
    pick = servers.pick(before, before.tiers[1], now=0.0)
    assert pick is not None
    assert (pick[0].model, pick[1].url) == ("new", "http://b")
    servers.adopt({"m": ladder("http://c")})
    pick = servers.pick(before, before.tiers[1], now=0.0)
    assert pick is not None
    assert (pick[0].name, pick[1].url) == ("t0", "http://c"), "its tier is gone: the baseline"
    servers.adopt({"n": ladder("http://c", model="n")})
    assert servers.pick(before, before.tiers[1], now=0.0) is None, "its model is gone"


def test_a_retired_backend_takes_no_connection_back() -> None:
    servers = Servers({"m": ladder("http://a")})
    [server] = servers
    servers.adopt({"m": ladder("http://b")})
    connection = BackendConnection(server)
    assert not server.keep(connection, 0.0)
    assert server.idle == []


def test_a_unix_socket_is_an_address_too() -> None:
    server = Server(Backend(url="unix:/run/vllm.sock"))
    assert (server.socket, server.authority, server.tls) == ("/run/vllm.sock", b"localhost", None)


@pytest.mark.parametrize(
    ("url", "host", "port", "authority"),
    [
        ("http://gpu-a:8000", "gpu-a", 8000, b"gpu-a:8000"),
        ("http://gpu-a", "gpu-a", 80, b"gpu-a"),
        ("https://gpu-a/", "gpu-a", 443, b"gpu-a"),
        ("http://[::1]:8000", "::1", 8000, b"[::1]:8000"),
        ("http://user:secret@gpu-a:8000", "gpu-a", 8000, b"gpu-a:8000"),
    ],
)
def test_a_url_is_an_address(url: str, host: str, port: int, authority: bytes) -> None:
    server = Server(Backend(url=url))
    assert (server.host, server.port, server.authority) == (host, port, authority)


@pytest.mark.parametrize("url", ["ftp://a", "gpu-a:8000", "http://", ""])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="backend"):
        Server(Backend(url=url))


def limited(*maxima: int | None, model: str = "m") -> Ladder:
    """A ladder with a backend per tier, least aggressive first."""
    return Ladder(
        model=model,
        tiers=tuple(
            Tier(
                name=f"t{rung}", backends=(Backend(url=f"http://{rung}", max_concurrency=most),), model=model
            )
            for rung, most in enumerate(maxima)
        ),
    )


def test_a_full_backend_is_not_asked_while_another_is_free() -> None:
    backends = (Backend(url="http://a", max_concurrency=1), Backend(url="http://b", max_concurrency=3))
    model = Ladder(model="m", tiers=(Tier(name="t0", backends=backends, model="m"),))
    servers = Servers({"m": model})
    asked = []
    while (pick := servers.pick(model, model.baseline, now=0.0)) is not None:
        pick[1].begin(object())
        asked.append(pick[1].url)
    assert sorted(asked) == ["http://a", *["http://b"] * 3]
    assert servers.is_crowded(model, model.baseline, now=0.0)
    assert servers.is_up(model, model.baseline, 0.0)


def test_a_full_tier_is_busy_and_not_down() -> None:
    model = limited(None, 1)
    servers = Servers({"m": model})
    (server,) = servers.of("m", "t1")
    server.begin(object())
    assert servers.pick(model, model.tiers[1], now=0.0) is None
    assert servers.pick(model, model.tiers[1], now=0.0, overfill=True) == (model.tiers[1], server)
    server.failed(0.0, surely=True)
    assert servers.pick(model, model.tiers[1], now=0.0) == (model.baseline, servers.of("m", "t0")[0])
    assert not servers.is_crowded(model, model.tiers[1], now=0.0)


def test_who_goes_below_since_a_tier_is_down_passed_over_none_even_if_that_is_full_too() -> None:
    model = limited(1, 1)
    servers = Servers({"m": model})
    for server in servers:
        server.begin(object())
    assert servers.passed_over(model, model.tiers[1], model.baseline, now=0.0)
    servers.of("m", "t1")[0].failed(0.0, surely=True)
    assert not servers.passed_over(model, model.tiers[1], model.baseline, now=0.0)


def test_what_an_ejected_backend_does_not_answer_never_makes_it_busy() -> None:
    model = limited(None, 1)
    servers = Servers({"m": model})
    (server,) = servers.of("m", "t1")
    hung = object()
    server.begin(hung)
    server.failed(0.0, surely=True)
    later = SHORTEST_EJECTION + 1.0
    assert not server.is_usable(later)
    assert not servers.is_crowded(model, model.tiers[1], now=later)
    server.end(hung)
    assert server.is_usable(later)


def test_each_process_has_its_share_of_a_backend() -> None:
    model = limited(5)
    shares = [Servers({"m": model}, Share(place, 3)).of("m", "t0")[0].most for place in range(3)]
    assert shares == [2, 2, 1]


def test_a_backend_of_two_models_keeps_to_the_smaller_maximum() -> None:
    ladders = {name: limited(most, model=name) for name, most in (("m", 4), ("n", 2), ("o", None))}
    assert [server.most for server in Servers(ladders)] == [2]


def test_a_reload_changes_a_maximum_and_keeps_what_is_under_way() -> None:
    servers = Servers({"m": limited(4)})
    (server,) = servers
    server.begin(object())
    servers.adopt({"m": limited(1)})
    assert [(each, each.most, each.is_full) for each in servers] == [(server, 1, True)]
    servers.adopt({"m": limited(None)})
    assert not server.is_full


def test_the_last_backend_is_asked_on_when_it_is_there_and_only_answers_badly() -> None:
    """One client's poison must not take a model away from everybody."""
    model = ladder(["http://a", "http://b"])
    servers = Servers({"m": model})
    a, b = servers.of("m", "t0")
    for _ in range(FAILURES_TO_EJECT):
        a.failed(0.0, spoke=True)
    assert servers.pick(model, model.baseline, now=0.0) == (model.baseline, b), "others stand in"
    b.failed(0.0, surely=True)
    assert servers.pick(model, model.baseline, now=0.0) == (model.baseline, a)
    assert servers.pick(model, model.baseline, now=0.0, without=[a]) is None
    a.failed(0.0)
    assert servers.pick(model, model.baseline, now=0.0) is None, "it has fallen silent"


def test_a_backend_counts_as_silent_until_it_answers_well() -> None:
    server = Server(Backend(url="http://a"))
    server.failed(0.0)
    server.failed(0.0, spoke=True)
    assert not server.spoke
    server.answered()
    server.failed(0.0, spoke=True)
    assert server.spoke


def test_of_two_models_that_share_a_backend_the_stricter_kv_guard_holds() -> None:
    strict, loose = KvGuard(above=0.8, below=0.7), KvGuard(above=0.9, below=0.6)
    ladders = {
        name: replace(ladder("http://a", model=name), limits=Limits(kv_guard=guard))
        for name, guard in (("m", loose), ("n", strict), ("o", None))
    }
    [server] = Servers(ladders)
    assert server.guard == strict


def test_what_a_kv_guard_leaves_is_never_more_than_what_is_declared() -> None:
    server = Server(Backend(url="http://a"))
    assert [(server.keep_to(left), server.most)[1] for left in (3, 0, None)] == [3, 0, None]
    server.declared = 2
    assert [(server.keep_to(left), server.most)[1] for left in (3, 1, None)] == [2, 1, 2]


def test_an_ejected_backend_whose_kv_guard_is_shut_may_still_be_tried() -> None:
    server = Server(Backend(url="http://a"))
    server.failed(0.0, surely=True)
    server.keep_to(0)
    assert server.is_usable(SHORTEST_EJECTION), "otherwise it would be taken for down and not for busy"
