"""Every number of an explanation can be computed again from those printed with it.

Nothing of `service.decision` computes here: only what the steps print, the formulas that they print, and the
distributions of Student and the normal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import pytest
from scipy.stats import norm, t

from service.decision.evidence import Attribution, Coverage, Evidence
from service.decision.explain import Step, explain
from service.decision.ladder import decide_ladder
from service.decision.money import Arm, money_gate
from service.decision.policy import Criterion, Hypothesis, Policy
from service.decision.slo import slo_gate
from service.decision.tally import Tally, Triple
from service.decision.verdict import Decision

POLICY = Policy(
    criteria=(
        Criterion(evaluator="structured_output"),
        Criterion(evaluator="long_context_recall", margin=0.02),
        Criterion(evaluator="refusal", hypothesis=Hypothesis.EQUIVALENT),
    )
)
SINGLE = Tally(
    units={Triple(1, 0, 0): 1968, Triple(1, 1, 0): 12, Triple(1, 0, 1): 20},
    both_failed=3,
    unscored={"timeout": 60, "late": 2},
    not_counted=55,
)
SEVERAL = Tally(
    units={Triple(3, 0, 0): 400, Triple(3, 1, 0): 10, Triple(3, 0, 1): 4, Triple(200, 180, 2): 1},
    both_failed=20,
)
REFUSALS = Tally.of_pairs(n=900, harm=9, benefit=2)
CONTROL = {
    "structured_output": Tally.of_pairs(n=600, harm=2, benefit=3) + Tally(unscored={"timeout": 1}),
    "long_context_recall": Tally(units={Triple(2, 0, 0): 290, Triple(2, 1, 0): 6, Triple(2, 0, 2): 4}),
    "refusal": Tally.of_pairs(n=600, harm=1, benefit=0),
}
LONG = Tally(units={Triple(1, 0, 0): 60, Triple(1, 1, 0): 8}, unscored={"timeout": 2})
BLOCKS = Tally(units={Triple(240, 2, 1): 14, Triple(240, 1, 2): 6, Triple(230, 0, 0): 4}, both_failed=20)
RATES = {
    "baseline": [1000.0, 980, 1015, 1002, 990, 1010, 970, 1005],
    "candidate": [1420.0, 1450, 1390, 1465] * 2,
}
ARMS = {
    name: Arm(price_per_hour=2.5, tokens_per_second=rates, mean_output_tokens=300.0)
    for name, rates in RATES.items()
}
FAILURES = Tally.of_pairs(n=3000, harm=12, benefit=10)
EVIDENCE = Evidence(
    model="m",
    tier="w8a8",
    epoch="e",
    attempt=2,
    tiers_under_test=3,
    tallies={"structured_output": SINGLE, "long_context_recall": SEVERAL, "refusal": REFUSALS},
    control=CONTROL,
    strata={"structured_output": {"32k+": LONG}, "refusal": {"short": SEVERAL}},
    strata_under_test=38,
    coverage=Coverage(traffic={"short": 9000, "32k+": 500, "rare": 20}, evidence={"short": 1990, "32k+": 10}),
    attribution=Attribution(not_told=("driver",)),
    slo=slo_gate(BLOCKS, alpha=0.03),
    money=money_gate(ARMS["baseline"], ARMS["candidate"], FAILURES, alpha=0.02),
)
VERDICT = decide_ladder(POLICY, [EVIDENCE])[0]
STEPS = {step.title: step for step in explain(POLICY, EVIDENCE, VERDICT)}
CRITERIA = [criterion.evaluator for criterion in POLICY.criteria]

Unit = tuple[int, int, int, int]
Bets = list[tuple[float, float]]


def numbers(title: str) -> Mapping[str, int | float | str]:
    return STEPS[title].numbers


def number(title: str, name: str) -> float:
    return float(numbers(title)[name])


def units_in(text: object) -> list[Unit]:
    """`(n, b, c) x count` of the print."""
    found = re.findall(r"\((\d+), (\d+), (\d+)\) x (\d+)", str(text))
    assert found, text
    return [tuple(map(int, each)) for each in found]  # type: ignore[misc]


def bets(kind: str) -> Bets:
    told = str(numbers("thresholds")[f"bets k_g of {kind}, with their weights w_g"])
    return [(float(bet), float(weight)) for bet, weight in re.findall(r"([\d.]+) \(([\d.]+)\)", told)]


def log_e(units: Sequence[Unit], m: float, of: Bets, sign: int = 1) -> float:
    """The printed formula; `sign` -1 is E_HARM's, and E_NI's of the other direction where m stays."""
    terms = [
        math.log(weight)
        + sum(
            count * math.log1p(bet * (m - sign * (harm - benefit) / n) / (1 - m))
            for n, harm, benefit, count in units
        )
        for bet, weight in of
    ]
    top = max(terms)
    return top + math.log(sum(math.exp(term - top) for term in terms))


def shown(log_value: float) -> object:
    """An e-value has three digits in print."""
    return pytest.approx(math.exp(log_value), rel=6e-3)


def mean_of(first: float, second: float) -> float:
    return math.log((math.exp(first) + math.exp(second)) / 2)


NI, HARM = bets("E_NI"), bets("E_HARM")


def test_thresholds_are_quotients_of_the_error_rates() -> None:
    told = numbers("thresholds")
    assert told["alpha_accept"] == pytest.approx(0.05 * 6 / (math.pi * 2) ** 2)
    of_gates = told["alpha_gates of this attempt; load run j gets 6/(pi^2 j^2) of it"]
    assert of_gates == pytest.approx(0.05 * 6 / (math.pi * 2) ** 2)
    m = told["M: decisive criteria x tiers under test"]
    for name, of in {
        "accept: 1/alpha_accept": 1 / told["alpha_accept"],
        "harm: M/alpha_harm": m / told["alpha_harm"],
        "strata: M S/alpha_strata": m * told["S: strata there can be"] / told["alpha_strata"],
        "warn: 1/alpha_warn": 1 / told["alpha_warn"],
    }.items():
        assert float(told[name]) == pytest.approx(of, rel=6e-3), name
    assert sum(weight for _, weight in NI) == pytest.approx(1)
    assert sum(weight for _, weight in HARM) == pytest.approx(1)


@pytest.mark.parametrize("name", CRITERIA)
def test_counts_and_estimate_follow_from_the_units(name: str) -> None:
    counts, units = numbers(f"{name}: counts"), units_in(numbers(f"{name}: e-values")["units (n, b, c)"])
    assert counts["conversations"] == sum(count for *_, count in units)
    for place, part in enumerate(("pairs n", "harm b", "benefit c")):
        assert counts[part] == sum(unit[place] * unit[3] for unit in units)
    mean = sum(count * (b - c) / n for n, b, c, count in units) / counts["conversations"]
    (told,) = (value for key, value in numbers(f"{name}: estimate").items() if key.startswith("estimate"))
    assert told == pytest.approx(mean)
    assert number(f"{name}: estimate", "lower limit") < mean < number(f"{name}: estimate", "upper limit")


@pytest.mark.parametrize("name", CRITERIA)
def test_e_values_follow_from_the_units(name: str) -> None:
    told, margin = numbers(f"{name}: e-values"), number(f"{name}: estimate", "margin")
    units = units_in(told["units (n, b, c)"])
    within = log_e(units, margin, NI)
    harm, warn = log_e(units, -margin, HARM, -1), log_e(units, 0, HARM, -1)
    if name == "refusal":
        other = log_e(units, margin, NI, -1), log_e(units, -margin, HARM), log_e(units, 0, HARM)
        pairs = ((within, other[0]), (harm, other[1]), (warn, other[2]))
        keys = ("log E_NI(margin)", "log E_HARM(margin)", "log E_HARM(0)")
        for key, pair in zip(keys, pairs, strict=True):
            printed = str(told[f"{key}, as it is and with -D for D"]).split(", ")
            assert [float(each) for each in printed] == pytest.approx(pair, rel=1e-5)
        within, harm, warn = min(pairs[0]), mean_of(*pairs[1]), mean_of(*pairs[2])
    for key, value in (("E_NI(margin)", within), ("E_HARM(margin)", harm), ("E_HARM(0)", warn)):
        assert told[f"log {key}"] == pytest.approx(value, rel=1e-6)
        assert float(told[key]) == shown(value)


@pytest.mark.parametrize("name", CRITERIA)
def test_limits_are_where_the_e_values_reach_the_error_rate(name: str) -> None:
    told, units = numbers(f"{name}: estimate"), units_in(numbers(f"{name}: e-values")["units (n, b, c)"])
    threshold = -math.log((1 - number(f"{name}: estimate", "level")) / 2)
    assert threshold == pytest.approx(-math.log(number("thresholds", "alpha_accept")))
    assert log_e(units, float(told["upper limit"]), NI) == pytest.approx(threshold, abs=1e-4)
    lower = NI if name == "refusal" else HARM
    assert log_e(units, -float(told["lower limit"]), lower, -1) == pytest.approx(threshold, abs=1e-4)


def test_missing_scores_are_weighed_as_printed() -> None:
    told, counts = numbers("structured_output: missing scores"), numbers("structured_output: counts")
    assert told["lost u"] == counts["unscored: timeout"] == 60
    assert told["due"] == counts["pairs n"] + counts["not counted"] + 60
    assert told["unscored share"] == pytest.approx(60 / told["due"])
    own, control = 60, told["control: lost u"]
    p = told["due"] / (told["due"] + told["control: due"])
    beta = math.lgamma(1 + own) + math.lgamma(1 + control) - math.lgamma(2 + own + control)
    uneven = beta - own * math.log(p) - control * math.log(1 - p)
    assert told["log E, arms lose alike"] == pytest.approx(uneven)
    units = [*units_in(numbers("structured_output: e-values")["units (n, b, c)"]), (1, 0, 1, 60)]
    least = log_e(units, -0.01, HARM, -1)
    assert told["log E_HARM(margin), at least"] == pytest.approx(least)
    assert "unscored share 0.0284 > 0.01" in STEPS["structured_output: finding"].sentence
    assert f"E_HARM, at least, {math.exp(least):.3g}" in str(numbers("structured_output: finding")["harm"])


def test_criteria_that_lost_nothing_have_no_such_step() -> None:
    assert "refusal: missing scores" not in STEPS


@pytest.mark.parametrize(
    ("name", "stratum", "units", "lost"),
    [("structured_output", "32k+", [(1, 1, 0, 8), (1, 0, 0, 60)], 2), ("refusal", "short", None, 0)],
)
def test_strata_have_what_their_e_value_is_of(
    name: str, stratum: str, units: list[Unit] | None, lost: int
) -> None:
    told = str(numbers(f"{name}: worst stratum")[f"{stratum}: (n, b, c), E_HARM(margin)"])
    found = re.match(r"\((\d+), (\d+), (\d+)\), ([\d.e+-]+)", told)
    assert found is not None
    of = units or units_in(told.split("units ")[1])
    assert tuple(map(int, found.groups()[:3])) == tuple(sum(u[i] * u[3] for u in of) for i in range(3))
    if lost:
        assert f"{lost} without a score taken to speak against it" in told
        of = [*of, (1, 0, 1, lost)]
    harm = log_e(of, -0.01, HARM, -1)
    if name == "refusal":
        harm = mean_of(harm, log_e(of, -0.01, HARM))
    assert float(found.group(4)) == shown(harm)


def test_the_baseline_failures_and_every_comparison_are_in_the_finding() -> None:
    for name in CRITERIA:
        told, counts = numbers(f"{name}: finding"), numbers(f"{name}: counts")
        failing = (counts["both failed"] + counts["benefit c"]) / counts["pairs n"]
        assert told["baseline failure share (both failed + c)/n"] == pytest.approx(failing)
        e_values = numbers(f"{name}: e-values")
        assert told["accept"] == f"E_NI {e_values['E_NI(margin)']}, needed 132"
        assert told["warn"] == f"E_HARM(0) {e_values['E_HARM(0)']}, needed 20"


def test_the_control_has_its_counts_and_both_directions() -> None:
    told = numbers("control")
    for name in CRITERIA:
        counts = str(told[f"{name}: (n, b, c), min_pairs"])
        n, harm, benefit, least = map(int, re.findall(r"\d+", counts))
        assert least == 300
        units = [(1, 1, 0, harm), (1, 0, 1, benefit), (1, 0, 0, n - harm - benefit)]
        if f"{name}: units (n, b, c)" in told:
            units = units_in(told[f"{name}: units (n, b, c)"])
        printed = str(told[f"{name}: E_HARM(0), as it is and with -D for D"]).split(", ")
        assert float(printed[0]) == shown(log_e(units, 0, HARM, -1))
        assert float(printed[1]) == shown(log_e(units, 0, HARM))
    loudest = max(
        (float(each), name)
        for name in CRITERIA
        for each in str(told[f"{name}: E_HARM(0), as it is and with -D for D"]).split(", ")
    )
    assert f"at most {loudest[0]:g} of 1 ({loudest[1]}, " in STEPS["control"].sentence


def test_coverage_is_shares_of_what_is_printed() -> None:
    told = numbers("coverage")
    assert set(told) == {"32k+: traffic, evidence, least", "short: traffic, evidence, least"}
    assert told["32k+: traffic, evidence, least"] == (
        f"500 requests ({500 / 9520:.6g}), 10 ({10 / 2000:.6g}), {500 / 9520 / 2:.6g}"
    )
    assert STEPS["coverage"].sentence == (
        "Kinds of requests (strata) with 2% of the traffic or more: 2; of these, with less than half that "
        "share of what counts: 1. Barest is 32k+: 5.25% of the traffic, 0.50% of the evidence, and 2.63% is "
        "the least."
    )


def test_attribution_says_what_was_not_compared() -> None:
    assert STEPS["attribution"].sentence == (
        "By what the engines tell of themselves, baseline and candidate differ in their precision alone. "
        "Not told, and not compared: driver."
    )


def tango_z(harm: float, benefit: float, n: float, d: float) -> float:
    """Tango 1998, by the textbook's form of the quadratic."""
    a, linear, constant = 2 * n, (2 * n - harm + benefit) * d - harm - benefit, -benefit * d * (1 - d)
    q = max(0.0, -d, (math.sqrt(linear**2 - 4 * a * constant) - linear) / (2 * a))
    return (harm - benefit - n * d) / math.sqrt(n * (2 * q + d * (1 - d)))


