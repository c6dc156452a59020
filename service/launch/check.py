"""What `tiergate check` and `tiergate up` say about backends: one line each, from their own answers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from service.decision.policy import Asked, Gate
from service.engines.attribution import compare, disagreement
from service.engines.facts import EngineFacts
from service.engines.words import kv_doubt, same_engine, same_kv_dtype
from service.fleet import Backend, Ladder, Tier
from service.launch.ask import Answered, Unusable
from service.proxy.config import ListenerTls
from service.proxy.processes.certificates import days_left
from service.settings import Settings
from service.store.load.manifest import TOGETHER
from service.store.redis.addresses import address_of
from service.store.verdicts.serving import shared, targets_of

EXPIRES_SOON = 14.0
"""Days."""


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    """Works, and something will not work as expected."""
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One finding for a person."""

    level: Level
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.level:<4}  {self.subject}: {self.text}"


Answers = Mapping[Backend, Answered | Unusable]


def all_backends(settings: Settings) -> list[Backend]:
    """Every backend of every pool of every tier."""
    return [
        backend
        for ladder in settings.ladders.values()
        for tier in ladder.tiers
        for backend in (*tier.backends, *tier.shadow)
    ]


def guarded_backends(settings: Settings) -> list[Backend]:
    """Those whose KV cache the proxy is to go by."""
    return [
        backend
        for ladder in settings.ladders.values()
        if ladder.limits.kv_guard is not None
        for tier in ladder.tiers
        for backend in tier.backends
    ]


def backend_lines(settings: Settings, answers: Answers) -> list[Line]:
    """A line for each backend, and one for each tier whose replicas or engine are at odds."""
    lines: list[Line] = []
    for ladder in settings.ladders.values():
        for tier in ladder.tiers:
            for pool in (tier.backends, tier.shadow):
                lines += [_backend_line(ladder, tier, backend, answers[backend]) for backend in pool]
        lines += _tier_lines(ladder, answers)
        lines += _guard_lines(ladder, answers)
    return lines


def setup_lines(settings: Settings) -> list[Line]:
    """What the configuration alone shows: evidence that cannot come about."""
    lines: list[Line] = []
    for model, ladder in settings.ladders.items():
        if not ladder.candidates:
            lines.append(_warn(model, "the ladder has one tier, so there is nothing to compare it with"))
        elif not ladder.baseline.shadow and not settings.shadow.on_serving:
            lines.append(
                _warn(
                    f"{model}/{ladder.baseline.name}",
                    "no capacity for the control, so verdicts stay undecided (no_control_capacity): give the"
                    " baseline a `shadow` backend of the same recipe, or allow shadow.on_serving",
                )
            )
        lines += _shared_lines(ladder)
        lines += _unverified_lines(ladder)
        lines += _load_lines(settings, ladder)
    if settings.proxy.tls is not None and (left := days_left(settings.proxy.tls)) < EXPIRES_SOON:
        lines.append(_warn("proxy.tls", _expiry(settings.proxy.tls, left)))
    gates = [gate for gate in (Gate.SLO, Gate.MONEY) if settings.policy.gates[gate] is Asked.REQUIRED]
    if gates:
        names = " and ".join(f"policy.gates.{gate}" for gate in gates)
        reasons = ", ".join(f"missing_{gate}" for gate in gates)
        lines.append(
            _warn(
                "policy",
                f"{names} need load runs (`tiergate shadow run`); until there are some, verdicts stay"
                f" undecided ({reasons})."
                " Switched off, they are printed as `not asked`",
            )
        )
    return lines


def dead_baselines(settings: Settings, answers: Answers) -> list[str]:
    """Models that nobody could be answered for: every backend of the baseline is unusable."""
    return [
        model
        for model, ladder in settings.ladders.items()
        if all(isinstance(answers[backend], Unusable) for backend in ladder.baseline.backends)
    ]


def _backend_line(ladder: Ladder, tier: Tier, backend: Backend, answer: Answered | Unusable) -> Line:
    subject = f"{ladder.model}/{tier.name} {backend.url}"
    if isinstance(answer, Unusable):
        return Line(level=Level.FAIL, subject=subject, text=str(answer))
    if tier.model not in answer.models:
        served = ", ".join(list(answer.models)[:5]) or "no model at all"
        return Line(
            level=Level.FAIL,
            subject=subject,
            text=f"serves {served}, not {tier.model!r}: start it with that name, or set the tier's `model`",
        )
    engine = answer.engine_of(tier.model)
    if engine is None:
        return Line(
            level=Level.OK, subject=subject, text=f"serves {tier.model}; the engine does not say which it is"
        )
    return _engine_line(subject, tier, engine)


