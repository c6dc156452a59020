"""The drill's own configuration: the user's policy, and nothing of the user's stores."""

from __future__ import annotations

from pathlib import Path

from service.decision.policy import Asked, Gate, Units
from service.drill.arms import stages
from service.drill.configuration import configuration
from service.drill.defects import Defect
from service.settings import Settings, load
from tests.acceptance.conftest import MODEL
from tests.drill.conftest import Write


def derived(settings: Settings, directory: Path) -> Settings:
    directory.mkdir()
    staged = stages(tuple(Defect))
    arms = [arm for stage in staged.values() for arm in stage.arms]
    text = configuration(
        settings,
        staged,
        {arm.name: directory / f"{arm.name}.sock" for arm in arms},
        probe=settings.probe_of(MODEL),
        directory=directory,
        admin="127.0.0.1:0",
    )
    (directory / "tiergate.yaml").write_text(text, encoding="utf-8")
    return load(directory / "tiergate.yaml", {})


def test_criteria_margins_and_error_rates_are_the_users(write: Write, tmp_path: Path) -> None:
    policy = {
        "margin": "3pp",
        "min_pairs": 50,
        "alpha": {"harm": "2%", "warn": "1%"},
        "criteria": {
            "structured_output": {"margin": "2pp"},
            "refusal": {"hypothesis": "non_inferior"},
            "long_context_recall": {"role": "muted"},
        },
        "units": "closed_conversations",
        "longest": "1d",
    }
    settings = load(write(policy=policy), {})
    own = derived(settings, tmp_path / "own")
    assert own.policy.criteria == settings.policy.criteria
    for name in ("alpha_accept", "alpha_harm", "alpha_warn", "max_unscored"):
        assert getattr(own.policy, name) == getattr(settings.policy, name)
    assert (own.policy.units, own.policy.longest_seconds) == (Units.FIRST_SAMPLED, None)
    assert own.probe_of("drill-damaged") == settings.probe_of(MODEL)


def test_only_quality_and_control_are_asked(write: Write, tmp_path: Path) -> None:
    own = derived(load(write(), {}), tmp_path / "own")
    asked = {gate for gate, state in own.policy.gates.items() if state is Asked.REQUIRED}
    assert asked == {Gate.QUALITY, Gate.CONTROL}
    off = derived(load(write(policy={"gates": {"control": "off"}}), {}), tmp_path / "off")
    assert off.policy.gates[Gate.CONTROL] is Asked.OFF, "the user's word"


def test_no_store_and_no_backend_of_the_user_is_named(write: Write, tmp_path: Path) -> None:
    store = {"redis": "redis://prod.example:6379/0", "database": "postgresql://prod.example/tiergate"}
    key = tmp_path / "capture.key"
    key.write_text("ab" * 32 + "\n")
    key.chmod(0o600)
    settings = load(write(store=store, mirror={"capture": {"key_file": str(key)}}), {})
    own = derived(settings, tmp_path / "own")
    assert "prod.example" not in (tmp_path / "own" / "tiergate.yaml").read_text()
    assert own.redis_embedded
    assert own.database_url == f"sqlite:///{tmp_path / 'own' / 'state' / 'tiergate.db'}"
    assert own.keyring != settings.keyring
    tiers = [tier for ladder in own.ladders.values() for tier in ladder.tiers]
    backends = [backend for tier in tiers for backend in (*tier.backends, *tier.shadow)]
    assert all(backend.socket is not None for backend in backends)
    assert own.proxy.listen_path is not None
