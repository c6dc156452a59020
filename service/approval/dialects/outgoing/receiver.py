"""One receiver: a message is posted to its configured URL, and its own way of saying no is understood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from service.approval.dialects.callbacks.sending import Sender, Unanswered
from service.approval.dialects.outgoing.bodies import message_of
from service.store.outgoing.webhook_terms import Form, WebhookTerms
from service.store.outgoing.webhooks import Event

TAKEN = frozenset(range(200, 300))
FEISHU_SIGNATURE, DINGTALK_SIGNATURE = 19021, 310000
"""How chat tools, with status 200, say that a signature, a keyword or an address is not the expected one."""
CROWDED = frozenset({9499, 11232, 130101, -1})
"""Too many messages, or busy: of Feishu, of DingTalk."""
CROWDED_SECONDS = 60.0
"""DingTalk and Feishu count messages by the minute."""


class Refused(Unanswered):
    """By a chat tool that answered 200; `signature` when another secret may do."""

    def __init__(self, problem: str, *, pause: float, signature: bool) -> None:
        self.signature = signature
        super().__init__(problem, again=True, pause=pause)


class Receiver:
    """What it does not take is `Unanswered`; neither its URL nor its secrets are in any message of ours."""

    def __init__(self, terms: WebhookTerms) -> None:
        self.terms = terms
        url, _, self._query = terms.url.partition("?")
        parts = urlsplit(url)
        self._shown = f"{parts.scheme}://{parts.netloc}/… of webhook {terms.name}"
        self._sender = Sender(url, headers={}, ca=terms.ca, shown=self._shown)

    def close(self) -> None:
        self._sender.close()

    def deliver(self, event: Event, *, now: float) -> None:
        """Raises Unanswered. While secrets are rotated, chat tools are tried with the new one first."""
        if self.terms.form is Form.PLAIN or len(self.terms.secrets) < 2:
            self._post(event, self.terms.secrets, now)
            return
        *first, last = self.terms.secrets
        for secret in first:
            try:
                self._post(event, (secret,), now)
                return
            except Refused as error:
                if not error.signature:
                    raise
        self._post(event, (last,), now)

    def _post(self, event: Event, secrets: tuple[str, ...], now: float) -> None:
        message = message_of(self.terms, event, secrets, now=now)
        answer = self._sender.ask(
            "POST",
            message.path(self._query),
            done=TAKEN,
            content=message.content,
            headers=message.headers,
        )
        if self.terms.form in (Form.FEISHU, Form.DINGTALK):
            self._understand(answer)

    def _understand(self, answer: Any) -> None:
        told = answer if isinstance(answer, Mapping) else {}
        code = next((told[name] for name in ("errcode", "code", "StatusCode") if name in told), None)
        if code == 0 and not isinstance(code, bool):
            return
        if not isinstance(code, int):
            raise Refused(f"{self._shown}: an answer without a code", pause=0.0, signature=False)
        crowded = CROWDED_SECONDS if code in CROWDED else 0.0
        raise Refused(
            f"{self._shown}: refused with code {code}",
            pause=crowded,
            signature=code in (FEISHU_SIGNATURE, DINGTALK_SIGNATURE),
        )
