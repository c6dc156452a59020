"""Receivers of webhooks on real sockets, each verifying as its tool documents, with none of our code."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.listening import Door, listening

Answer = tuple[int, str]


@dataclass
class Inbox:
    """What one receiver took; `script` is answered first, `hold` until it is set."""

    secrets: tuple[str, ...] = ()
    now: float = 0.0
    script: list[Answer] = field(default_factory=list)
    hold: threading.Event | None = None
    asked: int = 0
    taken: list[Any] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        raise NotImplementedError


class Plain(Inbox):
    """The check of docs/webhooks.md."""

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        stamp = headers["tiergate-timestamp"]
        given = [part.removeprefix("v1=") for part in headers["tiergate-signature"].split(",")]
        expected = [
            hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
            for secret in self.secrets
        ]
        if abs(self.now - int(stamp)) > 300 or not {*given} & {*expected}:
            return 401, "forged"
        document = json.loads(body)
        if document["id"] != headers["tiergate-event"]:
            return 422, "whose?"
        self.taken.append(document)
        return 204, ""


class Slack(Inbox):
    """An incoming webhook: `ok`, or a word with 400; blocks have limits."""

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        if path != "/services/T0/B0/secret":
            return 404, "no_service"
        document = json.loads(body)
        if set(document) != {"text", "blocks"} or any(mark in document["text"] for mark in "<>"):
            return 400, "invalid_payload"
        header, section = document["blocks"]
        if header["type"] != "header" or len(header["text"]["text"]) > 150 or section["type"] != "section":
            return 400, "invalid_blocks"
        self.taken.append(document)
        return 200, "ok"


class Feishu(Inbox):
    """A robot with signature verification."""

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        document = json.loads(body)
        stamp = document.get("timestamp", "")
        signs = [
            base64.b64encode(hmac.new(f"{stamp}\n{secret}".encode(), b"", hashlib.sha256).digest()).decode()
            for secret in self.secrets
        ]
        late = not stamp.isdecimal() or abs(self.now - int(stamp)) > 3600
        if late or document.get("sign") not in signs:
            return 200, json.dumps({"code": 19021, "msg": "sign match fail or timestamp is too old"})
        if document["msg_type"] != "post" or not document["content"]["post"]:
            return 200, json.dumps({"code": 9499, "msg": "Bad Request", "data": {}})
        self.taken.append(document)
        return 200, json.dumps({"code": 0, "msg": "success", "data": {}, "StatusCode": 0})


class Dingtalk(Inbox):
    """A robot with a signature."""

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        asked = {name: each[0] for name, each in parse_qs(urlsplit(path).query).items()}
        stamp = asked.get("timestamp", "")
        signs = [
            base64.b64encode(
                hmac.new(secret.encode(), f"{stamp}\n{secret}".encode(), hashlib.sha256).digest()
            ).decode()
            for secret in self.secrets
        ]
        late = not stamp.isdecimal() or abs(self.now * 1000 - int(stamp)) > 3_600_000
        if asked.get("access_token") != "abc":
            return 200, json.dumps({"errcode": 300001, "errmsg": "token is not exist"})
        if late or asked.get("sign") not in signs:
            return 200, json.dumps({"errcode": 310000, "errmsg": "sign not match"})
        document = json.loads(body)
        if document["msgtype"] != "text":
            return 200, json.dumps({"errcode": 40035, "errmsg": "params error"})
        self.taken.append(document)
        return 200, json.dumps({"errcode": 0, "errmsg": "ok"})


@contextmanager
def receiving(inbox: Inbox) -> Iterator[str]:
    """Its address."""

    class Told(Door):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): text for name, text in self.headers.items()}
            inbox.asked += 1
            inbox.ids.append(headers["tiergate-event"])
            if inbox.hold is not None:
                inbox.hold.wait(30.0)
            status, text = inbox.script.pop(0) if inbox.script else inbox.answer(self.path, headers, body)
            content = text.encode()
            try:
                self.send_response(status)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except (BrokenPipeError, ConnectionResetError):
                pass  # whoever asked had gone

    with listening(Told) as url:
        try:
            yield url
        finally:
            if inbox.hold is not None:
                inbox.hold.set()
