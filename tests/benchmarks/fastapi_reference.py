"""What most people would write first: a FastAPI route over httpx (`fastapi_reference.py PORT UPSTREAM`)."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import httpx
import uvicorn
from fastapi import FastAPI, Request
from starlette.responses import StreamingResponse

DROPPED = {b"host", b"content-length", b"connection"}


def application(upstream: str) -> FastAPI:
    app = FastAPI()
    client = httpx.AsyncClient(
        base_url=upstream,
        limits=httpx.Limits(max_connections=1000, max_keepalive_connections=1000),
        timeout=60,
    )

    @app.post("/{path:path}")
    async def forward(path: str, request: Request) -> StreamingResponse:
        headers = [(name, content) for name, content in request.headers.raw if name not in DROPPED]
        sent = client.build_request("POST", "/" + path, content=await request.body(), headers=headers)
        answer = await client.send(sent, stream=True)

        async def body() -> AsyncIterator[bytes]:
            async for piece in answer.aiter_raw():
                yield piece
            await answer.aclose()

        return StreamingResponse(body(), answer.status_code, {"content-type": answer.headers["content-type"]})

    return app


if __name__ == "__main__":
    uvicorn.run(
        application(sys.argv[2]), host="127.0.0.1", port=int(sys.argv[1]), log_level="error", loop="uvloop"
    )
