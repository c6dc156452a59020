"""Refusals are problem+json, and every code has a title and a place in the documentation."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import service.approval
from service.approval.problem_codes import TITLES
from service.store.load import job_terms
from tests.approval.live import LiveApi

ROOM = Path(service.approval.__file__).parent
VERDICT = "/api/v1/models/org/model/tiers/w8a9/verdict"


def words(node: ast.expr) -> set[str]:
    """The texts that an expression may be."""
    if isinstance(node, ast.IfExp):
        return words(node.body) | words(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def codes_in(path: Path, kind: str, place: int) -> set[str]:
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    named = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == kind]
    return {code for call in named if len(call.args) > place for code in words(call.args[place])}


def test_every_code_that_is_raised_has_a_title() -> None:
    raised = {code for path in ROOM.rglob("*.py") for code in codes_in(path, "Problem", 1)}
    begun = codes_in(Path(job_terms.__file__), "CannotBegin", 0)
    assert len(raised) > 30
    assert (raised | begun) - set(TITLES) == set()


def test_titles_are_short_sentences_of_their_own() -> None:
    assert len(set(TITLES.values())) == len(TITLES)
    assert all(title[0].isupper() and len(title) < 80 and title[-1] != "." for title in TITLES.values())


def test_a_refusal_has_the_members_of_the_rfc_and_ours(shared_api: LiveApi) -> None:
    answer = shared_api.client().get(VERDICT)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": "/docs#problem-unknown_tier",
        "title": "There is no such tier",
        "status": 404,
        "detail": answer.json()["detail"],
        "code": "unknown_tier",
        "hint": "did you mean 'w8a8'?",
    }
    assert "w8a9" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("POST", "/healthz", 401, "unauthorized"),
        ("GET", "/api/v1/models/org/model/decisions?limit=x", 422, "invalid_request"),
        ("POST", "/api/v1/models/org/model/rollback", 401, "unauthorized"),
    ],
)
def test_door_routers_and_framework_refuse_alike(
    shared_api: LiveApi, method: str, path: str, status: int, code: str
) -> None:
    answer = shared_api.client().request(method, path)
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, answer.json()["status"], answer.json()["code"]) == (status, status, code)


def test_the_type_of_a_problem_leads_to_its_title(shared_api: LiveApi) -> None:
    page = shared_api.client().get("/docs").text
    for code in TITLES:
        assert f'id="problem-{code}"' in page


def test_the_documentation_lists_every_code_with_its_title() -> None:
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    listed = re.findall(r"^\| `([a-z_]+)` \| (.+) \|$", page, re.MULTILINE)
    assert listed == sorted(TITLES.items())
