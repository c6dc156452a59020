"""What an epoch fixes once: its number, the end of each criterion, its beginning."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from service.decision.ending import planned_max_pairs
from service.decision.policy import Criterion, Policy, Role
from service.decision.tally import Tally
from service.decision.thresholds import thresholds
from service.store.decided.decisions import read, verify
from service.store.decided.interventions import Kind, intervene, undo_skip
from service.store.scored.evidence import read_tallies
from service.store.scored.pairs import record
from service.store.verdicts.epochs import Epochs, Look, epochs_of, fix

POLICY = Policy(
    criteria=(
        Criterion(evaluator="structured_output", min_pairs=3),
        Criterion(evaluator="refusal", min_pairs=100),
        Criterion(evaluator="tool_use", min_pairs=1, role=Role.SHOWN),
    )
)


def limits_of(attempt):
    return thresholds(POLICY, tiers=1, attempt=attempt)


@pytest.fixture
def look(database):
    """What one look at an epoch of a tier finds fixed afterwards."""

    def at(epoch, tier="w8a8", policy=POLICY, control=None):
        tallies = read_tallies(database, model="m", tier=tier, arm="candidate", epoch=epoch)
        with database.read() as connection:
            known = epochs_of(connection, "m")
        looks = [Look(tier=tier, epoch=epoch, tallies=tallies, control=control)]
        return fix(database, "m", looks, known, policy, limits_of)

    return at


@pytest.fixture
def fill(database, unit_of):
    def add(epoch, pairs, judged="pp", start=0, **changes):
        for number in range(start, start + pairs):
            name = f"{epoch}-{number}"
            unit = unit_of(name, judged, epoch=epoch, **changes)
            record(database, capture_id=name, owner="w", units=[unit], at=100.0 + number)

    return add


def test_epochs_are_numbered_in_the_order_in_which_they_reach_their_minimum(look, fill):
    def attempt(epoch):
        return look(epoch).attempt("w8a8", epoch)

    assert attempt("e1") == 1
    fill("e1", 2)
    assert attempt("e2") == 1  # e1 has not reached its minimum: nothing is spent
    fill("e2", 3)
    assert attempt("e2") == 1
    assert attempt("e1") == 2
    fill("e1", 1, start=2)
    assert attempt("e1") == 2
    assert attempt("e2") == 1  # coming back resumes it
    assert attempt("e3") == 3
    assert look("e1", tier="another").attempt("another", "e1") == 1


def test_two_who_look_at_once_agree_on_an_epochs_number_and_end(look, fill):
    fill("e1", 3)
    fill("e2", 3)
    with ThreadPoolExecutor(8) as pool:
        looks = list(pool.map(lambda n: (n % 2, look(f"e{n % 2 + 1}")), range(8)))
    numbers = {
        which: {known.attempt("w8a8", f"e{which + 1}") for each, known in looks if each == which}
        for which in (0, 1)
    }
    assert sorted(number for found in numbers.values() for number in found) == [1, 2]
    assert len({known.plans["w8a8", "e1"]["structured_output"] for which, known in looks if which == 0}) == 1


def test_a_criterion_that_is_only_shown_spends_no_error_rate(look, fill):
    fill("e1", 3, evaluator="tool_use")
    assert look("e1").attempts == {}


def test_the_end_of_a_criterion_is_fixed_at_its_minimum_of_pairs_and_never_moves(look, fill):
    fill("e1", 2)
    assert look("e1").plans.get(("w8a8", "e1")) is None
    fill("e1", 1, start=2)
    planned = look("e1").plans["w8a8", "e1"]
    criterion = POLICY.criteria[0]
    tally = Tally.of_pairs(n=3, harm=0, benefit=0)
    assert planned == {"structured_output": planned_max_pairs(POLICY, criterion, tally, limits_of(1))}
    fill("e1", 40, "pf", start=3)  # another discordance would plan another end
    assert look("e1").plans["w8a8", "e1"] == planned
    fill("e2", 40, "pf")
    assert look("e2").plans["w8a8", "e2"] != planned


def test_the_end_is_planned_with_the_noise_of_the_control(look, fill):
    fill("e1", 3)
    fill("e2", 3)
    noisy = {"structured_output": Tally.of_pairs(n=10, harm=5, benefit=5)}
    quiet = look("e1").plans["w8a8", "e1"]["structured_output"]
    tallies = {"structured_output": Tally.of_pairs(n=300, harm=1, benefit=1)}
    policy = Policy(criteria=(Criterion(evaluator="structured_output"),))
    ends = [
        planned_max_pairs(
            policy, policy.criteria[0], tallies["structured_output"], limits_of(1), control=each
        )
        for each in (None, noisy["structured_output"])
    ]
    assert ends[0] is not None
    assert ends[1] is not None
    assert ends[1] > ends[0]
    assert look("e2", control=noisy).plans["w8a8", "e2"]["structured_output"] >= quiet


def test_an_end_set_by_a_person_is_not_planned(look, fill):
    fill("e1", 3)
    policy = Policy(criteria=(Criterion(evaluator="structured_output", min_pairs=3, max_pairs=5),))
    assert look("e1", policy=policy).plans == {}


def test_an_epoch_begins_with_the_capture_that_counts_first(look, fill):
    assert look("e1").starts == {}
    fill("e1", 1, counted=False)
    assert look("e1").starts == {}
    fill("e1", 2, start=5)
    assert look("e1").starts == {("w8a8", "e1"): 105.0}
    fill("e1", 1, start=1)  # recorded later, taken earlier: what was begun stays begun
    assert look("e1").starts == {("w8a8", "e1"): 105.0}


def test_nothing_is_written_when_nothing_is_due(database, fill, look):
    fill("e1", 3)
    known = look("e1")
    tallies = read_tallies(database, model="m", tier="w8a8", arm="candidate", epoch="e1")
    seen = [Look(tier="w8a8", epoch="e1", tallies=tallies)]
    assert fix(database, "m", seen, known, POLICY, limits_of) is known
    assert Epochs().attempt("w8a8", "e1") == 1


def restore(database, epoch, **changes):
    said = {"model": "m", "tier": "w8a8", "reason": "baseline upgraded", "actor": "ops", "at": 1.0}
    return intervene(database, Kind.RESTORE_ALPHA, epoch=epoch, **said | changes)


def test_once_alpha_is_restored_earlier_epochs_are_no_attempts(database, look, fill):
    for epoch in ("e1", "e2", "e3"):
        fill(epoch, 3)
        look(epoch)
    fill("other", 3, tier="w4a16")
    assert look("e3").attempt("w8a8", "e3") == 3
    assert restore(database, "e3")
    assert not restore(database, "e3")
    known = look("e3")
    assert known.attempt("w8a8", "e3") == 1
    assert known.attempt("w8a8", "not yet") == 2
    assert known.attempt("w8a8", "e2") == 2, "an epoch that was looked at before is no fresh attempt"
    fill("e4", 3)
    fill("e5", 3)
    assert look("e4").attempt("w8a8", "e4") == 2
    assert look("e5").attempt("w8a8", "e5") == 3
    assert look("e3").attempt("w8a8", "e3") == 1
    (entry,) = read(database, "m")
    assert (entry.action, entry.actor, entry.tier) == ("restore_alpha", "ops", "w8a8")
    assert entry.detail == {"epoch": "e3", "reason": "baseline upgraded", "attempts": 3}
    assert verify(database) is None


def test_alpha_may_be_restored_before_the_epoch_has_its_minimum_of_pairs(database, look, fill):
    fill("e1", 3)
    look("e1")
    assert look("e2").attempt("w8a8", "e2") == 2
    restore(database, "e2")
    assert look("e2").attempt("w8a8", "e2") == 1
    fill("e2", 3)
    assert look("e2").attempt("w8a8", "e2") == 1
    assert look("e3").attempt("w8a8", "e3") == 2


def test_of_two_restorations_the_latest_counts(database, look, fill):
    for epoch in ("e1", "e2", "e3"):
        fill(epoch, 3)
        look(epoch)
        restore(database, epoch)
    assert [look("e3").attempt("w8a8", epoch) for epoch in ("e1", "e2", "e3", "e4")] == [1, 2, 1, 2]


def test_a_skip_holds_for_its_epoch_until_it_is_undone(database, look):
    said = {"model": "m", "tier": "w8a8", "epoch": "e1", "actor": "ops", "at": 1.0}
    assert not undo_skip(database, reason=None, **said)
    assert intervene(database, Kind.SKIP, reason="known", **said)
    assert not intervene(database, Kind.SKIP, reason="again", **said)
    skip = look("e1").skipped("w8a8", "e1")
    assert (skip.reason, skip.actor) == ("known", "ops")
    assert look("e1").skipped("w8a8", "e2") is None
    assert look("e1").skipped("w4a16", "e1") is None
    assert not undo_skip(database, reason=None, **said | {"epoch": "e2"})
    assert undo_skip(database, reason="mended", **said)
    assert look("e1").skipped("w8a8", "e1") is None
    assert [entry.action for entry in read(database, "m")] == ["skip", "skip_undone"]
