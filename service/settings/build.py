"""From the checked shape of a file and the environment to `Settings`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import evaluators
from service.decision.policy import Asked, Criterion, Gate, Hypothesis, OnHarm, Policy
from service.fleet import Backend, Ladder, Tier
from service.proxy.config import Mirroring, ProxyConfig, Timeouts
from service.settings import units
from service.settings.nearest import nearest
from service.settings.problems import Place
from service.settings.secrets import (
    MAKE_A_KEY,
    SecretUnreadable,
    make_key,
    read_keyring,
    read_secret,
    sampling_salt,
    secret_from,
)
from service.settings.shape import BackendShape, PolicyShape, ProbeShape, TiergateShape, TierShape
from service.settings.values import ApiListen, Money, ProbePlan, Settings, ShadowPlan, Slo

if TYPE_CHECKING:
    from service.store.capture import Keyring

LOOPBACK = ("127.0.0.1", "localhost", "::1")
EMBEDDED_REDIS = "redis://127.0.0.1:6379/0"
EQUIVALENT_BY_DEFAULT = frozenset({"refusal"})
"""Fewer refusals of harmful requests and more of harmless ones can cancel, so both ways count."""


@dataclass(slots=True)
class Findings:
    """Problems by place; a message without a place speaks of the environment."""

    entries: list[tuple[Place, str]] = field(default_factory=list)

    def add(self, place: Place, message: str) -> None:
        self.entries.append((place, message))


def build(
    shape: TiergateShape, *, path: Path, environ: Mapping[str, str], findings: Findings
) -> Settings | None:
    """The settings, or None when `findings` says why there are none."""
    beside = path.parent
    ladders = {
        name: ladder
        for name in shape.models
        if (ladder := _ladder(shape, name, beside, environ, findings)) is not None
    }
    policy = _policy(shape.policy, findings)
    state_dir = _state_dir(shape, beside, environ)
    redis_url = _url(environ, "TIERGATE_REDIS_URL", shape.store.redis, ("redis", "rediss"), findings)
    broker_url = _url(environ, "TIERGATE_BROKER_URL", shape.store.broker, ("redis", "rediss"), findings)
    database_url = _url(
        environ, "TIERGATE_DATABASE_URL", shape.store.database, ("sqlite", "postgresql"), findings
    )
    proxy_listen = _listen(environ, "TIERGATE_PROXY_LISTEN", shape.proxy.listen, findings)
    admin_listen = _listen(environ, "TIERGATE_ADMIN_LISTEN", shape.proxy.admin, findings)
    api_listen = _listen(environ, "TIERGATE_API_LISTEN", shape.api.listen, findings)
    if len({str(each) for each in (proxy_listen, admin_listen, api_listen) if each.port}) < sum(
        each.port != 0 for each in (proxy_listen, admin_listen, api_listen)
    ):
        findings.add(("proxy",), "proxy.listen, proxy.admin and api.listen must be three different addresses")
    if findings.entries or policy is None:
        return None
    keyring = _keyring(shape, beside, state_dir, redis_url, environ, findings)
    if keyring is None:
        return None
    mirror, capture = shape.mirror, shape.mirror.capture
    settled_redis = redis_url or EMBEDDED_REDIS
    settled_broker = broker_url or settled_redis
    default = ProxyConfig(ladders=ladders)
    probe = _probe(shape.probe, ProbePlan())
    return Settings(
        path=path,
        state_dir=state_dir,
        ladders=ladders,
        policy=policy,
        redis_url=settled_redis,
        broker_url=settled_broker,
        redis_embedded=redis_url is None,
        database_url=database_url or f"sqlite:///{state_dir / 'tiergate.db'}",
        keyring=keyring,
        proxy=ProxyConfig(
            ladders=ladders,
            listen_host=proxy_listen.host,
            listen_port=proxy_listen.port,
            admin_host=admin_listen.host,
            admin_port=admin_listen.port,
            processes=shape.proxy.processes,
            redis_url=settled_redis,
            broker_url=settled_broker,
            capture_key_id=keyring.current,
            capture_keys=keyring.keys,
            timeouts=Timeouts(
                connect=shape.proxy.timeouts.connect,
                first_byte=shape.proxy.timeouts.first_byte,
                idle=shape.proxy.timeouts.idle,
                total=shape.proxy.timeouts.total,
            ),
            mirroring=Mirroring(
                sample=mirror.sample,
                salt=sampling_salt(keyring),
                ttl_seconds=max(1, round(capture.ttl)),
                max_body=capture.max_body,
                max_bytes=capture.max_bytes,
                buffer_bytes=mirror.buffer,
                conversation_header=mirror.conversation_header.lower(),
                batch=mirror.batch,
            ),
            max_request=shape.proxy.max_request,
            forward_paths=(*default.forward_paths, *shape.proxy.forward_paths),
            drain_seconds=shape.proxy.drain,
            state_dir=state_dir,
        ),
        api=ApiListen(
            host=api_listen.host,
            port=api_listen.port,
            allowed_hosts=(*ApiListen().allowed_hosts, *shape.api.allowed_hosts),
            allowed_origins=tuple(shape.api.allowed_origins),
        ),
        shadow=ShadowPlan(
            on_serving=shape.shadow.on_serving,
            timeout_seconds=shape.shadow.timeout,
            concurrency=shape.shadow.concurrency,
            tokens_per_day=shape.shadow.tokens_per_day,
            retries=shape.shadow.retries,
        ),
        probe=probe,
        probes={name: _probe(model.probe, probe) for name, model in shape.models.items()},
        slo={
            name: Slo(ttft_seconds=model.slo.ttft, tpot_seconds=model.slo.tpot)
            for name, model in shape.models.items()
            if model.slo is not None
        },
        money=Money(
            currency=shape.money.currency,
            retry=shape.money.failure.retry,
            escalate=shape.money.failure.escalate,
            escalate_share=shape.money.failure.escalate_share,
            operations_per_request=shape.money.operations_per_request,
        ),
    )


def _ladder(
    shape: TiergateShape, name: str, beside: Path, environ: Mapping[str, str], findings: Findings
) -> Ladder | None:
    tiers: list[Tier] = []
    rungs: dict[str, int] = {}
    for rung, tier in enumerate(shape.models[name].ladder):
        place: Place = ("models", name, "ladder", rung)
        if tier.tier in rungs:
            findings.add(
                (*place, "tier"), f"{tier.tier!r} already names rung {rungs[tier.tier]} of this ladder"
            )
            continue
        rungs[tier.tier] = rung
        tiers.append(_tier(name, tier, place, beside, environ, findings))
    return Ladder(model=name, tiers=tuple(tiers)) if tiers else None


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
            built.append(_backend(backend, here, beside, environ, findings))
        pools[pool] = tuple(built)
    return Tier(
        name=tier.tier,
        backends=pools["backends"],
        shadow=pools["shadow"],
        model=tier.model or model,
        price_per_hour=tier.price_per_hour,
        declares=tier.declares,
    )


def _backend(
    backend: BackendShape, place: Place, beside: Path, environ: Mapping[str, str], findings: Findings
) -> Backend:
    api_key = None
    if backend.api_key_file is not None and backend.api_key_env is not None:
        findings.add(place, "give api_key_file or api_key_env, not both")
    elif backend.api_key_file is not None:
        try:
            api_key = read_secret(beside / backend.api_key_file)
        except SecretUnreadable as error:
            findings.add((*place, "api_key_file"), str(error))
    elif backend.api_key_env is not None:
        api_key = environ.get(backend.api_key_env)
        if not api_key:
            findings.add((*place, "api_key_env"), f"the environment has no {backend.api_key_env}")
    return Backend(url=backend.url, api_key=api_key, max_concurrency=backend.max_concurrency)


def _policy(shape: PolicyShape, findings: Findings) -> Policy | None:
    known = [evaluator.name for evaluator in getattr(evaluators, "ALL", ())]
    known = known or ["structured_output", "long_context_recall", "refusal"]
    named = shape.criteria or dict.fromkeys(known)
    criteria: list[Criterion] = []
    for name, criterion in named.items():
        place: Place = ("policy", "criteria", name)
        if name not in known:
            findings.add(place, f"no evaluator has this name; did you mean `{nearest(name, known)}`?")
            continue
        default = "equivalent" if name in EQUIVALENT_BY_DEFAULT else "non_inferior"
        given = criterion.model_dump(exclude_none=True) if criterion is not None else {}
        try:
            criteria.append(
                Criterion(
                    evaluator=name,
                    hypothesis=Hypothesis(given.get("hypothesis", default)),
                    margin=given.get("margin", shape.margin),
                    min_pairs=given.get("min_pairs", shape.min_pairs),
                    baseline_failure_cap=given.get("baseline_failure_cap", 0.5),
                )
            )
        except ValueError as error:
            findings.add(place, str(error))
    gates = {Gate(name): Asked(asked) for name, asked in shape.gates.model_dump().items()}
    if not criteria:
        return None
    try:
        return Policy(
            criteria=tuple(criteria),
            alpha_accept=shape.alpha.accept,
            alpha_harm=shape.alpha.harm,
            alpha_warn=shape.alpha.warn,
            gates={Gate.QUALITY: Asked.REQUIRED, **gates},
            on_harm=OnHarm(shape.on_harm),
            max_unscored=shape.max_unscored,
        )
    except ValueError as error:
        findings.add(("policy",), str(error))
        return None


def _probe(shape: ProbeShape, otherwise: ProbePlan) -> ProbePlan:
    return ProbePlan(
        per_capture=otherwise.per_capture if shape.per_capture is None else shape.per_capture,
        min_context_chars=(
            otherwise.min_context_chars if shape.min_context_chars is None else shape.min_context_chars
        ),
        max_tokens=otherwise.max_tokens if shape.max_tokens is None else shape.max_tokens,
        extra_body=otherwise.extra_body if shape.extra_body is None else shape.extra_body,
    )


def _state_dir(shape: TiergateShape, beside: Path, environ: Mapping[str, str]) -> Path:
    if given := environ.get("TIERGATE_STATE_DIR"):
        return Path(given).expanduser().absolute()
    return (beside / Path(shape.store.state_dir).expanduser()).absolute()


def _url(
    environ: Mapping[str, str], name: str, written: str | None, schemes: tuple[str, ...], findings: Findings
) -> str | None:
    try:
        given = secret_from(environ, name)
    except SecretUnreadable as error:
        findings.add((), f"{name}_FILE: {error}")
        return None
    if given is None:
        return written
    if urlsplit(given).scheme.partition("+")[0] not in schemes:
        # The value is not repeated: it may hold a password.
        findings.add((), f"{name} must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}")
        return None
    return given


def _listen(environ: Mapping[str, str], name: str, written: units.Listen, findings: Findings) -> units.Listen:
    given = environ.get(name)
    if not given:
        return written
    try:
        return units.listen(given)
    except ValueError as error:
        findings.add((), f"{name}: {error}")
        return written


def _keyring(
    shape: TiergateShape,
    beside: Path,
    state_dir: Path,
    redis_url: str | None,
    environ: Mapping[str, str],
    findings: Findings,
) -> Keyring | None:
    given = shape.mirror.capture.key_file
    place: Place = ("mirror", "capture", "key_file") if given else ()
    if from_environment := environ.get("TIERGATE_CAPTURE_KEY_FILE"):
        key_file, place = Path(from_environment).expanduser(), ()
    elif given is not None:
        key_file = beside / Path(given).expanduser()
    else:
        key_file = state_dir / "capture.key"
        if redis_url is not None and urlsplit(redis_url).hostname not in LOOPBACK and not key_file.exists():
            findings.add(
                ("mirror", "capture"),
                f"key_file is needed where Redis is on another machine: every proxy and worker must have the"
                f" same key; {MAKE_A_KEY} and name it here or in TIERGATE_CAPTURE_KEY_FILE",
            )
            return None
        try:
            make_key(key_file)
        except OSError as error:
            findings.add(
                (), f"cannot keep a capture key in {state_dir}: {error.strerror}; set TIERGATE_STATE_DIR"
            )
            return None
    try:
        return read_keyring(key_file)
    except SecretUnreadable as error:
        findings.add(place, f"capture key: {error}")
        return None
