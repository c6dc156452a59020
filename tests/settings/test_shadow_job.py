from __future__ import annotations

import pytest

from service.settings import SettingsError
from service.store.load.manifest import PARTS, JobPlan
from tests.settings.test_load import Loaded

MODEL = """
models:
  m:
    slo: {ttft: 1s, tpot: 50ms}
    ladder:
      - {tier: bf16, backends: [http://127.0.0.1:8000]}
      - {tier: w8a8, backends: [http://127.0.0.1:8001]}
shadow_job: """


def test_without_it_jobs_begin_only_when_somebody_asks(loaded: Loaded) -> None:
    found = loaded(f"{MODEL}{{}}").shadow_job
    assert found.cron is None
    assert found.plan == JobPlan()
    assert found.plan.parts == PARTS


def test_every_key_arrives(loaded: Loaded) -> None:
    text = (
        f"{MODEL}{{cron: '30 2 * * sun', timezone: Asia/Shanghai, warm_up: 1m, settle: none, window: 5m,"
        " blocks: 10, rate: 30/m, arrivals: constant, arms: together, parts: [slo, sweep],"
        " budget: {tokens: 5M, time: 2h},"
        " watch: ['http://proxy-a:8082', 'http://proxy-b:8082']}"
    )
    found = loaded(text).shadow_job
    assert found.cron is not None
    assert (found.cron.minute, found.cron.hour, found.cron.day_of_week) == ((30,), (2,), (0,))
    assert found.timezone == "Asia/Shanghai"
    assert found.watch == ("http://proxy-a:8082", "http://proxy-b:8082")
    assert found.plan == JobPlan(
        warm_up_seconds=60.0,
        settle_seconds=0.0,
        window_seconds=300.0,
        blocks=10,
        rate=0.5,
        arrivals="constant",
        arms="together",
        parts=("slo", "sweep"),
        budget_tokens=5_000_000,
        budget_seconds=7200.0,
    )


def test_the_proxy_of_this_machine_is_watched_unless_others_are_named(loaded: Loaded) -> None:
    text = f"{MODEL}{{}}\nproxy: {{admin: '127.0.0.1:9999'}}"
    assert loaded(text).shadow_job.watch == ("http://127.0.0.1:9999",)


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("{cron: '0 3 * *'}", "shadow_job.cron"),
        ("{timezone: Shanghai}", "no time zone is called 'Shanghai'"),
        ("{rate: 4}", "requests by time, such as 4/s"),
        ("{rate: 0/s}", "shadow_job.rate"),
        ("{blocks: 7}", "shadow_job.blocks"),
        ("{parts: [slo, cost]}", "the part cost needs the sweep"),
        ("{parts: [sweep, slo]}", "in this order"),
        ("{parts: []}", "parts are some of"),
        ("{arms: at_once}", "shadow_job.arms"),
        ("{window: 9d}", "window_seconds"),
        ("{window: 1ms}", "window_seconds must be at least 2"),
        ("{budget: {time: 0s}}", "shadow_job"),
        ("{budget: {minutes: 3}}", "shadow_job.budget.minutes"),
        ("{watch: ['http://proxy:8082/metrics']}", "shadow_job.watch"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(written: str, complaint: str, loaded: Loaded) -> None:
    with pytest.raises(SettingsError) as refused:
        loaded(f"{MODEL}{written}")
    told = str(refused.value)
    assert complaint in told
    assert "shadow_job" in told
