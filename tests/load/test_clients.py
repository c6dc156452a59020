from __future__ import annotations

from service.load.clients import ClientCounts, breach, client_counts
from service.proxy.gauges.exposition import Totals
from service.proxy.gauges.meters import Meters
from service.store.redis.capture import Ending


def page(*, quick: int = 0, slow: int = 0, failed: int = 0, left: int = 0, model: str = "qwen") -> str:
    """What the proxy tells after so many answers that began after .2 s and 3 s, and so many that did not."""
    meters = Meters()

    def passed(count: int, status: int | None, ending: Ending, seconds: float | None) -> None:
        for _ in range(count):
            meters.passed(
                model,
                "bf16",
                status,
                ending,
                first_byte=seconds,
                whole=seconds,
                request_added=None,
                answer_added=None,
            )

    passed(quick, 200, Ending.COMPLETE, 0.2)
    passed(slow, 200, Ending.COMPLETE, 3.0)
    passed(failed, None, Ending.UNREACHABLE, None)
    passed(left, None, Ending.CENSORED, None)
    totals = Totals()
    totals.add(meters.snapshot())
    return totals.text()


def test_answers_that_began_later_than_promised_are_told_from_the_proxys_own_page() -> None:
    found = client_counts(page(quick=40, slow=3, failed=2, left=9), "qwen", ttft_seconds=1.5)
    assert found == ClientCounts(answers=43, late=3, failed=2)


def test_another_models_clients_do_not_count() -> None:
    assert client_counts(page(slow=5), "phi", ttft_seconds=1.5) == ClientCounts()


def test_the_first_look_at_which_too_many_are_late_or_failed_is_a_breach() -> None:
    before = ClientCounts(answers=1000, late=0)
    assert breach(before, ClientCounts(answers=1100, late=5)) == ""
    assert "6 began late" in (breach(before, ClientCounts(answers=1100, late=6)) or "")
    assert "9 failed" in (breach(before, ClientCounts(answers=1100, failed=9)) or "")


def test_too_few_answers_say_nothing_yet() -> None:
    before = ClientCounts(answers=1000)
    assert breach(before, ClientCounts(answers=1010, late=10)) is None
    assert breach(before, ClientCounts(answers=1020, late=20))


def test_a_proxy_that_started_anew_says_nothing_yet() -> None:
    assert breach(ClientCounts(answers=1000), ClientCounts(answers=30, late=30)) is None


def test_without_any_traffic_nothing_is_breached() -> None:
    empty = client_counts(page(), "qwen", ttft_seconds=1.5)
    assert empty == ClientCounts()
    assert breach(empty, empty) is None
