"""Words that nobody waits for."""

from __future__ import annotations

import threading

from service.launch.aside import MOST_WAITING, Aside
from tests.patience import PATIENCE


def test_everything_is_said_in_order() -> None:
    said: list[str] = []
    aside = Aside(said.append)
    for number in range(100):
        aside(str(number))
    assert aside.settle(PATIENCE)
    assert said == [str(number) for number in range(100)]


def test_who_speaks_does_not_wait_for_who_does_not_listen_and_goes_on_later() -> None:
    said: list[str] = []
    listens = threading.Event()

    def say(text: str) -> None:
        listens.wait()
        said.append(text)

    aside = Aside(say)
    for number in range(2 * MOST_WAITING):
        aside(str(number))
    assert not aside.settle(0.05)
    listens.set()
    assert aside.settle(PATIENCE)
    assert MOST_WAITING <= len(said) <= MOST_WAITING + 1
    # A place is free once the first is being said, and who speaks then, whenever that was, is heard.
    assert said[:MOST_WAITING] == [str(number) for number in range(MOST_WAITING)]
    aside("still there")
    assert aside.settle(PATIENCE)
    assert said[-1] == "still there"


def test_a_terminal_that_is_gone_ends_nothing() -> None:
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        raise OSError("gone")

    aside = Aside(say)
    aside("one")
    aside("two")
    assert aside.settle(PATIENCE)
    assert said == ["one", "two"]
