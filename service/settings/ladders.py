"""Ladders, tiers, backends and probe plans from their checked shapes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from evaluators.exchange import AnswerRule, Expected
from service.fleet import Backend, Ladder, Tier
from service.settings.backends import build_backend
from service.settings.fleet_shape import ModelShape, ProbeShape, StructuredShape, TierShape
from service.settings.limits import build_limits
from service.settings.problems import Findings, Place
from service.settings.units import Listen
from service.settings.values import ProbePlan

LOOPBACK = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("0.0.0.0", "::")


def build_ladder(
    name: str, model: ModelShape, beside: Path, environ: Mapping[str, str], findings: Findings
) -> Ladder | None:
    """The baseline first; None without a tier that can be used. What is wrong goes to `findings`."""
    tiers: list[Tier] = []
    rungs: dict[str, int] = {}
    for rung, tier in enumerate(model.ladder):
        place: Place = ("models", name, "ladder", rung)
        if tier.tier in rungs:
            findings.add(
                (*place, "tier"), f"{tier.tier!r} already names rung {rungs[tier.tier]} of this ladder"
            )
            continue
        rungs[tier.tier] = rung
        tiers.append(_tier(name, tier, place, beside, environ, findings))
    return Ladder(model=name, tiers=tuple(tiers), limits=build_limits(model.limits)) if tiers else None


def refuse_own_address(models: Mapping[str, ModelShape], proxy: Listen, findings: Findings) -> None:
    """A proxy that is its own backend multiplies one request until no socket is left."""
    hosts = LOOPBACK if proxy.host in (*LOOPBACK, *EVERYWHERE) else (proxy.host,)
    for name, model in models.items():
        for rung, tier in enumerate(model.ladder):
            for pool, backends in (("backends", tier.backends), ("shadow", tier.shadow)):
                for index, backend in enumerate(backends):
                    parts = urlsplit(backend.url)
                    port = parts.port or (443 if parts.scheme == "https" else 80)
                    if proxy.path is not None:
                        is_proxy = backend.url == str(proxy)
                    else:
                        is_proxy = port == proxy.port and parts.hostname in hosts
                    if is_proxy:
                        place = ("models", name, "ladder", rung, pool, index)
                        findings.add(place, f"{backend.url} is the proxy itself (proxy.listen {proxy})")


def _tier(
    model: str,
    tier: TierShape,
    place: Place,
    beside: Path,
    environ: Mapping[str, str],
    findings: Findings,
) -> Tier:
    pools: dict[str, tuple[Backend, ...]] = {}
    for pool, backends in (("backends", tier.backends), ("shadow", tier.shadow)):
        built: list[Backend] = []
        for index, backend in enumerate(backends):
            here: Place = (*place, pool, index)
            if any(backend.url == other.url for other in built):
                findings.add(here, f"{backend.url} stands in this list twice")
            built.append(build_backend(backend, here, beside, environ, findings))
        pools[pool] = tuple(built)
    return Tier(
        name=tier.tier,
        backends=pools["backends"],
        shadow=pools["shadow"],
        model=tier.model or model,
        price_per_hour=tier.price_per_hour,
        declares=tier.declares,
    )


def build_probe(shape: ProbeShape, otherwise: ProbePlan) -> ProbePlan:
    """Of one model: where it says nothing, as `otherwise`."""
    return ProbePlan(
        per_capture=otherwise.per_capture if shape.per_capture is None else shape.per_capture,
        planted=otherwise.planted if shape.planted is None else shape.planted,
        min_context_chars=(
            otherwise.min_context_chars if shape.min_context_chars is None else shape.min_context_chars
        ),
        max_tokens=otherwise.max_tokens if shape.max_tokens is None else shape.max_tokens,
        extra_body=otherwise.extra_body if shape.extra_body is None else shape.extra_body,
        tokens_per_day=otherwise.tokens_per_day if shape.tokens_per_day is None else shape.tokens_per_day,
    )


def build_rule(shape: StructuredShape) -> AnswerRule:
    """What is expected of answers although requests do not ask for it."""
    return AnswerRule(
        expects_json=shape.expects != "none",
        json_lines=shape.expects == "jsonl",
        accept_recoverable=shape.accept_recoverable,
        paths={path: Expected(expects) for path, expects in shape.paths.items()},
    )
