from __future__ import annotations

import pytest

from service.decision.ramp import AT_ONCE, OnSloLoss, Promotion
from service.settings import SettingsError
from tests.settings.test_load import Loaded

MODEL = """
models:
  m:
    ladder:
      - {tier: bf16, backends: [http://127.0.0.1:8000]}
      - {tier: w8a8, backends: [http://127.0.0.1:8001]}
policy:
  promotion: """


def test_without_it_an_approved_tier_serves_everybody_at_once(loaded: Loaded) -> None:
    assert loaded(MODEL).promotion == AT_ONCE


def test_every_key_arrives(loaded: Loaded) -> None:
    text = f"{MODEL}{{ramp: [5%, 25%, 100%], hold: 30m, on_slo_loss: roll_back, measured_within: 3d}}"
    assert loaded(text).promotion == Promotion(
        ramp=(5, 25, 100),
        hold_seconds=1800.0,
        on_slo_loss=OnSloLoss.ROLL_BACK,
        measured_seconds=3 * 86_400.0,
    )


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("{ramp: [5%, 25%]}", "the last step of a ramp is 100 %, got 5 %, 25 %"),
        ("{ramp: []}", "the last step of a ramp is 100 %, got none"),
        ("{ramp: [25%, 5%, 100%]}", "the steps of a ramp rise"),
        ("{ramp: [0%, 100%]}", "the steps of a ramp rise from at least 1 %"),
        ("{ramp: [2.5%, 100%]}", "steps are whole per cent"),
        ("{ramp: [5, 100%]}", "a share"),
        ("{hold: soon}", "a duration"),
        ("{on_slo_loss: roll}", "roll_back"),
        ("{step: 5%}", "policy.promotion.step"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(written: str, complaint: str, loaded: Loaded) -> None:
    with pytest.raises(SettingsError) as refused:
        loaded(f"{MODEL}{written}")
    told = str(refused.value)
    assert complaint in told
    assert "policy.promotion" in told
