from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.engines.facts import EngineFacts
from service.fleet import KvGuard
from service.launch.ask import Answered, Unusable
from service.launch.check import (
    Answers,
    Level,
    Line,
    all_backends,
    backend_lines,
    dead_baselines,
    guarded_backends,
    setup_lines,
)
from service.settings import Settings, load
from tests.authority import Authority

VLLM = EngineFacts(engine="vllm", version="0.32.0", kv_dtype="auto", kv_tokens=46592)
Configured = Callable[..., Settings]


@pytest.fixture
def configured(tmp_path: Path) -> Configured:
    def configure(**changes: Any) -> Settings:
        tiers = [
            {"tier": "bf16", "backends": ["http://a:1"], **changes.pop("baseline", {})},
            {"tier": "fp8kv", "backends": ["http://b:1"], **changes.pop("candidate", {})},
        ]
        content = {"models": {"qwen": {"ladder": tiers[: changes.pop("rungs", 2)]}}, **changes}
        path = tmp_path / "tiergate.yaml"
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return load(path, {})

    return configure


def answering(settings: Settings, **by_host: Answered | Unusable) -> Answers:
    well = Answered(models={"qwen": None}, engine=VLLM)
    return {backend: by_host.get(backend.url[7:8], well) for backend in all_backends(settings)}


def told(lines: list[Line], level: Level) -> list[str]:
    return [f"{line.subject}: {line.text}" for line in lines if line.level is level]


SCHEDULED = {"shadow_job": {"cron": "0 3 * * 1"}}


def test_a_scheduled_job_whose_load_would_reach_clients_is_refused_and_the_backend_named(
    configured: Configured,
) -> None:
    own = {"baseline": {"shadow": ["http://spare:1"]}}
    assert told(setup_lines(configured(**own, **SCHEDULED)), Level.FAIL) == []
    [refused] = told(setup_lines(configured(**SCHEDULED)), Level.FAIL)
    assert refused.startswith("qwen/bf16: shadow_job.cron is set, but its load would go to http://a:1")
    shared = {**own, "candidate": {"shadow": ["http://A.:1"]}}
    [refused] = told(setup_lines(configured(**shared, **SCHEDULED)), Level.FAIL)
    assert refused.startswith("qwen/fp8kv: ")
    assert told(setup_lines(configured(**shared)), Level.FAIL) == [], "by hand one may own it"


def test_a_scheduled_job_of_tiers_that_share_a_backend_cannot_load_them_together(
    configured: Configured,
) -> None:
    together = {"shadow_job": {"cron": "0 3 * * 1", "arms": "together"}}
    own = {"baseline": {"shadow": ["http://spare:1"]}}
    assert told(setup_lines(configured(**own, **together)), Level.FAIL) == []
    shared = {**own, "candidate": {"shadow": ["http://SPARE:1"]}}
    [refused] = told(setup_lines(configured(**shared, **together)), Level.FAIL)
    assert refused.startswith("qwen: shadow_job.arms is together, but http://spare:1 is loaded for bf16 and ")
    assert told(setup_lines(configured(**shared, **SCHEDULED)), Level.FAIL) == [], "they take turns"


def test_a_scheduled_job_without_a_service_level_is_warned_of(configured: Configured) -> None:
    warned = told(setup_lines(configured(baseline={"shadow": ["http://spare:1"]}, **SCHEDULED)), Level.WARN)
    assert any("without an `slo` no job of this model can begin" in each for each in warned)


def test_every_backend_has_one_line_with_engine_version_and_kv_cache(configured: Configured) -> None:
    settings = configured(baseline={"shadow": ["http://c:1"]})
    lines = backend_lines(settings, answering(settings))
    assert told(lines, Level.OK) == [
        f"qwen/{tier} http://{host}:1: serves qwen, vllm 0.32.0, KV cache auto (46592 tokens)"
        for tier, host in (("bf16", "a"), ("bf16", "c"), ("fp8kv", "b"))
    ]
    assert len(lines) == 3
    assert str(lines[0]).startswith("ok    qwen/bf16 http://a:1: ")