def test_the_slo_gate_follows_from_its_blocks() -> None:
    told = numbers("slo: load run")
    blocks = units_in(told["blocks (n, b, c)"])
    k, n, b, c = (sum(unit[i] * unit[3] if i < 3 else unit[3] for unit in blocks) for i in (3, 0, 1, 2))
    assert (told["blocks"], told["requests"]) == (k, n)
    theta = (b - c) / n
    clustered = k / (k - 1) * sum(count * (h - s - m * theta) ** 2 for m, h, s, count in blocks) / n**2
    independent = (b + c - (b - c) ** 2 / n) / (n - 1) / n
    effect = max(1.0, clustered / independent)
    if sum(count for _, h, s, count in blocks if h or s) < 20:
        assumed = float(told["correlation in a block, assumed: rho"])
        effect = max(effect, 1 + (sum(m**2 * count for m, _, _, count in blocks) / n - 1) * assumed)
    assert told["design effect"] == pytest.approx(effect)
    statistic = tango_z(b, c, n, float(told["margin"])) / math.sqrt(effect)
    assert told["t"] == pytest.approx(statistic)
    assert told["p within the margin"] == pytest.approx(t.cdf(statistic, k - 1))
    assert told["p beyond the margin"] == pytest.approx(t.sf(statistic, k - 1))


