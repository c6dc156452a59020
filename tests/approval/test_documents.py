"""The API's documentation: complete, without a network, without a script."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from tests.approval.live import LiveApi

PATHS = {
    "/api/v1/models": {"get"},
    "/api/v1/models/{model}/ladder": {"get"},
    "/api/v1/models/{model}/tiers/{tier}/verdict": {"get"},
    "/api/v1/models/{model}/tiers/{tier}/verdict/why": {"get"},
    "/api/v1/models/{model}/tiers/{tier}/evidence": {"get"},
    "/api/v1/models/{model}/tiers/{tier}/epochs": {"get"},
    "/api/v1/models/{model}/tiers/{tier}/differences": {"get"},
    "/api/v1/models/{model}/tiers/{tier}/capacity": {"get"},
    "/api/v1/models/{model}/tiers/{tier}/approval": {"put", "delete"},
    "/api/v1/models/{model}/tiers/{tier}/skip": {"post", "delete"},
    "/api/v1/models/{model}/tiers/{tier}/reject": {"post"},
    "/api/v1/models/{model}/tiers/{tier}/restore-alpha": {"post"},
    "/api/v1/models/{model}/rollback": {"post"},
    "/api/v1/models/{model}/decisions": {"get"},
    "/api/v1/models/{model}/shadow-jobs": {"post"},
    "/api/v1/decisions": {"get"},
    "/api/v1/routes": {"get"},
    "/api/v1/shadow-jobs": {"get"},
    "/api/v1/shadow-jobs/{job}": {"get", "delete"},
    "/api/v1/shadow-jobs/{job}/manifest": {"get"},
    "/api/v1/models/{model}/shadow-report": {"get"},
    "/api/v1/shadow-jobs/{job}/report": {"get"},
    "/api/v1/ledger": {"get"},
    "/api/v1/adjudication": {"get"},
    "/api/v1/adjudication/next": {"get"},
    "/api/v1/adjudication/items": {"get"},
    "/api/v1/adjudication/labels": {"post"},
    "/api/v1/adjudication/access": {"get"},
    "/healthz": {"get"},
    "/readyz": {"get"},
    "/metrics": {"get"},
}


class Tags(HTMLParser):
    """Every tag of a page with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_openapi_document_lists_every_promised_path(shared_api: LiveApi) -> None:
    document = shared_api.client().get("/openapi.json").json()
    # What tools ask below /gates is promised by their own tests.
    paths = {path: set(methods) for path, methods in document["paths"].items() if path[:7] != "/gates/"}
    assert paths == PATHS
    assert document["openapi"].startswith("3.1")


def test_every_operation_under_api_v1_documents_its_refusals_in_our_shape(shared_api: LiveApi) -> None:
    document = shared_api.client().get("/openapi.json").json()
    for path, methods in document["paths"].items():
        if path.startswith("/api/"):
            for operation in methods.values():
                for status in ("400", "401", "403", "404", "409", "422", "429", "500", "503"):
                    schema = operation["responses"][status]["content"]["application/problem+json"]["schema"]
                    assert schema == {"$ref": "#/components/schemas/ProblemOut"}


def test_the_page_names_every_path_and_field(shared_api: LiveApi) -> None:
    page = shared_api.client().get("/docs").text
    for path in PATHS:
        assert f"<code>{path}</code>" in page
    for name in ("noninferiority", "more_pairs", "override", "expires_in", "published", "broken_at"):
        assert f"<code>{name}</code>" in page


def test_the_page_loads_nothing_from_elsewhere_and_runs_nothing(shared_api: LiveApi) -> None:
    answer = shared_api.client().get("/docs")
    tags = Tags(answer.text).found
    assert {"script", "iframe", "img", "object", "form", "style"}.isdisjoint(tag for tag, _ in tags)
    links = [attrs.get("href") or "" for tag, attrs in tags if tag in ("a", "link")]
    assert links
    assert all(link.startswith(("/", "#")) and not link.startswith("//") for link in links)
    assert not any(name.startswith("on") or name == "style" for _, attrs in tags for name in attrs)
    assert "script-src" not in answer.headers["content-security-policy"]
    style = shared_api.client().get("/docs/style.css")
    assert style.headers["content-type"].startswith("text/css")
    assert not re.search(r"@import|url\(|//", style.text)


def test_what_the_document_says_of_a_verdict_is_what_comes(shared_api: LiveApi) -> None:
    schemas = shared_api.client().get("/openapi.json").json()["components"]["schemas"]
    verdict = shared_api.client().get("/api/v1/models/org/model/tiers/w8a8/verdict").json()
    assert set(schemas["VerdictOut"]["properties"]) == set(verdict)
    assert set(schemas["FindingOut"]["properties"]) == set(verdict["findings"][0])