def test_a_guard_of_a_cache_that_is_not_told_is_warned_of(configured: Configured) -> None:
    settings = configured()
    model = settings.ladders["qwen"]
    guarded = replace(model, limits=replace(model.limits, kv_guard=KvGuard(above=0.9, below=0.8)))
    settings = replace(settings, ladders={"qwen": guarded})
    told_of = {
        "a": Answered(models={"qwen": None}, engine=VLLM, tells_kv=True),
        "b": Answered(models={"qwen": None}, engine=VLLM, tells_kv=False),
    }
    (line,) = told(backend_lines(settings, answering(settings, **told_of)), Level.WARN)
    assert line.startswith("qwen/fp8kv http://b:1: limits.kv_guard is open here")
    assert {each.url for each in guarded_backends(settings)} == {"http://a:1", "http://b:1"}
    unguarded = configured()
    assert guarded_backends(unguarded) == []
    assert told(backend_lines(unguarded, answering(unguarded, **told_of)), Level.WARN) == []


def test_a_dead_backend_fails_with_its_reason(configured: Configured) -> None:
    settings = configured()
    lines = backend_lines(settings, answering(settings, b=Unusable("cannot be reached: start it")))
    assert told(lines, Level.FAIL) == ["qwen/fp8kv http://b:1: cannot be reached: start it"]


def test_a_backend_that_serves_another_model_fails_with_both_names(configured: Configured) -> None:
    settings = configured(candidate={"model": "qwen-fp8"})
    (failure,) = told(backend_lines(settings, answering(settings)), Level.FAIL)
    assert "serves qwen, not 'qwen-fp8'" in failure
    assert "set the tier's `model`" in failure


@pytest.mark.parametrize(
    ("declared", "told_dtype", "level"),
    [
        ("fp8", "fp8_e4m3", Level.OK),
        ("fp8", "auto", Level.FAIL),
        ("auto", "fp8_e4m3", Level.OK),
        ("fp8", None, Level.OK),
    ],
)
def test_a_declared_kv_cache_is_compared_where_the_engine_tells(
    declared: str, told_dtype: str | None, level: Level, configured: Configured
) -> None:
    settings = configured(candidate={"declares": {"kv_cache": declared}})
    engine = EngineFacts(engine="vllm", version="0.32.0", kv_dtype=told_dtype)
    lines = backend_lines(settings, answering(settings, b=Answered(models={"qwen": None}, engine=engine)))
    line = next(line for line in lines if "fp8kv" in line.subject)
    assert line.level is level
    if level is Level.FAIL:
        assert "declares kv_cache 'fp8', but" in line.text
        assert "--kv-cache-dtype fp8" in line.text
    if told_dtype is None:
        assert "not told by the engine" in line.text


def test_a_declared_engine_version_is_compared(configured: Configured) -> None:
    settings = configured(candidate={"declares": {"engine": "vllm 0.31"}})
    (failure,) = told(backend_lines(settings, answering(settings)), Level.FAIL)
    assert "declares engine 'vllm 0.31', but is vllm 0.32.0" in failure


def test_replicas_that_differ_and_an_engine_other_than_the_baselines_are_warned_of(
    configured: Configured,
) -> None:
    settings = configured(candidate={"backends": ["http://b:1", "http://c:1"]})
    older = Answered(
        models={"qwen": None}, engine=EngineFacts(engine="vllm", version="0.31.0", kv_dtype="auto")
    )
    warnings = told(backend_lines(settings, answering(settings, b=older)), Level.WARN)
    assert warnings == [
        "qwen/fp8kv: its backends disagree, and evidence would mix them:"
        " engine: http://b:1 vllm 0.31.0, http://c:1 vllm 0.32.0",
        "qwen/fp8kv: engine: baseline vllm 0.32.0, candidate vllm 0.31.0:"
        " a difference may come from that and not from the precision",
    ]


def test_whatever_differs_besides_the_precision_is_warned_of(configured: Configured) -> None:
    settings = configured()
    other = replace(VLLM, prefix_caching=False, kv_dtype="fp8")
    told_by = {
        "a": Answered(models={"qwen": 32768}, engine=replace(VLLM, prefix_caching=True)),
        "b": Answered(models={"qwen": 8192}, engine=other),
    }
    warnings = told(backend_lines(settings, answering(settings, **told_by)), Level.WARN)
    assert [each.partition(": a difference")[0] for each in warnings] == [
        "qwen/fp8kv: max_model_len: baseline 32768, candidate 8192",
        "qwen/fp8kv: prefix caching: baseline on, candidate off",
    ]


