"""How a backend is reached over httpx: its socket, its TLS, its key and its headers.

For whoever asks backends without being the proxy: the worker's replays, the guard's looks at engines,
`tiergate check`, the API before it moves a route. Backends come from the configuration alone, so nothing here
listens to the environment's proxies or follows a redirect.
"""

from __future__ import annotations

import httpx

from service import tls
from service.engines.asking import Page
from service.fleet import Backend


def base_url(backend: Backend) -> str:
    """What a path is appended to; the host of a unix socket is a name that servers expect of this machine."""
    return backend.url if backend.socket is None else "http://localhost"


def headers_of(backend: Backend) -> dict[str, str]:
    """The backend's credentials and the headers that the configuration gives it, in lower case."""
    own = {name.lower(): value for name, value in backend.headers}
    if backend.api_key is not None:
        own["authorization"] = f"Bearer {backend.api_key}"
    return own


def client_of(
    backend: Backend,
    *,
    timeout: httpx.Timeout | float,
    limits: httpx.Limits | None = None,
) -> httpx.AsyncClient:
    """Connections to that backend alone; its own headers go with every request."""
    settings = backend.tls
    context = tls.connecting(
        ca=settings.ca,
        certificate=settings.certificate,
        key=settings.key,
        insecure_skip_verify=settings.insecure_skip_verify,
    )
    transport = httpx.AsyncHTTPTransport(
        verify=context,
        trust_env=False,
        limits=limits or httpx.Limits(max_keepalive_connections=0),
        uds=backend.socket,
    )
    return httpx.AsyncClient(
        base_url=base_url(backend),
        transport=transport,
        timeout=timeout,
        trust_env=False,
        follow_redirects=False,
        headers=headers_of(backend),
    )


async def read_page(client: httpx.AsyncClient, path: str, *, longest: int) -> Page:
    """What it answers to GET, read no further than `longest` bytes; httpx.HTTPError when it does not."""
    async with client.stream("GET", path) as answer:
        body = bytearray()
        async for chunk in answer.aiter_bytes():
            body += chunk
            if len(body) > longest:
                break
        return Page(status=answer.status_code, text=body.decode("utf-8", "replace"))
