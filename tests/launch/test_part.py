from __future__ import annotations

import socket

import pytest

from service.launch import Part, at_once, http_ok, listens, logs
from tests.launch.conftest import serving
from tests.ports import free_port


def test_a_part_without_a_check_is_ready_at_once() -> None:
    assert Part(name="x", command=("true",)).ready is at_once
    assert at_once("") is None


def test_a_page_that_answers_200_is_ready_and_any_other_answer_is_told() -> None:
    with serving({"/readyz": (200, "ok"), "/busy": (503, "")}) as url:
        assert http_ok(f"{url}/readyz")("") is None
        assert http_ok(f"{url}/busy")("") == f"GET {url}/busy answers 503"


def test_a_server_that_is_not_there_is_awaited_and_not_an_error() -> None:
    url = f"http://127.0.0.1:{free_port()}/"
    assert "refused" in (http_ok(url)("") or "")


def test_a_port_is_ready_when_it_accepts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert listens("127.0.0.1", port)("") is None
    assert f"127.0.0.1:{port} accepts no connection" in (listens("127.0.0.1", port)("") or "")


@pytest.mark.parametrize(("log", "ready"), [("worker ready.\n", True), ("starting\n", False), ("", False)])
def test_a_word_in_the_log_is_awaited(log: str, ready: bool) -> None:
    assert (logs("ready.")(log) is None) is ready


def test_what_a_part_is_given_in_its_environment_does_not_show() -> None:
    assert "hush" not in repr(Part(name="x", command=("true",), env={"PASSWORD": "hush"}))