def test_a_kv_cache_that_is_smaller_than_declared_is_warned_of_with_both_sizes(
    configured: Configured,
) -> None:
    settings = configured(candidate={"declares": {"kv_cache": "fp8"}})
    like = replace(VLLM, memory_utilisation=0.92)
    told_by = {
        "a": Answered(models={"qwen": None}, engine=like),
        "b": Answered(models={"qwen": None}, engine=replace(like, kv_dtype="fp8_e4m3")),
    }
    (warning,) = told(backend_lines(settings, answering(settings, **told_by)), Level.WARN)
    assert "holds 46592 tokens and the baseline's 46592" in warning


def test_no_capacity_for_the_control_is_warned_of_with_both_ways_out(configured: Configured) -> None:
    (warning, *_) = told(setup_lines(configured()), Level.WARN)
    assert "no_control_capacity" in warning
    assert "`shadow` backend" in warning
    assert "shadow.on_serving" in warning


@pytest.mark.parametrize(
    "changes", [{"baseline": {"shadow": ["http://c:1"]}}, {"shadow": {"on_serving": True}}]
)
def test_either_way_out_ends_that_warning(changes: dict[str, Any], configured: Configured) -> None:
    assert not any(
        "no_control_capacity" in each for each in told(setup_lines(configured(**changes)), Level.WARN)
    )


def test_gates_that_only_load_runs_can_pass_are_warned_of_until_they_are_off(configured: Configured) -> None:
    assert any("(missing_slo, missing_money)" in each for each in told(setup_lines(configured()), Level.WARN))
    off = configured(policy={"gates": {"slo": "off", "money": "off"}}, shadow={"on_serving": True})
    assert setup_lines(off) == []


def test_replays_to_a_backend_that_serves_clients_are_warned_of(configured: Configured) -> None:
    for changes in ({"candidate": {"backends": ["http://a:1"]}}, {"baseline": {"shadow": ["http://a:1"]}}):
        warnings = told(setup_lines(configured(**changes)), Level.WARN)
        assert any("replays go to http://a:1, which answers clients" in each for each in warnings), changes


def test_a_ladder_of_one_rung_has_nothing_to_compare(configured: Configured) -> None:
    assert any("nothing to compare" in each for each in told(setup_lines(configured(rungs=1)), Level.WARN))


def test_a_model_is_dead_when_every_backend_of_its_baseline_is(configured: Configured) -> None:
    settings = configured(baseline={"backends": ["http://a:1", "http://c:1"]})
    dead = Unusable("gone")
    assert dead_baselines(settings, answering(settings, a=dead)) == []
    assert dead_baselines(settings, answering(settings, b=dead)) == []
    assert dead_baselines(settings, answering(settings, a=dead, c=dead)) == ["qwen"]


def test_a_backend_that_nobody_verifies_is_warned_of_for_as_long_as_it_is_there(
    configured: Configured,
) -> None:
    unverified = {"url": "https://a:1", "insecure_skip_verify": True}
    settings = configured(
        baseline={"backends": [unverified], "shadow": [unverified | {"url": "https://c:1"}]}
    )
    warned = [line for line in told(setup_lines(settings), Level.WARN) if "insecure_skip_verify" in line]
    assert [line.partition(": ")[0] for line in warned] == ["qwen/bf16 https://a:1", "qwen/bf16 https://c:1"]
    assert "ca_file" in warned[0]


@pytest.mark.parametrize(
    ("days", "said"),
    [(100.0, None), (13.0, "expires in 13 days"), (-1.0, "has expired: clients will refuse")],
)
def test_a_certificate_of_ours_that_expires_soon_is_warned_of(
    days: float, said: str | None, configured: Configured, tmp_path: Path
) -> None:
    pair = Authority(tmp_path / "tls").issue("proxy", days=days)
    tls = {"certificate_file": str(pair.certificate), "key_file": str(pair.key)}
    warned = told(setup_lines(configured(proxy={"tls": tls})), Level.WARN)
    about = [line for line in warned if line.startswith("proxy.tls")]
    assert len(about) == (said is not None)
    assert said is None or said in about[0]
