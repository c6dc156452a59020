"""The JSON of advice about a tier's capacity, field by field; times in seconds, sizes in bytes."""

from __future__ import annotations

from pydantic import Field

from service.approval.schemas import Answer, Finite


class EngineOut(Answer):
    backend: str = Field(description="Its URL.")
    engine: str = Field(examples=["vllm"])
    version: str | None
    told_at: str = Field(description="RFC 3339.")
    kv_dtype: str | None = Field(description="As the engine names it.", examples=["fp8_e4m3"])
    kv_tokens: int | None = Field(description="That its KV cache holds.", examples=[93184])
    kv_bytes: int | None = Field(description="Of its KV cache, where they were given and not measured.")
    token_bytes: Finite | None = Field(description="kv_bytes / kv_tokens.", examples=[11523.0])
    max_model_len: int | None
    sequences: int | None = Field(
        description="Of the longest that it takes, at once, without preemption: kv_tokens / max_model_len."
    )


class PrefixOut(Answer):
    advice: str = Field(
        description="wait, switch_off, noise, linear, diminishing, thrashing or own_pool.",
        examples=["linear"],
    )
    reason: str
    doubts: list[str] = Field(description="What speaks against trusting it.")
    hours: Finite = Field(description="Of the window, without a gap; below 24 the advice is wait.")
    prefill_tokens: Finite
    reused_tokens: Finite
    rate: Finite | None = Field(description="Of tokens, never of requests; null without prompts.")
    prefill_share: Finite | None = Field(description="Prefill time by prefill and decode time.")
    speed_up: Finite | None = Field(description="1 / (1 - rate x prefill_share).")
    jitter: Finite | None
    evictions: Finite | None
    prefixes: int | None = Field(description="Distinct beginnings that captured prompts share.")
    prefix_tokens: Finite | None
    concurrency: Finite | None


class FoundOut(Answer):
    concurrency: int | None = Field(description="null: not reached; nothing is extrapolated.")
    reason: str


class CostOut(Answer):
    concurrency: int
    throughput: Finite | None = Field(description="Output tokens a second.")
    million: Finite | None = Field(description="Of a million tokens that met the SLO; null where none did.")


class CostsOut(Answer):
    currency: str
    curve: list[CostOut]
    cheapest: FoundOut
    turn: FoundOut = Field(description="More tokens a second than a step before, each that counts dearer.")


class PoolOut(Answer):
    verdict: str = Field(description="below, as_said (30 to 50 %), above or not_reached.")
    gain: Finite | None = Field(description="Tokens a second at the best step / at the start - 1.")
    concurrency: int | None
    reason: str


class ChunkOut(Answer):
    advice: str = Field(description="cap, keep or not_told.")
    reason: str


class BatchOut(Answer):
    start: FoundOut = Field(description="max-num-seqs to begin with: P95 of TPOT within 80 % of its SLO.")
    costs: CostsOut | None = Field(description="null without a price.")
    pool: PoolOut = Field(description="What work that waits for nobody gains.")
    chunk: ChunkOut = Field(description="Whether to cap max-num-batched-tokens at about 2048.")


class CauseOut(Answer):
    stage: str = Field(description="ttft, tpot, memory or cost.")
    cause: str = Field(examples=["queue"], description="unknown where no cause has evidence.")
    hurts: str
    evidence: str
    remedies: list[str]
    experiment: str = Field(description="That would confirm it.")


class PatternOut(Answer):
    pattern: str = Field(examples=["idle cache"])
    state: str = Field(description="found, absent or not_told.")
    reason: str


class LoadRunOut(Answer):
    job: str
    began_at: str = Field(description="RFC 3339.")
    ended_at: str | None


class CapacityOut(Answer):
    model: str = Field(examples=["qwen3-32b"])
    tier: str = Field(examples=["w8a8"])
    engines: list[EngineOut] = Field(description="The KV cache of each backend, as the guard last heard it.")
    prefix: PrefixOut | None = Field(
        description="Of the last 24 hours; null while no backend that serves told counters twice."
    )
    load_run: LoadRunOut | None = Field(
        description="What batch, causes and not_judged come from; null before the first."
    )
    batch: BatchOut | None = Field(description="null where no load run searched for the most at once.")
    causes: list[CauseOut] = Field(description="Of every stage that missed its limit in the load run.")
    not_judged: list[str] = Field(description="Stages of which nothing is known, which is not well.")
    patterns: list[PatternOut] = Field(description="Three that cost more when switched on.")