def test_the_net_benefit_follows_from_blocks_prices_and_failures() -> None:
    told = numbers("money: load run")
    alpha = float(told["alpha"])
    request: dict[str, tuple[float, float, float]] = {}
    for arm in ("baseline", "candidate"):
        price, tokens = (
            float(told[f"price per hour, {arm}"]),
            float(told[f"output tokens of a request, {arm}"]),
        )
        rates = [float(each) for each in str(told[f"tok/s by block, {arm}"]).split(", ")]
        costs = [price * 1e6 / (rate * 3600) * tokens / 1e6 for rate in rates]
        mean = sum(costs) / len(costs)
        spread = math.sqrt(sum((cost - mean) ** 2 for cost in costs) / (len(costs) - 1) / len(costs))
        half = t.isf(alpha, len(costs) - 1) * spread
        request[arm] = mean, mean - half, mean + half
        found = [float(told[f"{arm} request{part}"]) for part in ("", ", lower", ", upper")]
        assert found == pytest.approx(request[arm])
    n, b, c = (int(each) for each in re.findall(r"\d+", str(told["failures (n, b, c)"])))
    effect = float(told["failures, design effect"])
    rise, low, high = (float(told[f"rise of failures{part}"]) for part in ("", ", lower", ", upper"))
    assert rise == pytest.approx((b - c) / n)
    assert tango_z(b / effect, c / effect, n / effect, low) == pytest.approx(norm.isf(alpha), abs=1e-6)
    assert tango_z(b / effect, c / effect, n / effect, high) == pytest.approx(-norm.isf(alpha), abs=1e-6)
    (c_b, l_b, u_b), (c_q, l_q, u_q) = request["baseline"], request["candidate"]
    charge = float(told["k: failure in baseline requests"]) * c_b + float(told["failure besides"])
    net = c_b - c_q - charge * rise - float(told["operations"])
    below = math.sqrt((c_b - l_b) ** 2 + (u_q - c_q) ** 2 + charge**2 * (high - rise) ** 2)
    above = math.sqrt((u_b - c_b) ** 2 + (c_q - l_q) ** 2 + charge**2 * (rise - low) ** 2)
    found = [float(told[f"net benefit per request{part}"]) for part in ("", ", lower", ", upper")]
    assert found == pytest.approx([net, net - below, net + above])


def test_the_decision_is_the_verdicts() -> None:
    assert STEPS["decision"].sentence.startswith("undecided: ")
    assert VERDICT.decision is Decision.UNDECIDED
    assert isinstance(STEPS["decision"], Step)
