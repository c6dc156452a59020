"""Verdicts have a tag that only the clock does not move."""

from __future__ import annotations

import pytest

from tests.approval.live import LiveApi

VERDICT = "/api/v1/models/org/model/tiers/w8a8/verdict"


def test_a_known_verdict_is_not_sent_again_however_late_it_is(api: LiveApi) -> None:
    client = api.client()
    first = client.get(VERDICT)
    api.clock.at += 3600
    again = client.get(VERDICT, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert again.headers["cache-control"] == "private, no-cache"


def test_evidence_and_approvals_change_the_tag(api: LiveApi) -> None:
    client, tags = api.client("approve"), []
    tags.append(client.get(VERDICT).headers["etag"])
    api.accept("w8a8")
    tags.append(client.get(VERDICT).headers["etag"])
    answer = client.get(VERDICT, headers={"If-None-Match": tags[0]})
    assert (answer.status_code, answer.json()["decision"]) == (200, "accept")
    assert len(set(tags)) == 2


@pytest.mark.parametrize(
    ("spelled", "status"),
    [
        ("{tag}", 304),
        ("{strong}", 304),
        ('"other", {tag}', 304),
        ("*", 304),
        ('"other"', 200),
        ("{bare}", 200),
        ("", 200),
        (',,;"', 200),
    ],
)
def test_the_header_is_read_as_a_list_of_weak_tags(shared_api: LiveApi, spelled: str, status: int) -> None:
    client = shared_api.client()
    tag = client.get(VERDICT).headers["etag"]
    strong = tag.removeprefix("W/")
    header = spelled.format(tag=tag, strong=strong, bare=strong.strip('"'))
    assert client.get(VERDICT, headers={"If-None-Match": header}).status_code == status