def _engine_line(subject: str, tier: Tier, engine: EngineFacts) -> Line:
    declared_engine, declared_kv = tier.declares.get("engine"), tier.declares.get("kv_cache")
    if declared_engine is not None and not same_engine(declared_engine, engine):
        return Line(
            level=Level.FAIL,
            subject=subject,
            text=f"declares engine {declared_engine!r}, but is {engine}: correct `declares`, or the server",
        )
    told = f"serves {tier.model}, {engine}"
    if engine.kv_dtype is None:
        return Line(level=Level.OK, subject=subject, text=f"{told}, KV cache type not told by the engine")
    size = "" if engine.kv_tokens is None else f" ({engine.kv_tokens} tokens)"
    told = f"{told}, KV cache {engine.kv_dtype}{size}"
    if declared_kv is None or declared_kv.lower() == "auto" or same_kv_dtype(declared_kv, engine.kv_dtype):
        return Line(level=Level.OK, subject=subject, text=told)
    return Line(
        level=Level.FAIL,
        subject=subject,
        text=f"declares kv_cache {declared_kv!r}, but {told}: correct `declares`, or start the server with"
        f" --kv-cache-dtype {declared_kv}",
    )


def _guard_lines(ladder: Ladder, answers: Answers) -> list[Line]:
    """Backends that tell nothing that a KV guard could go by."""
    return [
        _warn(
            f"{ladder.model}/{tier.name} {backend.url}",
            "limits.kv_guard is open here: its /metrics does not tell how full its KV cache is (vLLM's and"
            " SGLang's do, llama.cpp's and TGI's do not); max_concurrency bounds it without",
        )
        for tier in ladder.tiers
        for backend in tier.backends
        if ladder.limits.kv_guard is not None
        and isinstance(answer := answers[backend], Answered)
        and answer.tells_kv is False
    ]


def _shared_lines(ladder: Ladder) -> list[Line]:
    serving = {backend.url for backend in ladder.baseline.backends}
    return [
        _warn(
            f"{ladder.model}/{tier.name}",
            f"replays go to {backend.url}, which answers clients as the baseline: they slow each other down",
        )
        for tier in ladder.tiers
        for backend in (tier.shadow or (tier.backends if tier is not ladder.baseline else ()))
        if backend.url in serving
    ]


def _load_lines(settings: Settings, ladder: Ladder) -> list[Line]:
    """Why the scheduled shadow job would be refused: it never loads what serves clients."""
    if settings.shadow_job.cron is None or not ladder.candidates:
        return []
    lines: list[Line] = []
    if ladder.model not in settings.slo:
        lines.append(
            _warn(ladder.model, "shadow_job.cron is set, but without an `slo` no job of this model can begin")
        )
    serving = {
        address_of(backend): each.model
        for each in settings.ladders.values()
        for backend in each.baseline.backends
    }
    lines += [
        Line(
            level=Level.FAIL,
            subject=f"{ladder.model}/{tier.name}",
            text=f"shadow_job.cron is set, but its load would go to {backend.url}, which answers clients of "
            f"{serving[address_of(backend)]}: give the tier `shadow` backends that serve nobody",
        )
        for tier in ladder.tiers
        for backend in targets_of(tier)
        if address_of(backend) in serving
    ]
    if settings.shadow_job.plan.arms == TOGETHER:
        lines += [
            Line(
                level=Level.FAIL,
                subject=ladder.model,
                text=f"shadow_job.arms is {TOGETHER}, but {each}: give each tier backends of its own, or let "
                "them take turns",
            )
            for each in shared(ladder)
        ]
    return lines


def _unverified_lines(ladder: Ladder) -> list[Line]:
    return [
        _warn(
            f"{ladder.model}/{tier.name} {backend.url}",
            "insecure_skip_verify: whoever answers there is taken for the backend and gets prompts and keys;"
            " name its certificate in ca_file instead",
        )
        for tier in ladder.tiers
        for backend in (*tier.backends, *tier.shadow)
        if backend.tls.insecure_skip_verify
    ]


def _expiry(listener: ListenerTls, left: float) -> str:
    if left < 0:
        return f"{listener.certificate_file} has expired: clients will refuse to connect; renew it"
    return (
        f"{listener.certificate_file} expires in {left:.0f} days; it is taken without a restart once renewed"
    )


def _tier_lines(ladder: Ladder, answers: Answers) -> list[Line]:
    """What would withhold a verdict: replicas that differ, and more between two tiers than the precision."""
    told = {tier.name: _engines(tier, answers) for tier in ladder.tiers}
    lines = [
        _warn(f"{ladder.model}/{name}", f"its backends disagree, and evidence would mix them: {apart}")
        for name, engines in told.items()
        if (apart := disagreement(engines))
    ]
    baseline = next(iter(told[ladder.baseline.name].values()), None)
    for tier in ladder.candidates:
        candidate = next(iter(told[tier.name].values()), None)
        attribution = compare(baseline, candidate)
        if attribution is None or baseline is None or candidate is None:
            continue
        subject = f"{ladder.model}/{tier.name}"
        lines += [
            _warn(subject, f"{difference}: a difference may come from that and not from the precision")
            for difference in attribution.differences
        ]
        if doubt := kv_doubt(tier.declares.get("kv_cache", ""), baseline, candidate):
            lines.append(_warn(subject, doubt))
    return lines


def _engines(tier: Tier, answers: Answers) -> dict[str, EngineFacts]:
    """By address, those of its backends that tell who they are."""
    told = {backend.url: answers[backend] for backend in (*tier.backends, *tier.shadow)}
    return {
        url: engine
        for url, answer in told.items()
        if isinstance(answer, Answered) and (engine := answer.engine_of(tier.model)) is not None
    }


def _warn(subject: str, text: str) -> Line:
    return Line(level=Level.WARN, subject=subject, text=text)
