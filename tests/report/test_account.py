"""The ledger as a flow: whatever was begun is in it, settled or not."""

from __future__ import annotations

from service.charts.flow import Amount
from service.report.document import Ledger
from service.report.sections.account import flow_of, ledger_chart
from service.report.words import Language, words
from tests.report.sample import ledger

SAY = words(Language.EN)


def unsettled(amount: Amount) -> dict[str, tuple[int, str]]:
    """What is not settled, by what it is part of: count and tone."""
    found = {}
    for part in amount.parts:
        if part.label == "not settled":
            found[amount.label] = (part.count, part.tone)
        found |= unsettled(part)
    return found


def whole(amount: Amount) -> bool:
    """Whether everything that is split is split without a rest."""
    told = sum(part.count for part in amount.parts)
    return (not amount.parts or told == amount.count) and all(whole(part) for part in amount.parts)


def test_an_account_of_proxies_that_stopped_is_split_without_a_rest() -> None:
    flow = flow_of(ledger(), SAY)
    assert whole(flow)
    assert unsettled(flow) == {}


def test_what_running_proxies_have_begun_is_under_way() -> None:
    running = Ledger(
        seen=100, skipped={"not_sampled": 60}, sampled=30, shipped=25, processed=25, in_flight=15
    )
    flow = flow_of(running, SAY)
    assert whole(flow)
    assert unsettled(flow) == {"seen": (10, "wait"), "sampled": (5, "wait")}


def test_what_silent_proxies_had_begun_is_a_loss() -> None:
    silent = Ledger(seen=100, skipped={"not_sampled": 90}, unaccounted=10)
    assert unsettled(flow_of(silent, SAY)) == {"seen": (10, "bad")}


def test_the_chart_has_every_number_as_a_row() -> None:
    rows: dict[str, str] = dict(ledger_chart(ledger(), SAY).rows)  # type: ignore[arg-type]
    assert rows["seen"] == "1,204,310"
    assert rows["dropped: buffer full"] == "402"
    assert rows["unaccounted, at most"] == "0"
