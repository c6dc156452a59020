"""What a browser is shown where the door does not let it in: a page that says what to do, in its language."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psycopg
import pytest
from sqlalchemy.engine import make_url

from service.dashboard.render import POLICY
from service.store.redis.captures import Captures
from service.store.sql.database import Database, open_database
from tests.approval.live import LiveApi
from tests.dashboard.house import browser
from tests.dashboard.visiting import csrf_of, dashboard_over, logged_in, words_of

DOWN = "The database does not answer"


@contextmanager
def away(server: str, url: str) -> Iterator[None]:
    """A database that nobody reaches for a while: PostgreSQL ends its sessions and begins none."""
    name = make_url(url).database
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
        )
        try:
            yield
        finally:
            connection.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[Database]:
    opened = open_database(postgres_url)
    yield opened
    opened.close()


@pytest.mark.postgres
def test_while_the_database_is_away_browsers_get_pages_and_programs_json(
    postgres_server: str, postgres_url: str, postgres_database: Database, captures: Captures
) -> None:
    with dashboard_over(postgres_database, captures) as api:
        visitor, program = logged_in(api, "approve"), api.client("approve")
        before = visitor.get("/")
        csrf = csrf_of(before.text)
        with away(postgres_server, postgres_url):
            answers = {
                "page": visitor.get("/"),
                "chinese": visitor.get("/log?lang=zh"),
                "form": visitor.post("/logout", data={"csrf": csrf}),
                "nobody": api.client(Accept="text/html").get("/"),
                "poll": visitor.get("/", headers={"Accept": "*/*", "X-Tiergate-Live": "1"}),
                "program": program.get("/api/v1/models"),
            }
        again = visitor.get("/")
    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(answers, 503)
    for name in ("page", "chinese", "form", "nobody"):
        answer = answers[name]
        assert answer.headers["content-type"] == "text/html; charset=utf-8", name
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["retry-after"] == "5"
        assert "set-cookie" not in answer.headers or "tiergate_session" not in answer.headers["set-cookie"]
        assert "postgresql" not in answer.text, "where the database is, is not everybody's business"
    told = words_of(answers["page"].text)
    assert DOWN in told
    assert "What to do: the API's log says what to do; nothing was changed" in told
    assert 'href="/">Try again<' in answers["page"].text
    assert "Log in" not in told, "who is logged in stays so"
    chinese = answers["chinese"].text
    assert '<html lang="zh-Hans">' in chinese
    assert "数据库没有应答" in words_of(chinese)
    assert "怎么办： API 的日志说明该怎么做；没有任何改动" in words_of(chinese)
    assert 'lang="en"' not in chinese.split("<main")[1]
    assert "Try again" not in answers["form"].text, "a form is sent again from its own page"
    for name in ("poll", "program"):
        assert answers[name].headers["content-type"] == "application/problem+json", name
        assert answers[name].json()["code"] == "store_down"
    assert again.status_code == 200, "the session outlives it"
    assert "test-approve" in again.text


@pytest.mark.parametrize(
    ("method", "headers", "status", "english", "chinese"),
    [
        (
            "GET",
            {"Host": "evil.example"},
            403,
            "The API does not answer to that name",
            "API 不以这个名字应答",
        ),
        (
            "POST",
            {"Origin": "https://evil.example"},
            403,
            "Pages of that origin may not write here",
            "该来源的页面不得在此写入",
        ),
    ],
)
def test_whoever_is_turned_away_at_a_page_is_told_why_in_a_page(
    seen_site: LiveApi, method: str, headers: dict[str, str], status: int, english: str, chinese: str
) -> None:
    visitor = browser(seen_site, "approve")

    def asked(path: str, **more: str) -> httpx.Response:
        body = {"data": {"csrf": "x"}} if method == "POST" else {}
        return visitor.request(method, path, headers={**headers, **more}, **body)  # type: ignore[arg-type]

    path = "/logout" if method == "POST" else "/"
    for language, told in (("en", english), ("zh-CN", chinese)):
        answer = asked(path, **{"Accept-Language": language})
        assert answer.status_code == status
        assert told in words_of(answer.text)
        assert "evil.example" in answer.text
        assert answer.headers["content-security-policy"] == POLICY
    program = asked("/api/v1/models/x/rollback" if method == "POST" else "/api/v1/models")
    assert program.headers["content-type"] == "application/problem+json"


def test_a_body_that_is_too_large_is_refused_in_a_page(seen_site: LiveApi) -> None:
    visitor = browser(seen_site, "approve")
    answer = visitor.post("/logout", data={"csrf": "x" * seen_site.config.max_body})
    assert answer.status_code == 413
    assert "The body is too large" in words_of(answer.text)


@pytest.mark.parametrize(
    ("path", "status", "english", "chinese"),
    [
        ("/nowhere", 404, "There is nothing at that path", "'/nowhere' 处没有内容"),
        ("/tier/", 404, "There is nothing at that path", "此路径下没有内容"),
        ("/favicon.ico", 404, "There is nothing at that path", "此路径下没有内容"),
        ("/logout", 405, "GET is not possible at '/logout'", "'/logout' 不支持 GET"),
        ("/<script>alert(1)</script>", 404, "'/<script>alert(1)</script>'", "'/<script>alert(1)</script>'"),
    ],
)
def test_a_browser_at_an_address_where_nothing_is_gets_a_page_and_a_program_json(
    seen_site: LiveApi, path: str, status: int, english: str, chinese: str
) -> None:
    visitor = browser(seen_site, "read")
    for language, told in (("en", english), ("zh-CN", chinese)):
        answer = visitor.get(path, headers={"Accept-Language": language})
        assert answer.status_code == status
        assert answer.headers["content-security-policy"] == POLICY
        assert told in words_of(answer.text)
        assert "<script>alert" not in answer.text
        assert "test-read" in answer.text, "whoever is logged in stays so"
        assert 'lang="en"' not in answer.text.split("<main")[1].split("</main")[0] or language == "en"
    program = seen_site.client("read").get(path)
    assert program.status_code == status
    assert program.headers["content-type"] == "application/problem+json"


def test_whoever_may_not_read_is_sent_to_log_in_wherever_they_come_to(
    sqlite_database: Database, captures: Captures
) -> None:
    with dashboard_over(sqlite_database, captures, loopback_reads=False) as api:
        stranger, visitor = api.client(Accept="text/html"), logged_in(api, "read")
        sent = stranger.get("/nowhere?a=b")
        assert (sent.status_code, sent.headers["location"]) == (303, "/login?next=%2Fnowhere%3Fa%3Db")
        assert visitor.get("/nowhere").status_code == 404
        for path in ("/api/v1/nothing", "/gates/nothing", "/api/v1/models"):
            asked = visitor.get(path)
            assert asked.status_code == 401, "a session is good at pages alone"
            assert asked.headers["content-type"] == "application/problem+json"
