"""With TIERGATE_FORBID_SKIPS set, as `.ci/run` sets it, a skipped test has failed.

Only data that the repository may not hold can be missing all the same: a skip that says so stays one.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

FORBID = "TIERGATE_FORBID_SKIPS"
DATA_ELSEWHERE = "public test suites are not at"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get(FORBID) and not hasattr(report, "wasxfail"):
        assert isinstance(report.longrepr, tuple)
        reason = str(report.longrepr[2])
        if DATA_ELSEWHERE not in reason:
            report.outcome = "failed"
            report.longrepr = f"{reason}: nothing may be skipped here ({FORBID})"
    return report
