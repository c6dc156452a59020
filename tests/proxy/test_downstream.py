"""What clients get: bytes, order, connections. The cases of the client side."""

from __future__ import annotations

from tests.proxy.raw_client import post
from tests.proxy.standing import StartBackend, StartProxy, ladder


async def test_an_answer_reaches_the_client(start_backend: StartBackend, start_proxy: StartProxy) -> None:
    backend = await start_backend()
    proxy = await start_proxy(ladder(backend.url))
    answered = await proxy.ask(post())
    assert (answered.status, answered.body) == (200, b"{}")
    assert backend.last.body == b'{"model":"m","messages":[]}'
