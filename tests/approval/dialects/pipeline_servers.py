"""GitHub and GitLab as servers that are called back, as small as their documents allow, on real sockets."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256

from tests.listening import Door, listening

Reply = tuple[int, Any, Mapping[str, str]]


class Answering(Protocol):
    failures: list[tuple[int, dict[str, str]]]
    calls: list[str]

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: Any) -> Reply: ...


@contextmanager
def serving(server: Answering) -> Iterator[str]:
    """The base URL; statuses in `failures` are answered before anything else is done."""

    class Called(Door):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length", 0)))
            self._answer(json.loads(content) if content else None)

        def _answer(self, body: Any) -> None:
            server.calls.append(f"{self.command} {self.path}")
            if server.failures:
                status, extra = server.failures.pop(0)
                document: Any = {"message": "not now"}
            else:
                headers = {name.lower(): text for name, text in self.headers.items()}
                status, document, extra = server.answer(self.command, self.path, headers, body)  # type: ignore[assignment]
            content = b"" if status == 204 else json.dumps(document).encode()
            self.send_response(status)
            for name, text in extra.items():
                self.send_header(name, text)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with listening(Called) as url:
        yield url


@dataclass
class GithubServer:
    """One App, one installation, and runs that wait for it."""

    app: str
    key: RSAPublicKey
    now: Any
    failures: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    decisions: list[tuple[str, str, str]] = field(default_factory=list)
    """Environment, state, comment."""
    token: str = "ghs_1"
    """Of the installation; another one ends those given before."""

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: Any) -> Reply:
        if re.fullmatch(r"/app/installations/77/access_tokens", path):
            return (201, {"token": self.token}, {}) if self._is_app(headers) else (401, {}, {})
        if not re.fullmatch(r"/repos/org/serving/actions/runs/\d+/deployment_protection_rule", path):
            return 404, {}, {}
        if headers.get("authorization") != f"Bearer {self.token}":
            return 401, {}, {}
        if len(body["comment"]) > 1024:
            return 422, {"message": "comment is too long"}, {}
        if "state" not in body:
            if len(self.reports) == 10:
                return 422, {"message": "too many status reports"}, {}
            self.reports.append(body["comment"])
            return 204, None, {}
        if self.decisions:
            return 422, {"message": "not waiting"}, {}
        assert body["state"] in ("approved", "rejected")
        self.decisions.append((body["environment_name"], body["state"], body["comment"]))
        return 204, None, {}

    def _is_app(self, headers: Mapping[str, str]) -> bool:
        signed, _, signature = headers["authorization"].removeprefix("Bearer ").rpartition(".")
        self.key.verify(_decoded(signature), signed.encode(), PKCS1v15(), SHA256())
        head, claims = (json.loads(_decoded(part)) for part in signed.split("."))
        lasts = claims["exp"] - claims["iat"]
        return bool(head["alg"] == "RS256" and claims["iss"] == self.app and 0 < lasts <= 600)


@dataclass
class GitlabServer:
    """One instance: checks that were answered, deployments that wait."""

    failures: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    blocked: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    of_others: set[int] = field(default_factory=set)
    """Deployments that wait for somebody else's approval as well."""
    decided: list[tuple[str, int, str, str]] = field(default_factory=list)
    as_whom: list[str | None] = field(default_factory=list)

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: Any) -> Reply:
        if headers.get("private-token") != "glpat-1":
            return 401, {}, {}
        parts = urlsplit(path)
        if method == "POST" and parts.path == "/api/v4/projects/5/merge_requests/9/status_check_responses":
            assert body["status"] in ("pending", "passed", "failed")
            self.checks.append(body)
            return 201, {"id": 1}, {}
        if found := re.fullmatch(r"/api/v4/projects/([^/]+)/deployments", parts.path):
            asked = parse_qs(parts.query)
            assert asked["status"] == ["blocked"]
            waiting = self.blocked.get((unquote(found[1]), asked["environment"][0]), [])
            assert asked["order_by"] == ["id"]
            ordered = sorted(waiting, reverse=asked.get("sort", ["asc"]) == ["desc"])
            page = ordered[: min(int(asked.get("per_page", ["20"])[0]), 100)]
            return 200, [{"id": each} for each in page], {}
        if found := re.fullmatch(r"/api/v4/projects/([^/]+)/deployments/(\d+)/approval", parts.path):
            project, deployment = unquote(found[1]), int(found[2])
            for waiting in self.blocked.values():
                if deployment in waiting:
                    if deployment not in self.of_others:
                        waiting.remove(deployment)
                    self.decided.append((project, deployment, body["status"], body["comment"]))
                    self.as_whom.append(body.get("represented_as"))
                    return 201, {"status": body["status"]}, {}
            return 400, {"message": "this deployment is not blocked"}, {}
        return 404, {}, {}


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
