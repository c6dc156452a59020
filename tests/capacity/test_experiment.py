"""One variable at a time: two manifests, and their figures side by side."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.capacity.experiment import (
    Limits,
    MoreThanOneVariable,
    Side,
    Variable,
    Verdict,
    compared,
)

BASE: dict[str, Any] = {
    "model": "qwen3-32b",
    "seed": 7,
    "slo": {"ttft_seconds": 1.5, "tpot_seconds": 0.08},
    "plan": {"rate": 4.0, "arrivals": "poisson", "window_seconds": 600.0},
    "corpus": {"digest": "6b1f", "strata": {"short": 10}},
    "tiers": [
        {
            "tier": "a",
            "model": "Qwen3-32B",
            "declares": {"weights": "bf16", "hardware": "1x H200"},
            "hardware": "1x H200",
            "price_per_hour": 60.0,
            "backends": ["http://a:8000"],
            "engines": {"http://a:8000": {"engine": "vllm", "version": "0.32.0", "weights": "none"}},
        }
    ],
}
CHANGES: dict[Variable, tuple[tuple[Any, ...], Any]] = {
    Variable.HARDWARE: (("tiers", 0, "hardware"), "2x H200"),
    Variable.MODEL: (("model",), "qwen3-8b"),
    Variable.PRECISION: (("tiers", 0, "declares", "weights"), "int8"),
    Variable.LENGTH_MIX: (("corpus", "digest"), "0000"),
    Variable.ARRIVAL_RATE: (("plan", "rate"), 8.0),
    Variable.SLO: (("slo", "tpot_seconds"), 0.05),
}


def changed(*variables: Variable, base: dict[str, Any] = BASE) -> dict[str, Any]:
    manifest = deepcopy(base)
    for variable in variables:
        (*path, last), value = CHANGES[variable]
        place: Any = manifest
        for step in path:
            place = place[step]
        place[last] = value
    return manifest


def test_equal_manifests_have_no_variable() -> None:
    found = compared(BASE, deepcopy(BASE), tier="a")
    assert (found.changed, found.others, found.label) == ((), (), "none of the six variables changed")


@pytest.mark.parametrize("variable", Variable)
def test_each_variable_is_recognised(variable: Variable) -> None:
    found = compared(BASE, changed(variable), tier="a")
    assert [each.variable for each in found.changed] == [variable]
    assert found.label == f"one variable: {variable}"
    assert found.others == ()


@given(st.sets(st.sampled_from(Variable), min_size=2))
def test_more_than_one_is_refused_unless_forced_and_then_labelled(variables: set[Variable]) -> None:
    other = changed(*variables)
    with pytest.raises(MoreThanOneVariable) as refused:
        compared(BASE, other, tier="a")
    assert {each.variable for each in refused.value.changed} == variables
    found = compared(BASE, other, tier="a", force=True)
    assert found.forced
    assert found.label.startswith(f"FORCED: {len(variables)} variables changed")


def test_force_labels_nothing_that_needs_none() -> None:
    assert not compared(BASE, changed(Variable.SLO), tier="a", force=True).forced


def test_a_flag_of_the_engine_is_none_of_the_six_and_is_listed() -> None:
    other = deepcopy(BASE)
    other["tiers"][0]["engines"]["http://a:8000"]["max_model_len"] = 8192
    other["seed"] = 8
    found = compared(BASE, other, tier="a")
    assert found.changed == ()
    assert found.others == ("seed: was 7, is 8", "tier.engines[0].max_model_len: was -, is 8192")


def test_a_checkpoint_of_fewer_bits_with_a_name_of_its_own_is_one_variable() -> None:
    other = changed(Variable.PRECISION)
    other["tiers"][0]["model"] = "Qwen3-32B-FP8"
    assert [each.variable for each in compared(BASE, other, tier="a").changed] == [Variable.PRECISION]
    renamed = deepcopy(BASE)
    renamed["tiers"][0]["model"] = "Qwen3-32B-tuned"
    assert [each.variable for each in compared(BASE, renamed, tier="a").changed] == [Variable.MODEL]


def test_two_tiers_of_one_manifest_are_compared() -> None:
    both = deepcopy(BASE)
    both["tiers"].append({**changed(Variable.PRECISION)["tiers"][0], "tier": "b"})
    found = compared(both, both, tier="a", tier_now="b")
    assert [str(each) for each in found.changed] == [
        "precision: was weights bf16, engines tell weights none, is weights int8, engines tell weights none"
    ]
    with pytest.raises(KeyError):
        compared(both, both, tier="c")


@pytest.mark.parametrize(
    ("was", "now", "verdict"),
    [
        ((1.0, 0.9, 1.1), (1.3, 1.2, 1.4), Verdict.HIGHER),
        ((1.0, 0.9, 1.1), (0.7, 0.6, 0.8), Verdict.LOWER),
        ((1.0, 0.9, 1.1), (1.15, 1.1, 1.2), Verdict.WITHIN),
        ((1.0, None, None), (9.0, 8.0, 10.0), Verdict.TOLD),
    ],
)
def test_a_figure_changed_only_where_limits_share_nothing(
    was: tuple[Any, ...], now: tuple[Any, ...], verdict: Verdict
) -> None:
    before, after = (Limits(value=value, lower=low, upper=high) for value, low, high in (was, now))
    assert Side(figure="goodput", was=before, now=after).verdict is verdict
    assert Side(figure="goodput", was=before, now=None).verdict is Verdict.MISSING


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*BASE, "x"]), JSON), JSON, JSON)
def test_any_manifest_with_the_tier_is_compared(rest: dict[str, Any], declares: Any, engines: Any) -> None:
    other = {**rest, "tiers": [{"tier": "a", "declares": declares, "engines": engines}]}
    assert compared(BASE, other, tier="a", force=True).label
