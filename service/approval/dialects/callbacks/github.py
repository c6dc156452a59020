"""GitHub's side of a deployment protection rule: reports of progress, and the one decision on a run."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from service.approval.dialects.callbacks.sending import Sender, Unanswered
from service.approval.dialects.judgement import Judgement
from service.store.outgoing.gate_terms import GithubTerms

MOST_REPORTS = 10
"""Of progress for one deployment; GitHub refuses more."""
LONGEST_COMMENT = 1024
"""Characters of a comment."""
APP_SECONDS = 540.0
"""Validity of what the App signs; GitHub takes ten minutes at most."""
SKEW_SECONDS = 60.0
TOKEN_SECONDS = 3000.0
"""An installation's token is valid for an hour; it is asked for again before."""
UNAUTHORIZED = 401
VERSION = "2022-11-28"


class Github:
    """One App at one API."""

    def __init__(self, terms: GithubTerms, *, now: Callable[[], float] = time.time) -> None:
        self._terms, self._now = terms, now
        self._sender = Sender(
            terms.url,
            headers={"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": VERSION},
            ca=terms.ca,
        )
        self._tokens: dict[int, tuple[str, float]] = {}

    def close(self) -> None:
        self._sender.close()

    def report(self, place: Mapping[str, Any], found: Judgement) -> None:
        """Say how it stands; decides nothing."""
        self._post(place, {"environment_name": place["environment"], "comment": comment_of(found)})

    def decide(self, place: Mapping[str, Any], *, approved: bool, comment: str) -> None:
        """Let the run go on, or end it."""
        state = "approved" if approved else "rejected"
        self._post(place, {"environment_name": place["environment"], "state": state, "comment": comment})

    def _post(self, place: Mapping[str, Any], body: Mapping[str, str]) -> None:
        installation = int(place["installation"])
        path = f"/repos/{place['repository']}/actions/runs/{int(place['run'])}/deployment_protection_rule"
        was_kept = self._now() < self._tokens.get(installation, ("", 0.0))[1]
        try:
            self._ask_as(installation, path, body)
        except Unanswered as error:
            self._tokens.pop(installation, None)  # it may be what was refused
            if error.status != UNAUTHORIZED or not was_kept:
                raise
            self._ask_as(installation, path, body)  # tokens end early: the App was installed anew

    def _ask_as(self, installation: int, path: str, body: Mapping[str, str]) -> None:
        self._sender.ask("POST", path, done=frozenset({200, 204}), body=body, headers=self._as(installation))

    def _as(self, installation: int) -> dict[str, str]:
        token, until = self._tokens.get(installation, ("", 0.0))
        if self._now() >= until:
            answer = self._sender.ask(
                "POST",
                f"/app/installations/{installation}/access_tokens",
                done=frozenset({200, 201}),
                headers={"Authorization": f"Bearer {app_token(self._terms, self._now())}"},
            )
            given = answer.get("token") if isinstance(answer, dict) else None
            if not isinstance(given, str) or re.fullmatch(r"[!-~]+", given) is None:
                raise Unanswered(f"{self._terms.url} gave no token for the installation", again=True)
            token = given
            self._tokens[installation] = (token, self._now() + TOKEN_SECONDS)
        return {"Authorization": f"Bearer {token}"}


def comment_of(found: Judgement) -> str:
    """The judgement for people; as code, since a reason could name people and be formatted otherwise."""
    told = found.line.replace("`", "'")
    rest = f"{found.model} {found.tier}, {found.n_pairs} pairs, evaluation {found.evaluation_id}"
    return f"`{told}`\n\n`{rest.replace('`', chr(39))}`"[:LONGEST_COMMENT]


def app_token(terms: GithubTerms, now: float) -> str:
    """A JWT (RS256) by which the App proves itself."""
    key = load_pem_private_key(terms.private_key.encode(), None)
    assert isinstance(key, RSAPrivateKey), "the settings take RSA keys alone"
    head = {"alg": "RS256", "typ": "JWT"}
    # A clock that is ahead of GitHub's must not date it into the future.
    claims = {"iat": int(now - SKEW_SECONDS), "exp": int(now + APP_SECONDS), "iss": terms.app}
    signed = f"{_part(json.dumps(head).encode())}.{_part(json.dumps(claims).encode())}"
    return f"{signed}.{_part(key.sign(signed.encode(), PKCS1v15(), SHA256()))}"


def _part(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
