"""The demo's clients against a real HTTP server."""

from __future__ import annotations

import time
from collections.abc import Callable

from service.demo.driver import Driver
from service.demo.plan import QUICK
from service.demo.workload import workload
from tests.demo.scripted import Scripted, serving
from tests.patience import PATIENCE

PROMPTS = workload(QUICK.load, 1)[:12]


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def answering() -> Scripted:
    scripted = Scripted()
    scripted.answers.set()
    return scripted


def test_prompts_go_out_in_order_and_only_as_many_as_were_allowed() -> None:
    with (
        serving(answering()) as server,
        Driver(PROMPTS, proxy_url=server.url, model="m", clients=1) as driver,
    ):
        time.sleep(0.1)
        assert driver.started == 0
        driver.allow(5)
        driver.allow(3)
        until(lambda: driver.settled == 5)
        time.sleep(0.1)
        assert driver.started == 5
        driver.allow(1000)
        until(lambda: driver.settled == len(PROMPTS))
        assert driver.all_sent
    assert server.bodies == [prompt.body("m") for prompt in PROMPTS]


def test_no_more_clients_ask_at_once_than_there_are() -> None:
    with (
        serving(Scripted()) as server,
        Driver(PROMPTS, proxy_url=server.url, model="m", clients=3) as driver,
    ):
        driver.allow(10)
        until(lambda: server.at_once == 3)
        time.sleep(0.1)
        server.answers.set()
        until(lambda: driver.answered == 10)
    assert server.most_at_once == 3


def test_after_a_halt_nothing_new_is_sent() -> None:
    with (
        serving(Scripted()) as server,
        Driver(PROMPTS, proxy_url=server.url, model="m", clients=2) as driver,
    ):
        driver.allow(10)
        until(lambda: driver.started == 2)
        driver.halt()
        server.answers.set()
        until(lambda: driver.settled == 2)
        time.sleep(0.1)
        assert driver.started == 2


def test_an_error_is_counted_and_told() -> None:
    scripted = answering()
    scripted.status = 503
    with serving(scripted) as server, Driver(PROMPTS, proxy_url=server.url, model="m", clients=1) as driver:
        driver.allow(2)
        until(lambda: driver.settled == 2)
    assert (driver.answered, driver.failed) == (0, 2)
    assert driver.failures == ['status 503: {"choices": []}'] * 2


def test_a_proxy_that_is_not_there_is_a_failure_too() -> None:
    with serving(answering()) as gone:
        url = gone.url
    with Driver(PROMPTS, proxy_url=url, model="m", clients=1) as driver:
        driver.allow(1)
        until(lambda: driver.settled == 1)
    assert driver.failures[0].startswith("ConnectError")


def test_leaving_does_not_wait_for_answers() -> None:
    with serving(Scripted()) as server:
        with Driver(PROMPTS, proxy_url=server.url, model="m", clients=2) as driver:
            driver.allow(2)
            until(lambda: server.at_once == 2)
            left_at = time.monotonic()
        assert time.monotonic() - left_at < 30
        assert driver.settled == 0
