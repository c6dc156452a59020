"""From the checked shape of a file and the environment to `Settings`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from evaluators import ASKED_FOR
from evaluators.score import Evaluator
from service.fleet import Slo
from service.proxy.config import ClientLimits, Mirroring, ProxyConfig, Timeouts
from service.settings import places
from service.settings.adjudicating import build_adjudication
from service.settings.corpus_shape import build_corpus
from service.settings.forms import database_url_of, redis_url_of
from service.settings.ladders import build_ladder, build_probe, build_rule, refuse_own_address
from service.settings.limits import refuse_limits_that_cannot_hold
from service.settings.money_shape import build_money
from service.settings.nearest import nearest
from service.settings.oidc import build_issuers
from service.settings.pipelines import build_pipelines
from service.settings.policies import build_policy
from service.settings.problems import Findings
from service.settings.promotion import build_promotion
from service.settings.secrets import sampling_salt
from service.settings.shadow_job import build_shadow_job
from service.settings.shape import TiergateShape
from service.settings.units import listen_or_socket
from service.settings.values import ApiListen, ProbePlan, Settings, ShadowPlan
from service.settings.variables import complaints_of
from service.settings.webhooks import build_webhooks

NO_REDIS = "redis://127.0.0.1:6379/0"
"""Taken when nothing names a Redis and no embedded one has run; the proxy serves without it."""


def build(
    shape: TiergateShape,
    *,
    path: Path,
    environ: Mapping[str, str],
    findings: Findings,
    known: Sequence[str],
    judging: Sequence[Evaluator],
    make_key: bool = True,
) -> Settings | None:
    """The settings, or None when `findings` says why there are none."""
    beside = path.parent
    ladders = {
        name: ladder
        for name, model in shape.models.items()
        if (ladder := build_ladder(name, model, beside, environ, findings)) is not None
    }
    money = build_money(shape.money)
    policy = build_policy(shape.policy, known, findings, failure=money.failure)
    for complaint in complaints_of(environ):
        findings.add((), complaint)
    state_dir = places.state_dir(shape, beside, environ)
    redis_url = places.url(environ, "TIERGATE_REDIS_URL", shape.store.redis, redis_url_of, findings)
    broker_url = places.url(environ, "TIERGATE_BROKER_URL", shape.store.broker, redis_url_of, findings)
    database_url = places.url(
        environ, "TIERGATE_DATABASE_URL", shape.store.database, database_url_of, findings
    )
    proxy_listen = places.listen(
        environ, "TIERGATE_PROXY_LISTEN", shape.proxy.listen, findings, read=listen_or_socket
    )
    listener_tls = places.listener_tls(shape.proxy.tls, beside, findings)
    admin_listen = places.listen(environ, "TIERGATE_ADMIN_LISTEN", shape.proxy.admin, findings)
    api_listen = places.listen(environ, "TIERGATE_API_LISTEN", shape.api.listen, findings)
    bound = [str(each) for each in (proxy_listen, admin_listen, api_listen) if each.port]
    if len(set(bound)) < len(bound):
        findings.add(("proxy",), "proxy.listen, proxy.admin and api.listen must be three different addresses")
    refuse_own_address(shape.models, proxy_listen, findings)
    adjudication = build_adjudication(
        shape.adjudication, ladders, judging, proxy=proxy_listen, beside=beside, findings=findings
    )
    corpus = build_corpus(shape.corpus, findings)
    routes_from = places.routes_from(shape.proxy.routes, beside, findings)
    pipelines = build_pipelines(shape.pipelines, ladders, beside=beside, findings=findings)
    issuers = build_issuers(
        shape.api.oidc, ladders, beside=beside, public_url=shape.api.public_url, findings=findings
    )
    attest_key = places.attest_key(shape.api, beside, findings)
    webhooks = build_webhooks(shape.webhooks, shape.models, beside=beside, findings=findings)
    refuse_limits_that_cannot_hold(shape, findings)
    if shape.proxy.default_model is not None and shape.proxy.default_model not in shape.models:
        known = nearest(shape.proxy.default_model, shape.models)
        findings.add(("proxy", "default_model"), f"no model has this name; did you mean `{known}`?")
    if findings.entries or policy is None:
        return None
    asked = {criterion.evaluator for criterion in policy.criteria}
    keyring = places.keyring(shape, beside, state_dir, redis_url, environ, findings, make=make_key)
    if keyring is None:
        return None
    mirror, capture = shape.mirror, shape.mirror.capture
    settled_redis = redis_url or places.embedded_redis(state_dir) or NO_REDIS
    settled_broker = broker_url or settled_redis
    default = ProxyConfig(ladders=ladders)
    probe = build_probe(shape.probe, ProbePlan())
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
            listen_path=proxy_listen.path,
            listen_mode=shape.proxy.socket_mode,
            tls=listener_tls,
            admin_host=admin_listen.host,
            admin_port=admin_listen.port,
            admin_hosts=tuple(shape.proxy.admin_hosts),
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
            clients=ClientLimits(
                head=shape.proxy.clients.head,
                body=shape.proxy.clients.body,
                keep_alive=shape.proxy.clients.keep_alive,
                stalled=shape.proxy.clients.stalled,
                max_head=shape.proxy.clients.max_head,
                buffered=shape.proxy.clients.buffered,
                connections=shape.proxy.clients.connections,
            ),
            default_model=shape.proxy.default_model,
            half_close=shape.proxy.half_close,
            probe_seconds=shape.proxy.health_every,
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
            access_log=places.access_log(shape.proxy.access_log, beside),
            routes_from=routes_from,
            state_dir=state_dir,
        ),
        api=ApiListen(
            host=api_listen.host,
            port=api_listen.port,
            allowed_hosts=(
                *ApiListen().allowed_hosts,
                *shape.api.allowed_hosts,
                *_host_of(shape.api.public_url),
            ),
            allowed_origins=(*shape.api.allowed_origins, *filter(None, [shape.api.public_url])),
            public_url=shape.api.public_url,
            issuers=issuers,
            attest_key=attest_key,
        ),
        shadow=ShadowPlan(
            on_serving=shape.shadow.on_serving,
            timeout_seconds=shape.shadow.timeout,
            concurrency=shape.shadow.concurrency,
            tokens_per_day=shape.shadow.tokens_per_day,
            retries=shape.shadow.retries,
            repeats=shape.shadow.repeats,
        ),
        shadow_job=build_shadow_job(shape.shadow_job, proxy_admin=admin_listen.url()),
        corpus=corpus,
        promotion=build_promotion(shape.policy.promotion),
        evaluators=tuple(each for each in judging if each.name in asked or each not in ASKED_FOR),
        adjudication=adjudication,
        pipelines=pipelines,
        webhooks=webhooks,
        probe=probe,
        probes={name: build_probe(model.probe, probe) for name, model in shape.models.items()},
        answer_rules={name: build_rule(model.structured_output) for name, model in shape.models.items()},
        slo={
            name: Slo(ttft_seconds=model.slo.ttft, tpot_seconds=model.slo.tpot)
            for name, model in shape.models.items()
            if model.slo is not None
        },
        money=money,
    )


def _host_of(public_url: str | None) -> tuple[str, ...]:
    """The name that browsers call the API by, where somebody said."""
    host = None if public_url is None else urlsplit(public_url).hostname
    return (host,) if host else ()
