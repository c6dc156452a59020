"""Parameters and fields: what is asked for, and what is refused."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from starlette.requests import Request

from service.approval.access import Caller, Scope
from service.approval.errors import Problem
from service.dashboard.sessions import Session
from service.dashboard.visit import MOST_FIELDS, MOST_TEXT, Form, Visit, address
from service.report.words import Language

SESSION = Session(id="s", began=0.0, seen=0.0, token_id="t")


def visit(
    query: str = "", *, path: str = "/pairs", scope: Scope | None = Scope.READ, session: Session | None = None
) -> Visit:
    request = Request(
        {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": query.encode(),
            "headers": [(b"host", b"127.0.0.1")],
        }
    )
    return Visit(
        request=request,
        caller=Caller(name="anna", scope=scope),
        session=session,
        language=Language.EN,
        csrf="",
        now=0.0,
        models=("m",),
    )


def test_an_address_keeps_names_with_slashes_and_leaves_out_what_is_none() -> None:
    assert address("/tier", model="a/b", tier="w8 a8", page=None) == "/tier?model=a%2Fb&tier=w8+a8"
    assert address("/") == "/"


def test_a_page_keeps_its_parameters_but_for_language_notice_and_download() -> None:
    asked = visit("model=a%2Fb&page=3&lang=zh&note=x&download=c")
    assert asked.url(page=4) == "/pairs?model=a%2Fb&page=4"
    assert asked.url(page=None) == "/pairs?model=a%2Fb"


@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("/tier/act", "/tier/act?lang=zh"),
        ("/", "/?lang=zh"),
        ("//evil.example", "/evil.example?lang=zh"),
        ("///evil.example/x", "/evil.example/x?lang=zh"),
        ("/\\evil.example", "/%5Cevil.example?lang=zh"),
        ("/a?b#c", "/a%3Fb%23c?lang=zh"),
    ],
)
def test_a_link_to_the_page_itself_is_never_one_to_another_host(path: str, link: str) -> None:
    assert visit(path=path).url(lang="zh") == link


def test_a_number_is_within_its_limits_or_refused() -> None:
    assert visit("page=7").number("page", 1) == 7
    assert visit("").number("page", 1) == 1
    for text in ("0", "-1", "x", "1e3", "٣", "9" * 30, "2000000"):
        with pytest.raises(Problem) as refused:
            visit(urlencode({"page": text})).number("page", 1)
        assert refused.value.status == 422


def test_a_word_is_one_of_those_there_are_or_refused() -> None:
    assert visit("kind=a").one_of("kind", ("a", "b")) == "a"
    assert visit("").one_of("kind", ("a", "b"), "b") == "b"
    with pytest.raises(Problem, match="'c' is none of 'a', 'b'"):
        visit("kind=c").one_of("kind", ("a", "b"))


def test_what_a_page_cannot_do_without_is_asked_for() -> None:
    assert visit("model=m").needed("model") == "m"
    with pytest.raises(Problem, match="model: missing"):
        visit("model=").needed("model")


def test_all_but_reading_takes_a_session() -> None:
    assert visit(scope=Scope.ADMIN).may(Scope.READ)
    assert not visit(scope=Scope.ADMIN).may(Scope.APPROVE)
    assert visit(scope=Scope.ADMIN, session=SESSION).may(Scope.APPROVE)
    assert not visit(scope=Scope.LABEL, session=SESSION).may(Scope.APPROVE)
    assert not visit(scope=None).may(Scope.READ)


def test_a_form_is_read_as_browsers_send_it() -> None:
    form = Form.of(b"reason=+two%0D%0Alines+&box=a&box=b&empty=")
    assert form.text("reason") == "two\nlines"
    assert form.all("box") == ("a", "b")
    assert form.text("empty") == form.text("missing") == ""
    assert form.mapping["box"] == "a"
    with pytest.raises(Problem, match="empty: missing"):
        form.needed("empty")


def test_what_no_database_stores_is_shown_as_such() -> None:
    assert Form.of(b"reason=a%00b").text("reason") == "a\ufffdb"
    assert Form.of(b"reason=%ff").text("reason") == "\ufffd"


@pytest.mark.parametrize(
    "body", ["ü".encode(), b"a=1&" * (MOST_FIELDS + 1), b"reason=" + b"x" * (MOST_TEXT + 1)]
)
def test_what_no_page_of_ours_sends_is_refused(body: bytes) -> None:
    with pytest.raises(Problem) as refused:
        Form.of(body)
    assert refused.value.status == 422
