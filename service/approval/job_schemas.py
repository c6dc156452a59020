"""The JSON of shadow jobs under `/api/v1`, field by field."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from service.approval.schemas import Answer, Body, Finite

JOB = "20260105-030000-5f0c3f"


class JobPlanBody(Body):
    """What stands in for the configuration's `shadow_job`, in this job alone."""

    warm_up_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    settle_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    window_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    blocks: int | None = None
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="Requests a second."
    )
    arrivals: Literal["poisson", "constant", "trace"] | None = None
    arms: Literal["interleaved", "together"] | None = None
    parts: list[Literal["slo", "sweep", "cost", "concurrency"]] | None = None
    budget_tokens: int | None = None
    budget_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None


class JobBody(Body):
    plan: JobPlanBody = Field(
        default=JobPlanBody(), description="What is to differ from the configuration's `shadow_job`."
    )
    manifest: dict[str, Any] | None = Field(
        default=None, description="Of a job to repeat, with its plan and seed; `plan` must be left out then."
    )
    i_own_this_capacity: bool = Field(
        default=False,
        description="Load backends that serve clients as well; needs scope `admin`. Their SLO is watched, "
        "and its first breach aborts the job.",
    )


class JobProgressOut(Answer):
    share: Finite = Field(description="Of the expected seconds of load, 0 to 1.", examples=[0.35])
    blocks_done: int
    blocks_expected: int = Field(description="As far as it can be told; a sweep may take more or fewer.")
    seconds_done: Finite
    seconds_expected: Finite
    seconds_spent: Finite = Field(description="Of load, attempts that died included.")
    seconds_budget: Finite | None
    tokens_spent: int = Field(description="Of prompts and answers.")
    tokens_budget: int | None


class BlockOut(Answer):
    number: int
    part: str = Field(examples=["slo"])
    tier: str = Field(examples=["w8a8"])
    state: str = Field(description="due, leased, done or abandoned.", examples=["done"])
    attempts: int = Field(description="More than one: a worker died in its middle.")
    rate: Finite | None = Field(description="Requests a second; null in a closed loop.")
    concurrency: int | None
    started_at: str | None = Field(description="RFC 3339.")
    ended_at: str | None
    offered: int | None = Field(description="Requests of the window.")
    passed: int | None = Field(description="Of these, met the SLO.")
    goodput: Finite | None = Field(description="Output tokens a second that met the SLO.")
    ttft_p95: Finite | None = Field(description="Seconds.")
    tpot_p95: Finite | None = Field(description="Seconds.")
    invalid: list[str] | None = Field(description="Why its figures must not be used; empty when they may.")


class JobOut(Answer):
    job: str = Field(examples=[JOB])
    model: str = Field(examples=["qwen3-32b"])
    state: str = Field(
        description="waiting, running, done, cancelled, aborted or failed.", examples=["running"]
    )
    part: str = Field(description="What is measured now, or was last.", examples=["sweep"])
    cause: str = Field(description="schedule, request or replay.")
    actor: str = Field(description="Name of the token, or `schedule`.")
    i_own_this_capacity: bool
    created_at: str = Field(description="RFC 3339.")
    started_at: str | None
    ended_at: str | None
    cancelled_by: str | None
    reason: str = Field(description="Why it ended as it did; empty while it runs, and when all went well.")
    remarks: list[str] = Field(description="What was not measured, and why.")
    manifest: str = Field(description="sha256 of its manifest.")
    replay_of: str | None = Field(description="sha256 of the manifest that it repeats.")
    differences: list[str] = Field(description="From that manifest.")
    progress: JobProgressOut
    findings: dict[str, Any] | None = Field(
        description="What it found by part; null before the first is over."
    )


class JobDetailOut(JobOut):
    blocks: list[BlockOut] = Field(description="In the order of running.")


class JobsOut(Answer):
    jobs: list[JobOut] = Field(description="The latest first.")
    next_after: str | None = Field(description="Pass as `after` to read on; null at the end.")


class ManifestOut(Answer):
    digest: str = Field(description="sha256 of the manifest as canonical JSON.")
    manifest: dict[str, Any]
