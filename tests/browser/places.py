"""Every page of the dashboard, by what a person would call it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from service.dashboard.visit import address
from tests.approval.live import LiveApi
from tests.dashboard.house import CHAT, CODE, STRUCTURED, House


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A house with people in front of it, and the names of what is in it."""

    api: LiveApi
    house: House


def tier(name: str, model: str = CHAT) -> str:
    """The page of a tier."""
    return address("/tier", model=model, tier=name)


PLACES: Mapping[str, Callable[[House], str]] = {
    "login": lambda house: "/login",
    "overview": lambda house: "/",
    "tier-accepted": lambda house: tier("w8a8"),
    "tier-harmful": lambda house: tier("w4a16"),
    "tier-empty": lambda house: tier("w4a16", CODE),
    "tier-baseline": lambda house: tier("bf16"),
    "approve": lambda house: address("/tier/act", model=CHAT, tier="w8a8", do="approve"),
    "pairs": lambda house: address("/pairs", model=CHAT, tier="w4a16"),
    "pairs-of-criterion": lambda house: address("/pairs", model=CHAT, tier="w4a16", criterion=STRUCTURED),
    "adjudicate": lambda house: "/adjudicate",
    "ledger": lambda house: address("/ledger", model=CHAT),
    "capacity": lambda house: address("/capacity", model=CHAT),
    "jobs": lambda house: "/jobs",
    "job-done": lambda house: address("/job", id=house.done_job),
    "job-failed": lambda house: address("/job", id=house.failed_job),
    "job-running": lambda house: address("/job", id=house.running_job),
    "job-begin": lambda house: address("/jobs/begin", model=CHAT),
    "job-cancel": lambda house: address("/job/cancel", id=house.running_job),
    "runs-beside": lambda house: address("/jobs/beside", runs=f"{house.done_job},{house.failed_job}"),
    "report": lambda house: address("/report", job=house.done_job),
    "log": lambda house: "/log",
}
"""Names are part of the pictures' file names."""
