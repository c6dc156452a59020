"""One message as bytes, with its headers and query: plain JSON, Slack, Feishu (Lark), DingTalk.

Signatures: ours is over `TIMESTAMP.BODY`; Feishu's is keyed with `TIMESTAMP\\nSECRET` over nothing, and in
the body; DingTalk's is over `TIMESTAMP\\nSECRET`, timestamps in ms, and in the query. Slack verifies none.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from service.approval.dialects.outgoing.wording import lines_of, title_of
from service.store.outgoing.webhook_terms import Form, WebhookTerms
from service.store.outgoing.webhooks import Event

VERSION = 1
"""Of the plain body; a field may be added within one."""
EVENT_HEADER = "Tiergate-Event"
TIMESTAMP_HEADER, SIGNATURE_HEADER = "Tiergate-Timestamp", "Tiergate-Signature"
SCHEME = "v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is posted."""

    content: bytes
    headers: Mapping[str, str]
    query: Mapping[str, str]

    def path(self, query: str) -> str:
        """`?` and what follows, behind the query that the URL has already."""
        whole = "&".join(part for part in (query, urlencode(self.query)) if part)
        return f"?{whole}" if whole else ""


def message_of(terms: WebhookTerms, event: Event, secrets: Sequence[str], *, now: float) -> Message:
    """One message, signed at this time (unix seconds) with these secrets; chat tools know one alone."""
    body: dict[str, Any]
    query: dict[str, str] = {}
    title, lines = title_of(event, terms.language), lines_of(event, terms.language)
    match terms.form:
        case Form.PLAIN:
            body = _plain(event, title, lines)
        case Form.SLACK:
            body = _slack(title, lines)
        case Form.FEISHU:
            body = _feishu(title, lines, terms.language)
            if secrets:
                stamp = str(int(now))
                body |= {"timestamp": stamp, "sign": feishu_signature(secrets[0], stamp)}
        case Form.DINGTALK:
            body = {"msgtype": "text", "text": {"content": "\n".join((title, *lines))}}
            if secrets:
                stamp = str(int(now * 1000))
                query = {"timestamp": stamp, "sign": dingtalk_signature(secrets[0], stamp)}
    content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    headers = {"Content-Type": "application/json; charset=utf-8", EVENT_HEADER: event.event_id}
    if terms.form is Form.PLAIN:
        stamp = str(int(now))
        signatures = [f"{SCHEME}={signature(secret, stamp, content)}" for secret in secrets]
        headers |= {TIMESTAMP_HEADER: stamp, SIGNATURE_HEADER: ",".join(signatures)}
    return Message(content=content, headers=headers, query=query)


def signature(secret: str, timestamp: str, content: bytes) -> str:
    """HMAC-SHA256 of `TIMESTAMP.BODY`, in hex."""
    return hmac.new(secret.encode(), f"{timestamp}.".encode() + content, hashlib.sha256).hexdigest()


def feishu_signature(secret: str, timestamp: str) -> str:
    """Timestamp in seconds."""
    return _base64(hmac.digest(f"{timestamp}\n{secret}".encode(), b"", "sha256"))


def dingtalk_signature(secret: str, timestamp: str) -> str:
    """Timestamp in milliseconds."""
    return _base64(hmac.digest(secret.encode(), f"{timestamp}\n{secret}".encode(), "sha256"))


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


def _plain(event: Event, title: str, lines: Sequence[str]) -> dict[str, Any]:
    return {
        "version": VERSION,
        "id": event.event_id,
        "event": event.kind.value,
        "action": event.action,
        "at": event.at,
        "model": event.model or None,
        "tier": event.tier or None,
        "actor": event.actor,
        "facts": dict(event.facts),
        "text": "\n".join((title, *lines)),
    }


def _slack(title: str, lines: Sequence[str]) -> dict[str, Any]:
    # Blocks are plain, so that a name is never read as markup; `text` is what notifications show.
    told = "\n".join(lines)
    return {
        "text": _escaped(f"{title}: {lines[0]}"),
        "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": title, "emoji": False}},
            {"type": "section", "text": {"type": "plain_text", "text": told[:3000], "emoji": False}},
        ],
    }


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _feishu(title: str, lines: Sequence[str], language: str) -> dict[str, Any]:
    paragraphs = [[{"tag": "text", "text": line}] for line in lines]
    locale = "zh_cn" if language == "zh" else "en_us"
    return {
        "msg_type": "post",
        "content": {"post": {locale: {"title": title, "content": paragraphs}}},
    }
