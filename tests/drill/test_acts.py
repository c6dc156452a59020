"""What counts as seen, from tallies alone: every sign can be missed, and says why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.decision.decide import decide
from service.decision.evidence import Evidence
from service.decision.policy import Asked, Criterion, Gate, Hypothesis, Policy, Role
from service.decision.tally import Tally
from service.drill.acts import Act, Seen, Sign, signs
from service.drill.arms import CROSSED, DAMAGED, SWAPPED, stages
from service.drill.defects import CRITERION, Defect
from service.fleet import Backend, Ladder, Route, Tier
from service.store.verdicts.rung import Rung
from service.store.verdicts.standing import Standing

NAMES = tuple(CRITERION.values())
GATES = dict.fromkeys(Gate, Asked.OFF) | {Gate.QUALITY: Asked.REQUIRED, Gate.CONTROL: Asked.REQUIRED}
POLICY = Policy(
    criteria=tuple(
        Criterion(
            evaluator=name,
            hypothesis=Hypothesis.EQUIVALENT if name == "refusal" else Hypothesis.NON_INFERIOR,
        )
        for name in NAMES
    ),
    gates=GATES,
)
QUIET = Tally.of_pairs(n=60, harm=0, benefit=0)
WORSE = Tally.of_pairs(n=60, harm=30, benefit=0)
BETTER = Tally.of_pairs(n=60, harm=0, benefit=30)
Tallies = dict[str, Tally]


def standing(policy: Policy, model: str, tiers: dict[str, Tallies], control: Tallies) -> Standing:
    backend = (Backend(url="http://127.0.0.1:9"),)
    ladder = Ladder(
        model=model,
        tiers=tuple(Tier(name=name, backends=backend, model=model) for name in ("baseline", *tiers)),
    )
    rungs = []
    for position, tier in enumerate(ladder.tiers):
        evidence = Evidence(
            model=model,
            tier=tier.name,
            epoch="e",
            tiers_under_test=len(tiers),
            tallies=tiers.get(tier.name, {}),
            control=control,
        )
        rungs.append(
            Rung(
                tier=tier,
                position=position,
                weight=0,
                evidence=evidence if position else None,
                verdict=decide(policy, evidence, rung_below=None) if position else None,
                below=None,
                approval=None,
                expired=False,
            )
        )
    return Standing(ladder=ladder, route=Route.only(model, "baseline"), rungs=tuple(rungs), at=0.0)


def all_quiet() -> Tallies:
    return dict.fromkeys(NAMES, QUIET)


def played(policy: Policy = POLICY, **changed: Standing) -> dict[tuple[Act, Defect], Sign]:
    """The signs of a drill in which everything is as it must be, but for the ladders given."""
    damaged = {f"damaged-{defect}": all_quiet() | {CRITERION[defect]: WORSE} for defect in Defect}
    better = all_quiet() | dict.fromkeys(NAMES, BETTER)
    ladders = {
        DAMAGED: standing(policy, DAMAGED, {"undamaged": all_quiet(), **damaged}, all_quiet()),
        SWAPPED: standing(policy, SWAPPED, {"undamaged": better}, all_quiet()),
        CROSSED: standing(
            policy, CROSSED, {"undamaged": all_quiet()}, all_quiet() | dict.fromkeys(NAMES, WORSE)
        ),
    } | changed
    return {sign.key: sign for sign in signs(policy, tuple(Defect), ladders)}


def test_everything_is_seen_when_everything_is_there() -> None:
    found = played()
    assert {sign.seen for sign in found.values()} == {Seen.YES}, [s for s in found.values() if s.trouble]
    assert len(found) == 3 + 3 + 3 + 2
    assert all(sign.log_e >= sign.log_threshold for (act, _), sign in found.items() if act is not Act.HEALTHY)


def test_the_stages_have_the_tiers_that_signs_are_read_from() -> None:
    found = stages(tuple(Defect))
    assert [tier.name for tier in found[DAMAGED].tiers] == [
        "baseline", "undamaged", "damaged-json", "damaged-recall", "damaged-refusal",
    ]  # fmt: skip
    assert [tier.name for tier in found[SWAPPED].tiers] == ["baseline", "undamaged"]
    assert CROSSED not in stages((Defect.RECALL,)), "its control goes to one backend twice"
    names = [arm.name for stage in found.values() for arm in stage.arms]
    assert len(set(names)) == len(names) == 10


def test_a_healthy_arm_that_is_rejected_is_a_false_alarm() -> None:
    wrong = standing(POLICY, DAMAGED, {"undamaged": all_quiet() | {"refusal": WORSE}} | damage(), all_quiet())
    sign = played(**{DAMAGED: wrong})[Act.HEALTHY, Defect.REFUSAL]
    assert sign.seen is Seen.NO
    assert "a healthy arm is rejected" in sign.trouble


def damage() -> dict[str, Tallies]:
    return {f"damaged-{defect}": all_quiet() | {CRITERION[defect]: WORSE} for defect in Defect}


def test_a_control_alarm_without_a_cause_is_a_false_alarm() -> None:
    wrong = standing(
        POLICY, DAMAGED, {"undamaged": all_quiet()} | damage(), all_quiet() | {"refusal": BETTER}
    )
    found = played(**{DAMAGED: wrong})
    assert found[Act.HEALTHY, Defect.JSON].seen is Seen.NO
    assert "control_alarm" in found[Act.HEALTHY, Defect.JSON].trouble
    assert found[Act.DAMAGED, Defect.JSON].seen is Seen.NO, "the verdict is withheld"


def test_damage_that_another_criterion_is_blamed_for_is_not_seen() -> None:
    wrong = {"damaged-json": all_quiet() | {"structured_output": WORSE, "refusal": WORSE}}
    ladder = standing(POLICY, DAMAGED, {"undamaged": all_quiet()} | damage() | wrong, all_quiet())
    sign = played(**{DAMAGED: ladder})[Act.DAMAGED, Defect.JSON]
    assert sign.seen is Seen.NO
    assert "refusal is blamed for a defect of structured_output" in sign.trouble


def test_what_a_criterion_shows_that_does_not_decide_is_no_blame() -> None:
    shown = replace(
        POLICY, criteria=(*POLICY.criteria, Criterion(evaluator="field_agreement", role=Role.SHOWN))
    )
    loud = {"damaged-json": all_quiet() | {"structured_output": WORSE, "field_agreement": WORSE}}
    ladder = standing(shown, DAMAGED, {"undamaged": all_quiet()} | damage() | loud, all_quiet())
    assert played(shown, **{DAMAGED: ladder})[Act.DAMAGED, Defect.JSON].seen is Seen.YES


@pytest.mark.parametrize(
    ("criterion", "why"),
    [
        (Criterion(evaluator="structured_output", role=Role.MUTED), "role is muted: it decides nothing"),
        (Criterion(evaluator="structured_output", role=Role.SHOWN), "role is shown: it decides nothing"),
        (None, "policy.criteria does not name structured_output: nobody looks"),
    ],
)
def test_a_policy_that_does_not_act_on_a_criterion_is_blind(criterion: Criterion | None, why: str) -> None:
    others = tuple(each for each in POLICY.criteria if each.evaluator != "structured_output")
    policy = replace(POLICY, criteria=others if criterion is None else (criterion, *others))
    sign = played(policy)[Act.DAMAGED, Defect.JSON]
    assert (sign.seen, sign.trouble.endswith(why)) == (Seen.NO, True)
    assert played(policy)[Act.DAMAGED, Defect.REFUSAL].seen is Seen.YES


def test_a_margin_that_hides_the_damage_is_named() -> None:
    policy = replace(POLICY, criteria=tuple(replace(each, margin=0.99) for each in POLICY.criteria))
    found = played(policy)
    for act in (Act.DAMAGED, Act.SWAPPED):
        for defect in Defect:
            assert found[act, defect].seen is Seen.NOT_YET
            assert found[act, defect].trouble == "the margin of 0.99 hides a difference of 0.5"
    assert found[Act.CROSSED, Defect.JSON].seen is Seen.YES, "the control knows no margin"


def test_an_evaluator_that_finds_no_difference_is_blind() -> None:
    tiers = {"undamaged": all_quiet()} | damage() | {"damaged-recall": all_quiet()}
    sign = played(**{DAMAGED: standing(POLICY, DAMAGED, tiers, all_quiet())})[Act.DAMAGED, Defect.RECALL]
    assert sign.seen is Seen.NOT_YET
    assert sign.trouble == "the evaluator finds no difference in 60 pairs, and answers were damaged"


def test_pairs_without_a_score_are_named() -> None:
    nothing = Tally(unscored={"shadow": 7})
    tiers = {"undamaged": all_quiet() | {"refusal": nothing}} | damage()
    tiers["damaged-refusal"] = all_quiet() | {"refusal": nothing}
    found = played(**{DAMAGED: standing(POLICY, DAMAGED, tiers, all_quiet())})
    for act in (Act.HEALTHY, Act.DAMAGED):
        assert found[act, Defect.REFUSAL].seen is Seen.NOT_YET
        assert found[act, Defect.REFUSAL].trouble == "no pair was counted; unscored: shadow 7"


def test_too_few_pairs_are_told_with_both_e_values() -> None:
    tiers = {"undamaged": all_quiet()} | damage()
    tiers["damaged-json"] = all_quiet() | {"structured_output": Tally.of_pairs(n=4, harm=2, benefit=0)}
    sign = played(**{DAMAGED: standing(POLICY, DAMAGED, tiers, all_quiet())})[Act.DAMAGED, Defect.JSON]
    assert sign.seen is Seen.NOT_YET
    assert sign.trouble.startswith("not enough after 4 pairs: e-value ")


def test_exchanged_arms_that_look_like_harm_are_wrong() -> None:
    wrong = standing(POLICY, SWAPPED, {"undamaged": dict.fromkeys(NAMES, WORSE)}, all_quiet())
    sign = played(**{SWAPPED: wrong})[Act.SWAPPED, Defect.JSON]
    assert (sign.seen, sign.trouble) == (Seen.NO, "exchanged arms look like harm of the healthy one")


def test_a_control_that_is_not_asked_notices_nothing() -> None:
    policy = replace(POLICY, gates=GATES | {Gate.CONTROL: Asked.OFF})
    sign = played(policy)[Act.CROSSED, Defect.REFUSAL]
    assert sign.seen is Seen.NO
    assert sign.trouble.startswith("policy.gates.control is off")


def test_a_quiet_control_at_a_damaged_backend_is_blind() -> None:
    quiet = standing(POLICY, CROSSED, {"undamaged": all_quiet()}, all_quiet())
    assert played(**{CROSSED: quiet})[Act.CROSSED, Defect.JSON].seen is Seen.NOT_YET
