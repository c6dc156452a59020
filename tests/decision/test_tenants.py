"""Whom an acceptance rests on: without each tenant, shares under a cap, and warnings of one tenant's own."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.decision.decide import decide
from service.decision.directions import log_e_values
from service.decision.evidence import Evidence
from service.decision.policy import Asked, Criterion, Gate, Hypothesis, Policy
from service.decision.tally import Tally, Triple
from service.decision.tenants import TenantReading, read_tenants, share_withheld
from service.decision.thresholds import thresholds
from service.decision.verdict import Decision

REFUSAL = Criterion(evaluator="refusal")
OFF = dict.fromkeys(Gate, Asked.OFF) | {Gate.QUALITY: Asked.REQUIRED}
POLICY = Policy(criteria=(REFUSAL,), gates=OFF)
CAPPED = Policy(criteria=(REFUSAL,), gates=OFF, tenant_share_cap=0.5)
LIMITS = thresholds(POLICY, tiers=1, attempt=1)


def read(tenants: dict[str, Tally], criterion: Criterion = REFUSAL) -> dict[str, TenantReading]:
    return {each.tenant: each for each in read_tenants(POLICY, criterion, tenants, LIMITS)}


def quiet(n: int) -> Tally:
    return Tally.of_pairs(n=n, harm=0, benefit=0)


def test_an_acceptance_that_rests_on_one_tenant_is_seen() -> None:
    found = read({"large": quiet(900), "small": quiet(100)})
    assert not found["large"].passes_without
    assert found["small"].passes_without
    assert list(found) == ["large", "small"]
    assert [each.share for each in found.values()] == [0.9, 0.1]


def test_one_suffering_tenant_among_many_is_a_warning_and_no_rejection() -> None:
    tenants = {f"t{k}": quiet(2000) for k in range(9)} | {"hurt": Tally.of_pairs(n=200, harm=20, benefit=0)}
    total = sum(tenants.values(), Tally())
    verdict = decide(
        POLICY,
        Evidence(
            model="m",
            tier="t",
            epoch="e",
            tallies={"refusal": total},
            tenants={"refusal": tenants},
        ),
        rung_below=None,
    )
    assert verdict.decision is Decision.ACCEPT
    found = read(tenants)
    assert [each.tenant for each in found.values() if each.warn] == ["hurt"]
    assert found["hurt"].log_e_harm > math.log(20)
    assert found["hurt"].log_e_without == max(each.log_e_without for each in found.values())


def test_a_warning_is_held_to_the_number_of_tenants() -> None:
    hurt = Tally.of_pairs(n=200, harm=12, benefit=1)
    assert read({"hurt": hurt})["hurt"].warn
    assert not read({"hurt": hurt} | {str(k): quiet(10) for k in range(1000)})["hurt"].warn


@st.composite
def tallies(draw: st.DrawFn) -> Tally:
    units = {}
    for _ in range(draw(st.integers(0, 3))):
        pairs = draw(st.integers(1, 4))
        harm = draw(st.integers(0, pairs))
        units[Triple(pairs, harm, draw(st.integers(0, pairs - harm)))] = draw(st.integers(1, 5000))
    return Tally(units=units)


@given(st.dictionaries(st.sampled_from("abcde"), tallies(), max_size=5), st.sampled_from(Hypothesis))
def test_without_a_tenant_means_the_tally_of_all_others(
    tenants: dict[str, Tally], hypothesis: Hypothesis
) -> None:
    criterion = Criterion(evaluator="refusal", hypothesis=hypothesis)
    found = read(tenants, criterion)
    assert set(found) == {tenant for tenant, tally in tenants.items() if tally.n}
    for tenant, reading in found.items():
        rest = sum((tally for other, tally in tenants.items() if other != tenant), Tally())
        expected = log_e_values(criterion, rest).noninferiority
        assert reading.log_e_without == pytest.approx(expected, rel=1e-9, abs=1e-6)
        assert reading.passes_without == (reading.log_e_without >= LIMITS.accept)
        own = log_e_values(criterion, tenants[tenant])
        assert (reading.log_e_harm, reading.log_e_warn) == (own.harm, own.warn)


def test_a_tenant_above_its_cap_withholds_acceptance_and_not_rejection() -> None:
    def verdict(tally: Tally, tenants: dict[str, Tally]) -> tuple[Decision, tuple[str, ...]]:
        found = decide(
            CAPPED,
            Evidence(
                model="m", tier="t", epoch="e", tallies={"refusal": tally}, tenants={"refusal": tenants}
            ),
            rung_below=None,
        )
        return found.decision, found.reasons

    shared = {"a": quiet(500), "b": quiet(500)}
    assert verdict(quiet(1000), shared)[0] is Decision.ACCEPT
    assert verdict(quiet(1000), {"a": quiet(501), "b": quiet(499)}) == (
        Decision.UNDECIDED,
        ("refusal: share of tenant a 0.501 > tenant_share_cap 0.5",),
    )
    assert verdict(quiet(1000), {}) == (
        Decision.UNDECIDED,
        ("refusal: tenants are known of 0 of 1000 units, and tenant_share_cap is set",),
    )
    harmed = Tally.of_pairs(n=1000, harm=200, benefit=0)
    assert verdict(harmed, {"a": harmed})[0] is Decision.REJECT


def test_without_a_cap_no_share_is_asked_for() -> None:
    assert share_withheld(POLICY, quiet(10), {}) is None
    assert share_withheld(POLICY, quiet(10), {"a": quiet(10)}) is None


@pytest.mark.parametrize("cap", [0.0, 1.5, math.nan])
def test_a_cap_is_a_share(cap: float) -> None:
    with pytest.raises(ValueError, match="tenant_share_cap"):
        Policy(criteria=(REFUSAL,), tenant_share_cap=cap)
