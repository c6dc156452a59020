"""The demo's tiergate.yaml, read back by the settings that everything else reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.decision.policy import Asked, Gate, Hypothesis
from service.demo.configuration import configuration, write_configuration
from service.demo.models import ModelFile
from service.demo.plan import CLIENT_MODEL, FULL, QUICK, DemoPlan
from service.settings import Settings, load

LISTEN = {"proxy": "127.0.0.1:8080", "admin": "127.0.0.1:8082", "api": "127.0.0.1:8081"}


def settings_of(plan: DemoPlan, directory: Path) -> Settings:
    models = {
        tier.weights: ModelFile(path=Path("m.gguf"), sha256="a" * 64, tensors="1 F32") for tier in plan.ladder
    }
    ports = {tier.name: 9000 + rung for rung, tier in enumerate(plan.ladder)}
    return load(write_configuration(directory, configuration(plan, models, ports, LISTEN)), {})


@pytest.mark.parametrize("plan", [QUICK, FULL], ids=["quick", "full"])
def test_every_tier_has_its_own_server_and_declares_what_it_is(plan: DemoPlan, tmp_path: Path) -> None:
    ladder = settings_of(plan, tmp_path).ladders[CLIENT_MODEL]
    assert [tier.name for tier in ladder.tiers] == [tier.name for tier in plan.ladder]
    assert len({tier.backends[0].url for tier in ladder.tiers}) == len(plan.ladder)
    for tier in ladder.tiers:
        assert tier.declares["artifact"] == f"sha256:{'a' * 64}"
        assert tier.declares["engine"].startswith("llama.cpp")


def test_everything_is_mirrored_and_the_control_runs_on_the_serving_baseline(tmp_path: Path) -> None:
    settings = settings_of(QUICK, tmp_path)
    assert settings.proxy.mirroring.sample == 1.0
    assert settings.shadow.on_serving
    assert settings.probe_of(CLIENT_MODEL).per_capture == QUICK.probes
    assert settings.redis_embedded
    assert settings.state_dir == tmp_path / "state"


def test_the_policy_is_wide_and_says_which_gates_it_does_not_ask_for(tmp_path: Path) -> None:
    policy = settings_of(QUICK, tmp_path).policy
    assert {(each.margin, each.min_pairs) for each in policy.criteria} == {(0.2, 20)}
    assert {each.evaluator: each.hypothesis for each in policy.decisive} == {
        "structured_output": Hypothesis.NON_INFERIOR,
        "long_context_recall": Hypothesis.NON_INFERIOR,
        "refusal": Hypothesis.EQUIVALENT,
    }
    assert {gate for gate, asked in policy.gates.items() if asked is Asked.OFF} == {Gate.SLO, Gate.MONEY}


def test_each_tier_has_an_epoch_of_its_own(tmp_path: Path) -> None:
    settings = settings_of(FULL, tmp_path)
    epochs = {settings.epoch_of(CLIENT_MODEL, tier.name) for tier in FULL.ladder[1:]}
    assert len(epochs) == len(FULL.ladder) - 1
