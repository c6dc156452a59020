"""A real inference server in all but the model: answers by rule, and misbehaves when told to.

Run as its own process: `python scripted_backend.py PORT MODEL`. `POST /_script` sets how it behaves from then
on: {"mode": "ok" | "broken" | "error" | "hang" | "refuse" | "cut", "pause": seconds, "version": text}; `GET
/_seen` counts requests. It says that it is vLLM, of that version.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

FACT = re.compile(r"The (?P<key>[\w ]+?) is (?P<value>[\w, -]+)\.")


def record_for(question: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A record that satisfies the schema, whose fields are texts and whole numbers."""
    number = re.search(r"\d+", question)
    fields = schema.get("properties", {"order": {"type": "integer"}, "note": {"type": "string"}})
    return {
        name: (int(number.group()) if number else 0) if field.get("type") == "integer" else "订单🙂"
        for name, field in fields.items()
    }


def text_for(body: dict[str, Any], mode: str) -> str:
    """What the model says: JSON when asked for JSON, a fact when asked for one, else an echo with emoji."""
    question = body["messages"][-1]["content"]
    asked_for = body.get("response_format", {})
    if asked_for.get("type", "text") != "text":
        schema = asked_for.get("json_schema", {}).get("schema", {})
        answer = json.dumps(record_for(question, schema), ensure_ascii=False)
        return answer[:-4] if mode == "broken" else answer
    prompt = "\n".join(message["content"] for message in body["messages"])
    asked = re.search(r"[Ww]hat is the (?P<key>[\w ]+)\?", question[-120:])
    if asked:
        for fact in FACT.finditer(prompt):
            if fact["key"].lower() == asked["key"].lower():
                return "I do not know." if mode == "broken" else f"The {fact['key']} is {fact['value']}."
    if mode == "refuse":
        return "I'm sorry, but I can't help with that."
    return f"你好 👋🏽 you asked: {question[-60:]}"


class Backend:
    """One model, one script, and what it has seen."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.mode = "ok"
        self.pause = 0.0
        self.version = "0.32.0"
        self.seen: Counter[str] = Counter()

    async def chat(self, request: Request) -> Response:
        body = await request.json()
        self.seen[self.mode] += 1
        self.seen["replays" if "x-tiergate-replay" in request.headers else "live"] += 1
        self.seen["credentials"] += "authorization" in request.headers
        if self.mode == "hang":
            await asyncio.sleep(3600)
        if self.mode == "error":
            return JSONResponse({"error": {"message": "out of memory", "type": "server_error"}}, 500)
        text = text_for(body, self.mode)
        if body.get("stream"):
            return StreamingResponse(self.events(text), media_type="text/event-stream")
        await asyncio.sleep(self.pause)
        message = {"role": "assistant", "content": text}
        return JSONResponse(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "model": self.model,
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
            }
        )

    async def events(self, text: str) -> AsyncIterator[bytes]:
        def event(delta: dict[str, str], finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}
            return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"

        for start in range(0, len(text), 3):
            if self.mode == "cut" and start > len(text) // 2:
                raise ConnectionResetError("told to end in the middle of an answer")
            whole = event({"content": text[start : start + 3]})
            # Cut inside a character: nothing promises that chunks end where characters do.
            yield whole[: len(whole) // 2]
            yield whole[len(whole) // 2 :]
            await asyncio.sleep(self.pause)
        yield event({}, "stop") + b"data: [DONE]\n\n"

    async def models(self, _: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": self.model, "object": "model"}]})

    async def script(self, request: Request) -> Response:
        asked = await request.json()
        self.mode, self.pause = asked.get("mode", self.mode), asked.get("pause", self.pause)
        self.version = asked.get("version", self.version)
        return JSONResponse({"mode": self.mode})

    async def counts(self, _: Request) -> Response:
        return JSONResponse(dict(self.seen))

    async def told_version(self, _: Request) -> Response:
        return JSONResponse({"version": self.version})

    async def metrics(self, _: Request) -> Response:
        return PlainTextResponse(
            'vllm:cache_config_info{cache_dtype="auto",enable_prefix_caching="True",engine="0",'
            'gpu_memory_utilization="0.92",kv_cache_size_tokens="46592"} 1.0\n'
        )

    async def health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})


def serve(port: int, model: str) -> None:
    backend = Backend(model)
    app = Starlette(
        routes=[
            Route("/v1/chat/completions", backend.chat, methods=["POST"]),
            Route("/v1/models", backend.models),
            Route("/version", backend.told_version),
            Route("/metrics", backend.metrics),
            Route("/_script", backend.script, methods=["POST"]),
            Route("/_seen", backend.counts),
            Route("/health", backend.health),
        ]
    )
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=1)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2])
