"""A proxy whose configuration or certificate changes while it serves: nobody notices but those it is for."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import socket
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.authority import Authority
from tests.conftest import ValkeyServer
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.proxy.commanded import Commanded, commanded
from tests.proxy.processes import Running
from tests.proxy.raw_client import RawClient, post
from tests.proxy.scripted import CHUNKED, OK, Peer, Received
from tests.proxy.standing import StartBackend, eventually


async def until_said(proxy: Commanded, text: str) -> None:
    """Its log is written by a thread that it does not wait for."""
    await eventually(lambda: text in proxy.log)


@pytest.fixture
def content(valkey: ValkeyServer, tmp_path: Path) -> dict[str, Any]:
    """A configuration without models."""
    return {
        "models": {},
        "mirror": {"sample": "100%"},
        "proxy": {
            "listen": "127.0.0.1:0",
            "admin": "127.0.0.1:0",
            "processes": 2,
            "health_every": "500ms",
            "drain": "5s",
        },
        "store": {"redis": valkey.url, "state_dir": str(tmp_path / "state")},
    }


def serving(content: dict[str, Any], *urls: str, **changes: Any) -> dict[str, Any]:
    model = {"ladder": [{"tier": "t0", "backends": list(urls)}]}
    return content | {"models": {"m": model}, "proxy": content["proxy"] | changes}


async def streaming(received: Received, peer: Peer) -> None:
    if received.line.startswith(b"GET"):
        await peer.send(OK)
        return
    await peer.send(CHUNKED)
    for _ in range(20):
        await peer.send(b"5\r\ntoken\r\n", pause=0.05)
    await peer.send(b"0\r\n\r\n")


def ask_to_reload(proxy: Running, **headers: str) -> tuple[int, dict[str, Any]]:
    asking = urllib.request.Request(f"{proxy.admin}/reload", method="POST", headers=headers)
    try:
        with urllib.request.urlopen(asking, timeout=PATIENCE) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


async def test_a_sighup_drops_no_stream_and_no_connection(
    content: dict[str, Any], start_backend: StartBackend, tmp_path: Path
) -> None:
    old, new = await start_backend(streaming), await start_backend()
    with commanded(tmp_path, serving(content, old.url)) as proxy:
        await proxy.until("/readyz", 200)
        streams = [await proxy.connect() for _ in range(20)]
        for stream in streams:
            await stream.send(post())
            await stream.reader.readuntil(b"token\r\n")
        proxy.write(serving(content, new.url))
        await proxy.reload()
        for stream in streams:
            rest = await stream.reader.readuntil(b"0\r\n\r\n")
            assert rest.count(b"token") == 19
            assert (await stream.ask(post())).body == b"{}", "the same connection, the new backend"
            stream.close()
        assert len([each for each in old.requests if each.line.startswith(b"POST")]) == 20
        assert await proxy.counted("config_reloads_total", outcome="applied") == 1
        for name in ("unchanged", "refused"):
            assert await proxy.counted("config_reloads_total", outcome=name) == 0
        assert await asyncio.to_thread(proxy.stop) == 0


async def test_an_invalid_file_leaves_the_old_configuration_and_says_what_is_wrong_where(
    content: dict[str, Any], start_backend: StartBackend, tmp_path: Path
) -> None:
    backend = await start_backend()
    with commanded(tmp_path, serving(content, backend.url)) as proxy:
        await proxy.until("/readyz", 200)
        for wrong in (
            serving(content, backend.url, drain="soon"),
            serving(content, backend.url, tls={"certificate_file": "no.pem", "key_file": "no.key"}),
            serving(content, "ftp://backend"),
            "models: [",
        ):
            proxy.write(wrong)
            await proxy.reload()
            assert await proxy.ask() == 200
        assert await proxy.counted("config_reloads_total", outcome="refused") == 4
        for told in ("proxy.drain (line", "proxy.tls.certificate_file", "expected http://HOST:PORT", "YAML"):
            await until_said(proxy, told)
        proxy.file.unlink()
        status, answer = await asyncio.to_thread(ask_to_reload, proxy)
        assert (status, answer["outcome"]) == (422, "refused")
        assert "there is no such file" in answer["error"]
        assert await asyncio.to_thread(proxy.stop) == 0


async def test_a_reload_by_the_admin_address_says_what_came_of_it(
    content: dict[str, Any], start_backend: StartBackend, tmp_path: Path
) -> None:
    backend = await start_backend()
    with commanded(tmp_path, serving(content, backend.url)) as proxy:
        await proxy.until_counted("processes", 2)
        assert (await asyncio.to_thread(ask_to_reload, proxy))[1] == {
            "outcome": "unchanged",
            "needs_restart": [],
            "processes": 2,
            "unreachable": [],
        }
        changed = serving(content, backend.url, processes=4, listen="127.0.0.1:1", max_request="1kB")
        proxy.write(changed | {"store": content["store"] | {"broker": "redis://127.0.0.1:1/0"}})
        status, answer = await asyncio.to_thread(ask_to_reload, proxy)
        assert (status, answer["outcome"], answer["processes"]) == (200, "applied", 2)
        assert answer["needs_restart"] == ["proxy.listen", "proxy.processes", "store.broker"]
        await until_said(
            proxy, "proxy.listen, proxy.processes, store.broker: a new value is taken at the next"
        )
        assert await proxy.ask(post(b'{"model":"m","x":"' + b"x" * 1000 + b'"}')) == 413
        for headers in ({"Host": "evil.example"}, {"Origin": "http://127.0.0.1"}):
            assert (await asyncio.to_thread(ask_to_reload, proxy, **headers))[0] == 403
        assert len(proxy.children) == 2
        assert await asyncio.to_thread(proxy.stop) == 0


async def test_a_reload_says_which_new_backends_cannot_be_used_and_takes_them_all_the_same(
    content: dict[str, Any], start_backend: StartBackend, tmp_path: Path
) -> None:
    async def deny(received: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")

    old, fine, denying = await start_backend(), await start_backend(), await start_backend(deny)
    port = free_port()
    away, gone = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{free_port()}"
    with commanded(tmp_path, serving(content, old.url, gone)) as proxy:
        await proxy.until_counted("processes", 2)
        proxy.write(serving(content, away, gone))
        status, answer = await asyncio.to_thread(ask_to_reload, proxy)
        assert (status, answer["outcome"]) == (200, "applied")
        assert answer["unreachable"] == [f"{away}: refused the connection"], "the other one is not new"
        await until_said(proxy, f"not to be used as it is: backend {away}: refused the connection")
        await start_backend(port=port)
        await proxy.until("/readyz", 200)
        assert await proxy.ask() == 200
        proxy.write(serving(content, away, fine.url, denying.url))
        answer = (await asyncio.to_thread(ask_to_reload, proxy))[1]
        assert answer["unreachable"] == [f"{denying.url}: answers 401 when asked for its health"]
        proxy.write(serving(content, gone, health_every="none"))
        assert (await asyncio.to_thread(ask_to_reload, proxy))[1]["unreachable"] == [], "it is not asked"
        assert await asyncio.to_thread(proxy.stop) == 0


async def test_a_process_that_starts_later_goes_by_the_new_configuration(
    content: dict[str, Any], start_backend: StartBackend, tmp_path: Path
) -> None:
    old, new = await start_backend(), await start_backend()
    with commanded(tmp_path, serving(content, old.url, processes=1)) as proxy:
        await proxy.until("/readyz", 200)
        proxy.write(serving(content, new.url, processes=1))
        await proxy.reload()
        proxy.write("rubbish: [")
        await proxy.reload()
        [victim] = proxy.children
        os.kill(victim, signal.SIGKILL)
        await eventually(lambda: victim not in proxy.children and len(proxy.children) == 1)
        assert await proxy.ask() == 200
        assert [each.line for each in new.requests if each.line.startswith(b"POST")]
        assert not [each.line for each in old.requests if each.line.startswith(b"POST")]
        assert await asyncio.to_thread(proxy.stop) == 0


async def test_signals_to_the_whole_group_reload_and_end_nobody(
    content: dict[str, Any], start_backend: StartBackend, tmp_path: Path
) -> None:
    backend = await start_backend()
    with commanded(tmp_path, serving(content, backend.url)) as proxy:
        await proxy.until_counted("processes", 2)
        children = proxy.children
        for pid in (*children, *children):
            os.kill(pid, signal.SIGHUP)
        for _ in range(5):
            proxy.hang_up()
        await proxy.reload()
        assert await asyncio.gather(*(proxy.ask() for _ in range(20))) == [200] * 20
        assert proxy.children == children
        assert await asyncio.to_thread(proxy.stop) == 0


def serial(client: RawClient) -> str:
    return str(client.writer.get_extra_info("ssl_object").getpeercert()["serialNumber"])


async def new_serial(proxy: Commanded, context: ssl.SSLContext) -> str:
    client = await proxy.connect_by_tls(context)
    try:
        assert (await client.ask(post())).status == 200
        return serial(client)
    finally:
        client.close()


async def test_a_renewed_certificate_is_shown_without_being_asked_and_a_broken_one_never(
    content: dict[str, Any], start_backend: StartBackend, tmp_path: Path
) -> None:
    backend = await start_backend(streaming)
    authority = Authority(tmp_path / "tls")
    pair = authority.issue("proxy", days=20)
    context = authority.client_context()
    settings = {"certificate_file": "tls/proxy.pem", "key_file": "tls/proxy.key"}
    with commanded(tmp_path, serving(content, backend.url, tls=settings)) as proxy:
        assert proxy.where.startswith("https://127.0.0.1:")
        await proxy.until("/readyz", 200)
        assert await proxy.counted("tls_certificate_days_left") == pytest.approx(20, abs=0.1)
        first = await new_serial(proxy, context)
        stream = await proxy.connect_by_tls(context)
        await stream.send(post())
        await stream.reader.readuntil(b"token\r\n")

        authority.issue("proxy", days=300)
        async with asyncio.timeout(PATIENCE):
            second = first
            while second == first:
                await asyncio.sleep(0.1)
                second = await new_serial(proxy, context)
        await stream.reader.readuntil(b"0\r\n\r\n")
        assert (await stream.ask(post())).is_whole, "an open connection goes on under the old one"
        assert await proxy.counted("tls_certificate_days_left") == pytest.approx(300, abs=0.1)
        assert await proxy.counted("tls_reloads_total", outcome="applied") == 1

        proxy.write(serving(content, backend.url, tls=settings | {"certificate_file": "tls/other.pem"}))
        (tmp_path / "tls" / "other.pem").write_text(pair.certificate.read_text())
        await proxy.reload()
        assert await proxy.counted("tls_reloads_total", outcome="applied") == 1, "the same by another name"
        authority.issue("proxy", days=100)
        (tmp_path / "tls" / "other.pem").write_text(pair.certificate.read_text())
        await proxy.reload()
        assert await proxy.counted("tls_reloads_total", outcome="applied") == 2
        third = await new_serial(proxy, context)
        assert third != second

        pair.key.write_text("rubbish")
        await proxy.until_counted("tls_reloads_total", 1, outcome="refused")
        await until_said(proxy, "there is no private key in PEM form in it")
        children = proxy.children
        os.kill(children.pop(), signal.SIGKILL)
        await eventually(lambda: len(proxy.children) == 2)
        await proxy.until("/readyz", 200)
        for _ in range(10):  # also those that fall to the process that started while the file was broken
            assert await new_serial(proxy, context) == third
        await proxy.reload()
        assert await proxy.counted("config_reloads_total", outcome="refused") == 1
        assert await new_serial(proxy, context) == third
        stream.close()
        assert await asyncio.to_thread(proxy.stop) == 0
    assert "Traceback" not in proxy.log


async def test_tls_can_be_switched_on_by_a_reload(
    content: dict[str, Any], start_backend: StartBackend, tmp_path: Path
) -> None:
    backend = await start_backend()
    authority = Authority(tmp_path / "tls")
    authority.issue("proxy")
    with commanded(tmp_path, serving(content, backend.url)) as proxy:
        await proxy.until("/readyz", 200)
        plain = await proxy.connect()
        assert (await plain.ask(post())).status == 200
        settings = {"certificate_file": "tls/proxy.pem", "key_file": "tls/proxy.key"}
        proxy.write(serving(content, backend.url, tls=settings))
        await proxy.reload()
        assert await new_serial(proxy, authority.client_context())
        assert (await plain.ask(post())).status == 200, "who is in stays in"
        plain.close()
        assert await asyncio.to_thread(proxy.stop) == 0


async def ask_unix(path: Path) -> int:
    client = RawClient(*await asyncio.open_unix_connection(path))
    try:
        return (await client.ask(post())).status
    finally:
        client.close()


async def test_several_processes_serve_one_unix_socket(
    content: dict[str, Any], start_backend: StartBackend, tmp_path: Path
) -> None:
    path = tmp_path / "tiergate.sock"
    backend = await start_backend(path=tmp_path / "gpu.sock")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    changed = serving(content, backend.url, listen=f"unix:{path}", socket_mode="0600")
    with commanded(tmp_path, changed) as proxy:
        assert proxy.where == f"unix:{path}"
        await proxy.until("/readyz", 200)
        assert path.stat().st_mode & 0o777 == 0o600
        assert await asyncio.gather(*(ask_unix(path) for _ in range(30))) == [200] * 30
        other = tmp_path / "other"
        other.mkdir()
        with (
            pytest.raises(RuntimeError, match="somebody listens there"),
            commanded(other, changed | {"store": content["store"] | {"state_dir": str(other)}}),
        ):
            pass
        assert await ask_unix(path) == 200
        [victim, _] = proxy.children
        os.kill(victim, signal.SIGKILL)
        await eventually(lambda: victim not in proxy.children and len(proxy.children) == 2)
        assert await asyncio.gather(*(ask_unix(path) for _ in range(30))) == [200] * 30
        assert await asyncio.to_thread(proxy.stop) == 0
    assert not path.exists()


async def test_it_listens_on_ipv6(
    content: dict[str, Any], start_backend: StartBackend, tmp_path: Path, loopback6: str
) -> None:
    backend = await start_backend(host=loopback6)
    address = f"[{loopback6}]:0"
    with commanded(tmp_path, serving(content, backend.url, listen=address, admin=address)) as proxy:
        assert proxy.where.startswith(f"http://[{loopback6}]:")
        await proxy.until("/readyz", 200)
        client = RawClient(*await asyncio.open_connection(loopback6, proxy.port))
        assert (await client.ask(post())).status == 200
        client.close()
        assert (await asyncio.to_thread(ask_to_reload, proxy))[1]["outcome"] == "unchanged"
        assert await asyncio.to_thread(proxy.stop) == 0


async def test_a_terminal_that_closes_stops_it_and_a_sighup_in_a_terminal_does_not(
    content: dict[str, Any], start_backend: StartBackend, tmp_path: Path
) -> None:
    backend = await start_backend()
    ours, theirs = pty.openpty()
    try:
        name = os.ttyname(theirs)
        with commanded(tmp_path, serving(content, backend.url, processes=1), terminal=name) as proxy:
            await proxy.until("/readyz", 200)
            await proxy.reload()
            assert await proxy.ask() == 200
            os.close(theirs)
            os.close(ours)
            ours = theirs = -1
            assert await asyncio.to_thread(proxy.process.wait, PATIENCE) == 0
    finally:
        for each in {ours, theirs} - {-1}:
            os.close(each)
