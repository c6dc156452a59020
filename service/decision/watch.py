"""Watching one criterion of a tier that serves: the e-detector of A12 in the directions of its hypothesis.

Where harm either way is harm, a detector of each direction runs and their mean is compared: the mean of two
e-detectors is one, so the expected time to a false alarm stays at least 1e5 units.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from service.decision.detector import LOG_ALARM, Stretch
from service.decision.eprocess import log_mean
from service.decision.policy import Criterion, Hypothesis
from service.decision.wording import compared_e_values


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What the units since promotion say about one criterion."""

    criterion: str
    worse: Stretch
    better: Stretch | None = None
    """Of the mirrored differences; None where only a rise of the failure rate is harm."""

    @classmethod
    def of(cls, criterion: Criterion) -> Watch:
        """At the start, before any unit."""
        start = Stretch(margin=criterion.margin)
        both_ways = criterion.hypothesis is Hypothesis.EQUIVALENT
        return cls(criterion=criterion.evaluator, worse=start, better=start if both_ways else None)

    @property
    def units(self) -> int:
        """Since promotion."""
        return self.worse.units

    @property
    def log_statistic(self) -> float:
        """Log of the e-detector; of both directions their mean."""
        if self.better is None:
            return self.worse.log_statistic
        return log_mean(self.worse.log_statistic, self.better.log_statistic)

    @property
    def alarm(self) -> bool:
        """Whether harm is shown, now."""
        return self.log_statistic >= LOG_ALARM

    @property
    def reason(self) -> str:
        """What it says in one sentence with both numbers."""
        if not self.units:
            return f"{self.criterion}: no unit since promotion"
        found, allowed = compared_e_values(self.log_statistic, LOG_ALARM)
        relation = ">=" if self.alarm else "<"
        return f"{self.criterion}: e-detector {found} {relation} {allowed} at unit {self.units} of service"

    def after(self, differences: Iterable[float]) -> Watch:
        """This watch after units with these mean differences, in order; it ends at the first alarm."""
        watch = self
        for difference in differences:
            if watch.alarm:
                break
            better = watch.better and watch.better.after((-difference,))
            watch = replace(watch, worse=watch.worse.after((difference,)), better=better)
        return watch
