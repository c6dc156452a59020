"""Backends by TLS, unix socket and IPv6: verified, addressed as they call themselves, cut streams noticed."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from service.fleet import Backend, BackendTls, Ladder, Route, Tier
from service.proxy.traffic.health import NoAnswer, probe
from service.proxy.traffic.pool import Server
from service.store.redis.capture import Ending
from tests.authority import Authority
from tests.proxy.raw_client import post
from tests.proxy.scripted import Peer, Received
from tests.proxy.standing import StartBackend, StartProxy

UNTIL_THE_END = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


def only(backend: Backend) -> Ladder:
    return Ladder(model="m", tiers=(Tier(name="t0", backends=(backend,), model="m"),))


async def test_a_backend_of_a_trusted_authority_is_asked_by_tls(
    authority: Authority, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend(tls=authority.issue("gpu").server_context())
    configured = Backend(url=backend.url, tls=BackendTls(ca=authority.text))
    proxy = await start_proxy(only(configured))
    for _ in range(3):
        assert (await proxy.ask(post())).status == 200
    assert backend.connections == 1, "TLS connections are pooled like others"
    assert backend.last.header(b"host") == [f"127.0.0.1:{backend.port}".encode()]
    assert await probe(Server(configured)) == 200


@pytest.mark.parametrize("name", ["no authority of ours", "another authority's", "another name's"])
async def test_a_backend_that_cannot_prove_its_name_gets_nothing(
    name: str, authority: Authority, start_backend: StartBackend, start_proxy: StartProxy, tmp_path: Path
) -> None:
    addresses = () if name == "another name's" else ("127.0.0.1",)
    backend = await start_backend(tls=authority.issue("gpu", addresses=addresses).server_context())
    ca: str | None = authority.text
    if name == "no authority of ours":
        ca = None
    elif name == "another authority's":
        ca = Authority(tmp_path / "other").text
    configured = Backend(url=backend.url, tls=BackendTls(ca=ca))
    proxy = await start_proxy(only(configured))
    answered = await proxy.ask(post())
    assert (answered.status, answered.error) == (503, b"backend_unreachable")
    assert backend.requests == []
    with pytest.raises(NoAnswer, match=r"^TLS verification failed: .*(certificate|match)"):
        await probe(Server(configured))


async def test_whoever_answers_is_taken_only_where_that_is_said(
    authority: Authority, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend(tls=authority.issue("gpu").server_context())
    configured = Backend(url=backend.url, tls=BackendTls(insecure_skip_verify=True))
    assert (await (await start_proxy(only(configured))).ask(post())).status == 200


async def test_a_backend_that_asks_for_a_certificate_gets_ours(
    authority: Authority, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    context = authority.issue("gpu").server_context()
    context.load_verify_locations(authority.file)
    context.verify_mode = ssl.CERT_REQUIRED
    backend = await start_backend(tls=context)
    mine = authority.issue("proxy")
    configured = Backend(
        url=backend.url,
        tls=BackendTls(ca=authority.text, certificate=mine.text, key=mine.key_text),
    )
    assert (await (await start_proxy(only(configured))).ask(post())).status == 200
    assert await probe(Server(configured)) == 200
    bare = replace(configured, tls=BackendTls(ca=authority.text))
    assert (await (await start_proxy(only(bare))).ask(post())).status == 502


@pytest.mark.parametrize("ends", [True, False])
async def test_an_answer_that_ends_with_its_tls_connection_is_whole_only_if_tls_says_so(
    ends: bool, authority: Authority, start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    async def script(received: Received, peer: Peer) -> None:
        await peer.send(UNTIL_THE_END + b"half or whole")
        if ends:
            peer.close()
        else:
            peer.cut()

    backend = await start_backend(script, tls=authority.issue("gpu").server_context())
    proxy = await start_proxy(only(Backend(url=backend.url, tls=BackendTls(ca=authority.text))))
    answered = await proxy.ask(post())
    assert answered.body == b"half or whole"
    assert answered.is_whole is ends
    [capture] = await proxy.captures(1)
    assert capture.ending is (Ending.COMPLETE if ends else Ending.CUT_OFF)


async def test_a_backend_behind_a_unix_socket_is_asked_there(
    start_backend: StartBackend, start_proxy: StartProxy, tmp_path: Path
) -> None:
    path = tmp_path / "vllm.sock"
    backend = await start_backend(path=path)
    configured = Backend(url=f"unix:{path}")
    proxy = await start_proxy(only(configured))
    for _ in range(2):
        assert (await proxy.ask(post())).status == 200
    assert backend.connections == 1
    assert backend.last.header(b"host") == [b"localhost"]
    assert await probe(Server(configured)) == 200


async def test_nobody_behind_a_unix_socket_is_nobody_there(start_proxy: StartProxy, tmp_path: Path) -> None:
    configured = Backend(url=f"unix:{tmp_path}/gone.sock")
    proxy = await start_proxy(only(configured))
    answered = await proxy.ask(post())
    assert (answered.status, answered.error) == (503, b"backend_unreachable")
    with pytest.raises(NoAnswer, match=r"^its socket does not exist$"):
        await probe(Server(configured))


async def test_a_backend_on_ipv6_is_asked_there(
    start_backend: StartBackend, start_proxy: StartProxy, loopback6: str
) -> None:
    backend = await start_backend(host=loopback6)
    configured = Backend(url=backend.url)
    assert (await (await start_proxy(only(configured))).ask(post())).status == 200
    assert backend.last.header(b"host") == [f"[{loopback6}]:{backend.port}".encode()]
    assert await probe(Server(configured)) == 200


async def test_headers_of_a_backend_go_with_requests_and_probes(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    configured = Backend(
        url=backend.url, api_key="ours", headers=(("X-Tenant", "gold"), ("user-agent", "tg"))
    )
    proxy = await start_proxy(only(configured))
    await proxy.ask(post(headers=[b"x-tenant: mine", b"X-TENANT: mine too", b"Authorization: Bearer mine"]))
    assert backend.last.header(b"x-tenant") == [b"gold"]
    assert backend.last.header(b"user-agent") == [b"tg"]
    assert backend.last.header(b"authorization") == [b"Bearer ours"]
    assert await probe(Server(configured)) == 200
    assert backend.last.header(b"x-tenant") == [b"gold"]
    assert backend.last.header(b"user-agent") == [b"tg"]


async def test_two_tiers_may_ask_one_address_with_headers_of_their_own(
    start_backend: StartBackend, start_proxy: StartProxy
) -> None:
    backend = await start_backend()
    tiers = tuple(
        Tier(name=name, backends=(Backend(url=backend.url, headers=(("x-variant", name),)),), model="m")
        for name in ("t0", "t1")
    )
    proxy = await start_proxy(Ladder(model="m", tiers=tiers))
    client = await proxy.connect()
    for version, tier in enumerate((b"t0", b"t1", b"t0"), start=1):
        proxy.store.publish(Route.only("m", tier.decode(), version=version))
        await client.ask(post())  # one connection, one head: what is kept of it is kept by backend
        assert backend.last.header(b"x-variant") == [tier]
