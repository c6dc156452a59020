"""Every page of the dashboard, by what a person would call it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from service.dashboard.visit import address
from tests.approval.live import LiveApi
from tests.dashboard.house import CHAT, CODE, STRUCTURED, House
from tests.dashboard.looking import pair_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A house with people in front of it, and the names of what is in it."""

    api: LiveApi
    house: House


def tier(name: str, model: str = CHAT) -> str:
    """The page of a tier."""
    return address("/tier", model=model, tier=name)


REFUSED = {"approve-refused": 409, "not-found": 404}
"""Status of the pages that say what is wrong."""
PLACES: Mapping[str, Callable[[Built], str]] = {
    "login": lambda built: "/login",
    "overview": lambda built: "/",
    "tier-accepted": lambda built: tier("w8a8"),
    "tier-harmful": lambda built: tier("w4a16"),
    "tier-empty": lambda built: tier("w4a16", CODE),
    "tier-baseline": lambda built: tier("bf16"),
    "approve": lambda built: address("/tier/act", model=CHAT, tier="w8a8", do="approve"),
    "approve-refused": lambda built: address("/tier/act", model=CHAT, tier="w4a16", do="approve"),
    "reject": lambda built: address("/tier/act", model=CHAT, tier="w8a8", do="reject"),
    "roll-back": lambda built: address("/tier/act", model=CHAT, tier="fp8-kv", do="roll_back"),
    "pairs": lambda built: address("/pairs", model=CHAT, tier="w4a16"),
    "pairs-of-criterion": lambda built: address("/pairs", model=CHAT, tier="w4a16", criterion=STRUCTURED),
    "pair": lambda built: address("/pair", id=pair_of(built.api.db).id),
    "pair-open": lambda built: address("/pair", id=pair_of(built.api.db).id, show="request"),
    "adjudicate": lambda built: "/adjudicate",
    "ledger": lambda built: address("/ledger", model=CHAT),
    "capacity": lambda built: address("/capacity", model=CHAT),
    "jobs": lambda built: "/jobs",
    "job-done": lambda built: address("/job", id=built.house.done_job),
    "job-failed": lambda built: address("/job", id=built.house.failed_job),
    "job-running": lambda built: address("/job", id=built.house.running_job),
    "job-begin": lambda built: address("/jobs/begin", model=CHAT),
    "job-cancel": lambda built: address("/job/cancel", id=built.house.running_job),
    "runs-beside": lambda built: address(
        "/jobs/beside", runs=f"{built.house.done_job},{built.house.failed_job}"
    ),
    "report": lambda built: address("/report", job=built.house.done_job),
    "log": lambda built: "/log",
    "log-row": lambda built: "/log/row?seq=3",
    "not-found": lambda built: "/log/row?seq=999999",
}
"""Names are part of the pictures' file names."""
