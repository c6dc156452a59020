"""The part of `tiergate.yaml` under `shadow_job`, and the values it becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, Field, model_validator

from service.settings.cron import Cron, cron
from service.settings.forms import CronText, Duration, Limit, Rate, Section, Shape, Tokens, written
from service.store.load.manifest import DEFAULT_PLAN, PARTS, JobPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowJob:
    """When shadow jobs begin by themselves, how they load each arm, and whose clients are watched."""

    cron: Cron | None = None
    """None: only when somebody asks for one."""
    timezone: str = "UTC"
    plan: JobPlan = DEFAULT_PLAN
    watch: tuple[str, ...] = ()
    """Admin addresses of proxies whose clients are watched during a run on capacity that serves."""


DEFAULT_SHADOW_JOB = ShadowJob()


def _timezone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"no time zone is called {name!r}; one looks like UTC or Asia/Shanghai") from None
    return name


class JobBudgetShape(Shape):
    """What one job may spend; a block that it could not end within is not begun."""

    tokens: Tokens | None = Field(default=None, description="Of prompts and answers; without it, no limit.")
    time: Limit = written("6h", "In which load is sent, of all arms together; `none` for no limit.")


class ShadowJobShape(Shape):
    """Load runs of baseline and candidates under equal load, and what they cost."""

    cron: CronText | None = Field(
        default=None,
        description="When it begins by itself: minute, hour, day, month, weekday; without it, only when "
        "asked.",
    )
    timezone: Annotated[str, AfterValidator(_timezone)] = Field(
        default="UTC", description="Of the cron expression."
    )
    warm_up: Limit = written("3m", "Before an arm's first block: sent and not counted; `none` for none.")
    settle: Limit = written("20s", "The same before each further block of an arm.")
    window: Duration = written(
        "10m",
        "Of each arm, over all its blocks, for its SLO; longer if the gate needs it. And again for cost.",
    )
    blocks: Annotated[int, Field(ge=8, le=400)] = Field(
        default=8, description="That each arm's window is divided into, at least; arms take turns."
    )
    rate: Rate = written("4/s", "Requests of every arm, at which the baseline keeps its SLO.")
    arrivals: Literal["poisson", "constant", "trace"] = Field(
        default="poisson", description="How requests follow one another; `trace` as in the corpus."
    )
    arms: Literal["interleaved", "together"] = Field(
        default="interleaved",
        description="Arms take turns, or those of a round are loaded at once, where each has hardware of its "
        "own.",
    )
    parts: list[Literal["slo", "sweep", "cost", "concurrency"]] = Field(
        default=cast(Any, list(PARTS)),
        description="What is measured, in this order; cost needs the sweep.",
    )
    budget: Annotated[JobBudgetShape, Section] = Field(
        default=JobBudgetShape(), description="What one job may spend."
    )
    watch: list[Annotated[str, Field(pattern=r"^https?://[^/\s]+$")]] = Field(
        default_factory=list,
        description="Admin addresses of all proxies, such as http://127.0.0.1:8082, whose clients are "
        "watched during a run with --i-own-this-capacity; by default this machine's proxy.",
    )

    @model_validator(mode="after")
    def _holds_together(self) -> ShadowJobShape:
        build_shadow_job(self, proxy_admin="")
        return self


def build_shadow_job(shape: ShadowJobShape, *, proxy_admin: str) -> ShadowJob:
    """ValueError for what is right in each key and not together."""
    return ShadowJob(
        cron=None if shape.cron is None else cron(shape.cron),
        timezone=shape.timezone,
        plan=JobPlan(
            warm_up_seconds=shape.warm_up or 0.0,
            settle_seconds=shape.settle or 0.0,
            window_seconds=shape.window,
            blocks=shape.blocks,
            rate=shape.rate,
            arrivals=shape.arrivals,
            arms=shape.arms,
            parts=tuple(shape.parts),
            budget_tokens=shape.budget.tokens,
            budget_seconds=shape.budget.time,
        ),
        watch=tuple(shape.watch) or (proxy_admin,),
    )
