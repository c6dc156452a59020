"""Steps of the explanation that say what the instrument is worth: the control's noise, and the load runs."""

from __future__ import annotations

from collections.abc import Iterator

from service.decision.energy import Energy, Noise, noise_of
from service.decision.evidence import Evidence, Measured
from service.decision.gates import in_force
from service.decision.policy import Asked, Gate, Policy
from service.decision.step import Number, Step
from service.decision.tally import Tally
from service.decision.wording import ago, span


def noise_step(name: str, evidence: Evidence) -> Iterator[Step]:
    """How much of what differs between the arms the baseline does by itself; nothing without a control."""
    control = (evidence.control or {}).get(name, Tally())
    noise = noise_of(control, evidence.tallies.get(name, Tally()), evidence.energy.get(name))
    if noise is None:
        return
    yield Step(
        title=f"{name}: noise",
        sentence=(
            f"Asked twice, the baseline differs from itself in {noise.control:.2%} of {control.n:,} pairs, "
            f"and the candidate from it in {noise.candidate:.2%}{_share(noise)}. Noise moves neither rate: "
            f"nothing is taken off for it.{_repeats(noise.energy)}"
        ),
        numbers={
            "psi_AA: baseline against itself": noise.control,
            "psi_AQ: candidate against baseline": noise.candidate,
            **({} if noise.share is None else {"noise share psi_AA/psi_AQ": noise.share}),
            "energy distance psi_AQ - psi_AA/2 - psi_QQ/2, at most": noise.energy_at_most,
            **_energy(noise.energy),
        },
    )


def _repeats(energy: Energy | None) -> str:
    if energy is None or energy.value is None:
        return ""
    return (
        f" Of {energy.requests:,} requests that the candidate answered twice as well, it differs from itself "
        f"in {energy.psi_candidate or 0:.2%}; the energy distance, 0 where every request fails as before, is "
        f"{energy.value:.4f}{_spread(energy)}. It decides nothing."
    )


def _spread(energy: Energy) -> str:
    error, p = energy.standard_error, energy.p_value
    return "" if error is None or p is None else f" with a standard error of {error:.4f} (p {p:.2g})"


def _energy(energy: Energy | None) -> dict[str, Number]:
    """What repeats of the candidate tell, under the names of the formula."""
    if energy is None:
        return {}
    found = {
        "energy distance": energy.value,
        "energy distance, standard error": energy.standard_error,
        "energy distance, p": energy.p_value,
        "psi_QQ: candidate against itself": energy.psi_candidate,
    }
    told: dict[str, Number] = {name: number for name, number in found.items() if number is not None}
    return {"requests with two answers of each arm": energy.requests, **told}


def _share(noise: Noise) -> str:
    if noise.share is None:
        return ""
    if noise.share > 1:
        return ": no more than that"
    return f", of which {noise.share:.0%} is as much as chance"


FORMULAS = {
    Gate.SLO: (
        "t = Tango's z(margin) / sqrt(design effect), Student's with blocks - 1 degrees of freedom; design "
        "effect = max(1, V_CR1/V_iid), V_CR1 = K/(K-1) sum (b_k - c_k - n_k th)^2/N^2, V_iid = s_D^2/N; with "
        "fewer than 20 blocks that have b or c, at least 1 + (sum n_k^2/N - 1) rho"
    ),
    Gate.MONEY: (
        "net = c_B - c_Q - (k c_B + p) dF - operations; lower limit net - sqrt((c_B - l_B)^2 + (u_Q - c_Q)^2 "
        "+ (k c_B + p)^2 (u_F - dF)^2), upper mirrored; c_B, c_Q = requests of baseline and candidate, the "
        "mean over blocks of price x 1e6/(tok/s x 3600) with Student's limits, dF = rise of failures, with "
        "Tango's limits of (n, b, c)/design effect, p = failure besides, all limits at 1 - 2 alpha"
    ),
}
"""From the numbers of a load run to what its gate says."""


def load_run_steps(policy: Policy, evidence: Evidence) -> Iterator[Step]:
    """What the latest load run showed of each gate that the policy asks for."""
    for gate in (Gate.SLO, Gate.MONEY):
        measured = in_force(policy, evidence, gate)
        if measured is not None and policy.gates[gate] is Asked.REQUIRED:
            yield _load_run(gate, measured, evidence.measured_within)


def _load_run(gate: Gate, measured: Measured, within: float | None) -> Step:
    age = measured.age_seconds
    numbers: dict[str, Number] = {"shown": measured.shown.value}
    when = ""
    if age is not None:
        numbers["age, seconds"] = age
        when = f", which ended {ago(age)}"
        if within is not None:
            numbers["counts for, seconds"] = within
            when += f" and counts for {span(within)}"
        when += ","
    held = ""
    if measured.run is not None:
        numbers["run of the epoch j"] = measured.run
        held = f" It is run {measured.run} of this epoch, and so had to show it at alpha_{measured.run}"
        if "alpha" in measured.numbers:
            held += f" = {measured.numbers['alpha']:.3g}"
        held += "."
    return Step(
        title=f"{gate.value}: load run",
        sentence=f"The latest load run{when} says {measured.shown.value}: {measured.reason}.{held}",
        numbers={**numbers, **({"formula": FORMULAS[gate]} if measured.numbers else {}), **measured.numbers},
    )
