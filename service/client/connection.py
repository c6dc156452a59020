"""`TiergateClient`: one method per question, over one pooled httpx connection."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx

from service.client.errors import AnswerUnreadable, ApiRefused, ApiUnreachable
from service.client.readings import (
    Document,
    LadderReading,
    RouteChange,
    VerdictReading,
    read_ladder,
    read_route_change,
    read_verdict,
)

GATE_STATES = ("approved", "rejected", "inconclusive")
MAX_ANSWER = 32 * 1024 * 1024
"""Bytes of an answer that are read at most; a Tiergate API stays far below."""


class TiergateClient:
    """The approval API at `url`. Close it, or use it in a `with`."""

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 15.0) -> None:
        """`timeout` is per wait for the network, in seconds; ValueError for what cannot be a URL or token."""
        if not _is_api_url(url):
            raise ValueError(f"{url!r} is not an API URL; one looks like http://127.0.0.1:8081")
        if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
            raise ValueError("the token has characters that no token has (spaces, line breaks, non-ASCII)")
        self.url = url.rstrip("/")
        self._http = httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=timeout,
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connection back."""
        self._http.close()

    def models(self) -> Document:
        """Every model with its tiers and the one that serves."""
        return self._ask("GET", "/api/v1/models")

    def ladder(self, model: str) -> LadderReading:
        """A model's tiers with their states."""
        return read_ladder(self._ask("GET", f"{_model(model)}/ladder"))

    def verdict(self, model: str, tier: str) -> VerdictReading:
        """What the evidence amounts to now."""
        return read_verdict(self._ask("GET", f"{_tier(model, tier)}/verdict"))

    def why(self, model: str, tier: str, *, pairs: int = 5) -> Document:
        """The chain from counts to decision, with at most `pairs` examples of each criterion."""
        return self._ask("GET", f"{_tier(model, tier)}/verdict/why", question={"pairs": str(pairs)})

    def evidence(
        self, model: str, tier: str, *, pairs: int = 20, discordant: bool = True, evaluator: str | None = None
    ) -> Document:
        """Tallies, control, coverage, strata, without each tenant, and the latest `pairs` single pairs.

        These are of one evaluator, or of those that decide.
        """
        question = {"pairs": str(pairs), "discordant": "true" if discordant else "false"}
        if evaluator is not None:
            question["evaluator"] = evaluator
        return self._ask("GET", f"{_tier(model, tier)}/evidence", question=question)

    def differences(self, model: str, tier: str, *, evaluator: str = "field_agreement") -> Document:
        """Where the tier's answers differ from the baseline's, name by name, beside the control."""
        return self._ask("GET", f"{_tier(model, tier)}/differences", question={"evaluator": evaluator})

    def gate(
        self, model: str, tier: str, *, artifact: str | None = None, basis: str | None = None
    ) -> Document:
        """What a pipeline is told: `verdict` (approved, rejected, inconclusive), `reason` and more."""
        path = f"/gates/argo/models/{quote(model, safe='')}/tiers/{quote(tier, safe='')}"
        # An empty artifact is sent, and refused: a variable that is not set must not open the gate.
        asked = {"artifact": artifact, "basis": basis}
        question = {name: text for name, text in asked.items() if text is not None}
        document = self._ask("GET", path, question=question)
        found = document.get("data")
        if not isinstance(found, dict) or found.get("verdict") not in GATE_STATES:
            raise AnswerUnreadable(f"{self.url}{path} answered with something that is no judgement", "")
        return found

    def epochs(self, model: str, tier: str) -> Document:
        """Every epoch of a tier, the latest first, with all that it was."""
        return self._ask("GET", f"{_tier(model, tier)}/epochs")

    def approve(
        self,
        model: str,
        tier: str,
        *,
        artifact: str | None = None,
        expires_in: str | int | None = None,
        override: bool = False,
        reason: str | None = None,
    ) -> RouteChange:
        """Let the tier serve. `artifact` is a sha256; `expires_in` seconds or such as `30d`."""
        asked = {"artifact": artifact, "expires_in": expires_in, "reason": reason}
        body: dict[str, Any] = {key: value for key, value in asked.items() if value is not None}
        if override:
            body["override"] = True
        return read_route_change(self._ask("PUT", f"{_tier(model, tier)}/approval", body=body))

    def revoke(self, model: str, tier: str, *, reason: str | None = None, force: bool = False) -> RouteChange:
        """Take the approval back; if the tier serves, the next lower approved one takes over."""
        question = {key: value for key, value in (("reason", reason), ("force", _flag(force))) if value}
        return read_route_change(self._ask("DELETE", f"{_tier(model, tier)}/approval", question=question))

    def reject(self, model: str, tier: str, *, reason: str, force: bool = False) -> RouteChange:
        """Keep the tier out of service in this epoch; the next lower approved one takes its clients."""
        body: dict[str, Any] = {"reason": reason, **({"force": True} if force else {})}
        return read_route_change(self._ask("POST", f"{_tier(model, tier)}/reject", body=body))

    def roll_back(
        self,
        model: str,
        *,
        to: str | None = None,
        if_serving: str | None = None,
        reason: str | None = None,
        force: bool = False,
    ) -> RouteChange:
        """Route the model to a lower rung; needs no evidence.

        Without `to` and `if_serving` a second call goes down a second rung.
        """
        asked = {"to": to, "if_serving": if_serving, "reason": reason}
        body: dict[str, Any] = {key: value for key, value in asked.items() if value}
        if force:
            body["force"] = True
        return read_route_change(self._ask("POST", f"{_model(model)}/rollback", body=body))

    def skip(self, model: str, tier: str, *, reason: str) -> Document:
        """Let the tiers above do without this one, which was rejected or not shown."""
        return self._ask("POST", f"{_tier(model, tier)}/skip", body={"reason": reason})

    def undo_skip(self, model: str, tier: str, *, reason: str | None = None) -> Document:
        """Let the tiers above wait for this one again."""
        return self._ask(
            "DELETE", f"{_tier(model, tier)}/skip", question={"reason": reason} if reason else {}
        )

    def restore_alpha(self, model: str, tier: str, *, reason: str) -> Document:
        """Count the tier's attempts anew, the present epoch as the first."""
        return self._ask("POST", f"{_tier(model, tier)}/restore-alpha", body={"reason": reason})

    def begin_shadow_job(self, model: str, asked: Mapping[str, Any]) -> Document:
        """Begin a shadow job; `asked` is the body of the request."""
        return self._ask("POST", f"{_model(model)}/shadow-jobs", body=asked)

    def shadow_jobs(self, model: str | None = None, *, limit: int = 50, after: str | None = None) -> Document:
        """Shadow jobs, the latest first; with `after`, those older than that one."""
        question = {"limit": str(limit), **_told(model=model, after=after)}
        return self._ask("GET", "/api/v1/shadow-jobs", question=question)

    def shadow_job(self, job: str) -> Document:
        """One shadow job with its blocks."""
        return self._ask("GET", _job(job))

    def shadow_manifest(self, job: str) -> Document:
        """All that is needed to repeat a shadow job."""
        return self._ask("GET", f"{_job(job)}/manifest")

    def cancel_shadow_job(self, job: str) -> Document:
        """End it; a block that is being run is broken off."""
        return self._ask("DELETE", _job(job))

    def report_of(self, job: str) -> str:
        """Where the report of a shadow job is."""
        return f"{_job(job)}/report"

    def latest_report_of(self, model: str) -> str:
        """Where the latest report of a model is."""
        return f"{_model(model)}/shadow-report"

    def report(self, path: str, *, form: str, language: str) -> str:
        """The report at a path of one of these two, as text: html, md or json (`form`), in en or zh."""
        answer, content = self._fetch("GET", path, question={"format": form, "lang": language})
        if not answer.is_success:
            _document(answer, content)  # which raises what the API said
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise AnswerUnreadable(f"{answer.url} answered with something that is no text") from error

    def decisions(self, model: str, *, after: int = 0, limit: int = 100) -> Document:
        """The decision log of a model, oldest first, from after sequence number `after`."""
        question = {"after": str(after), "limit": str(limit)}
        return self._ask("GET", f"{_model(model)}/decisions", question=question)

    def adjudication(self, model: str | None = None) -> Document:
        """What is queued for people, labelled and agreed."""
        return self._ask("GET", "/api/v1/adjudication", question=_told(model=model))

    def next_item(self, *, model: str | None = None, evaluator: str | None = None) -> Document:
        """The next pair to judge, blind."""
        question = _told(model=model, evaluator=evaluator)
        return self._ask("GET", "/api/v1/adjudication/next", question=question)

    def items(
        self,
        *,
        after: str = "",
        limit: int = 20,
        model: str | None = None,
        evaluator: str | None = None,
        todo: bool = False,
    ) -> Document:
        """Pairs to judge, beyond the item `after`; `todo`: those that the token still has to label."""
        question = _told(model=model, evaluator=evaluator, after=after, todo=_flag(todo))
        return self._ask("GET", "/api/v1/adjudication/items", question={**question, "limit": str(limit)})

    def label(self, labels: Sequence[Mapping[str, str]], *, replace: bool = False) -> Document:
        """Say which sides pass: `item`, `label`, perhaps `at`, at most 200 at once."""
        body = {"labels": [dict(each) for each in labels], "replace": replace}
        return self._ask("POST", "/api/v1/adjudication/labels", body=body)

    def ledger(self, model: str | None = None) -> Document:
        """The account of every request."""
        return self._ask("GET", "/api/v1/ledger", question={"model": model} if model else {})

    def _ask(
        self,
        method: str,
        path: str,
        *,
        question: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Document:
        return _document(*self._fetch(method, path, question=question, body=body))

    def _fetch(
        self,
        method: str,
        path: str,
        *,
        question: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> tuple[httpx.Response, bytes]:
        try:
            with self._http.stream(method, path, params=question, json=body) as answer:
                content = bytearray()
                for chunk in answer.iter_bytes():
                    content += chunk
                    if len(content) > MAX_ANSWER:
                        raise AnswerUnreadable(f"{self.url}{path} answers more than {MAX_ANSWER} bytes")
        except httpx.TimeoutException as error:
            raise ApiUnreachable(
                f"{self.url} did not answer in time ({type(error).__name__})",
                "the API may be overloaded or its database locked; look at its log",
            ) from error
        except httpx.HTTPError as error:
            raise ApiUnreachable(
                f"cannot reach the API at {self.url}: {error}",
                "is `tiergate api` or `tiergate up` running, and is --url (TIERGATE_URL) right?",
            ) from error
        return answer, bytes(content)


def _is_api_url(url: str) -> bool:
    try:
        split = urlsplit(url)
        httpx.URL(url)
        return split.scheme in ("http", "https") and bool(split.hostname) and split.port != 0
    except (ValueError, httpx.InvalidURL):
        return False


def _model(model: str) -> str:
    return f"/api/v1/models/{quote(model, safe='')}"


def _job(job: str) -> str:
    return f"/api/v1/shadow-jobs/{quote(job, safe='')}"


def _tier(model: str, tier: str) -> str:
    return f"{_model(model)}/tiers/{quote(tier, safe='')}"


def _told(**question: str | None) -> dict[str, str]:
    """What was asked for, without what was left out."""
    return {name: text for name, text in question.items() if text}


def _flag(flag: bool) -> str | None:
    return "true" if flag else None


def _no_such_number(literal: str) -> float:
    raise ValueError(f"{literal} is not JSON")


def _document(answer: httpx.Response, content: bytes) -> Document:
    """The JSON object of an answer; ApiRefused for the API's own errors."""
    foreign = AnswerUnreadable(
        f"{answer.url} answered {answer.status_code} with something that is not the API's JSON",
        "is the URL that of a Tiergate API, without a login page in front?",
    )
    try:
        document = json.loads(content, parse_constant=_no_such_number)
    except (ValueError, RecursionError) as error:
        raise foreign from error
    if not isinstance(document, dict):
        raise foreign
    if answer.is_success:
        return document
    # Members beyond those of RFC 9457 are the API's own: a proxy in between may speak problem+json as well.
    if not isinstance(document.get("code"), str):
        raise foreign
    reasons = document.get("reasons")
    raise ApiRefused(
        status=answer.status_code,
        code=document["code"],
        message=str(document.get("detail", "")),
        hint=str(document.get("hint", "")),
        reasons=tuple(str(reason) for reason in reasons) if isinstance(reasons, list) else (),
    )
