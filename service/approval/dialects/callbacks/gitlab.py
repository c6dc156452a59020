"""GitLab's side: the answer to a status check, and to deployments that wait for an approval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from service.approval.dialects.callbacks.sending import Sender
from service.store.outgoing.gate_terms import GitlabTerms

DONE = frozenset({200, 201})
MOST_DEPLOYMENTS = 100
"""That wait in one environment and are looked at, the latest first: what nobody wants any more waits on."""


class Gitlab:
    """One instance."""

    def __init__(self, terms: GitlabTerms) -> None:
        self._sender = Sender(f"{terms.url}/api/v4", headers={"PRIVATE-TOKEN": terms.token}, ca=terms.ca)

    def close(self) -> None:
        self._sender.close()

    def answer_check(self, place: Mapping[str, Any], *, passed: bool) -> None:
        """Of one commit of a merge request."""
        self._sender.ask(
            "POST",
            f"/projects/{int(place['project'])}/merge_requests/{int(place['merge_request'])}"
            "/status_check_responses",
            done=DONE,
            body={
                "sha": place["sha"],
                "external_status_check_id": place["check"],
                "status": "passed" if passed else "failed",
            },
        )

    def blocked(self, project: str, environment: str) -> list[int]:
        """Deployments to an environment that wait for an approval."""
        found = self._sender.ask(
            "GET",
            f"/projects/{quote(project, safe='')}/deployments?status=blocked&order_by=id&sort=desc"
            f"&per_page={MOST_DEPLOYMENTS}&environment={quote(environment, safe='')}",
            done=DONE,
        )
        ids = [each.get("id") for each in found if isinstance(each, dict)] if isinstance(found, list) else []
        return [each for each in ids if isinstance(each, int) and not isinstance(each, bool) and each > 0]

    def decide(self, place: Mapping[str, Any], *, approved: bool, comment: str) -> None:
        """Approve or reject one deployment."""
        known_as = place.get("represented_as")
        self._sender.ask(
            "POST",
            f"/projects/{quote(str(place['project']), safe='')}"
            f"/deployments/{int(place['deployment'])}/approval",
            done=DONE,
            body={
                "status": "approved" if approved else "rejected",
                "comment": comment,
                **({} if known_as is None else {"represented_as": known_as}),
            },
        )
