"""Where tiers stand, read from real stores."""

from __future__ import annotations

from service.decision.verdict import Decision
from service.fleet import Backend, Ladder, Route, Tier
from service.store.decided.approvals import Approval, put_approval
from service.store.decided.routes import set_route
from service.store.redis.captures import open_captures
from service.store.sql.database import Database
from service.store.verdicts.rung import RungState
from service.store.verdicts.standing import Question, read_account, read_standing, route_of
from tests.approval.live import ENOUGH, WIDE, add_pairs

NOW = 1_800_000_000.0
URL = "http://127.0.0.1:9"


def ladder(*, shadow: bool = True) -> Ladder:
    return Ladder(
        model="m",
        tiers=tuple(
            Tier(
                name=name,
                model="m",
                backends=(Backend(url=URL),),
                shadow=(Backend(url=URL),) if shadow else (),
            )
            for name in ("bf16", "w8a8", "w4a16")
        ),
    )


QUESTION = Question(policy=WIDE, epoch_of=lambda model, tier: f"epoch of {tier}")


def states(db: Database, now: float = NOW) -> list[RungState]:
    return [rung.state for rung in read_standing(db, ladder(), QUESTION, now=now).rungs]


def pairs(db: Database, tier: str, **counts: int) -> None:
    add_pairs(db, tier, epoch=f"epoch of {tier}", model="m", **counts)


def approve(db: Database, tier: str, *, expires_at: float | None = None) -> None:
    put_approval(
        db,
        Approval(
            model="m",
            tier=tier,
            actor="ci",
            at=NOW,
            expires_at=expires_at,
            epoch="e",
            policy_digest="p",
            verdict={"decision": "accept"},
        ),
    )


def test_a_new_ladder_shadows_above_its_baseline(database: Database) -> None:
    assert states(database) == [RungState.BASELINE, RungState.SHADOWING, RungState.SHADOWING]
    assert route_of(database, ladder()) == Route.only("m", "bf16")


def test_a_tier_goes_from_shadowing_to_its_verdict_to_approved_to_expired(database: Database) -> None:
    pairs(database, "w8a8", clean=2)
    assert states(database)[1] is RungState.UNDECIDED
    pairs(database, "w8a8", clean=ENOUGH)
    assert states(database)[1] is RungState.ACCEPT
    approve(database, "w8a8", expires_at=NOW + 60)
    assert states(database)[1] is RungState.APPROVED
    assert states(database, now=NOW + 60)[1] is RungState.EXPIRED


def test_harm_shows_as_reject_and_an_approval_stays_until_it_is_taken_back(database: Database) -> None:
    pairs(database, "w8a8", harm=ENOUGH)
    assert states(database)[1] is RungState.REJECT
    approve(database, "w8a8")
    standing = read_standing(database, ladder(), QUESTION, now=NOW)
    assert standing.rung("w8a8").state is RungState.APPROVED
    verdict = standing.rung("w8a8").verdict
    assert verdict is not None
    assert verdict.decision is Decision.REJECT


def test_a_rung_waits_for_the_one_below_and_both_look_up_the_same_way(database: Database) -> None:
    pairs(database, "w4a16", clean=ENOUGH)
    whole = read_standing(database, ladder(), QUESTION, now=NOW)
    assert whole.rung("w4a16").below is Decision.UNDECIDED
    assert whole.rung("w4a16").state is RungState.UNDECIDED
    part = read_standing(database, ladder(), QUESTION, now=NOW, up_to="w8a8")
    assert [rung.tier.name for rung in part.rungs] == ["bf16", "w8a8"]
    assert part.rung("w8a8") == whole.rung("w8a8")


def test_weights_come_from_the_route_in_force(database: Database) -> None:
    set_route(database, Route(model="m", weights={"bf16": 75, "w8a8": 25}), at=NOW, actor="ci")
    rungs = read_standing(database, ladder(), QUESTION, now=NOW).rungs
    assert [rung.weight for rung in rungs] == [75, 25, 0]


def test_there_is_capacity_for_a_control_where_the_baseline_may_be_replayed(database: Database) -> None:
    def control(*, shadow: bool, on_serving: bool) -> object:
        question = Question(policy=WIDE, epoch_of=QUESTION.epoch_of, control_on_serving=on_serving)
        rung = read_standing(database, ladder(shadow=shadow), question, now=NOW).rung("w8a8")
        assert rung.evidence is not None
        return rung.evidence.control

    assert control(shadow=True, on_serving=False) == {}
    assert control(shadow=False, on_serving=True) == {}
    assert control(shadow=False, on_serving=False) is None
    set_route(database, Route.only("m", "w8a8"), at=NOW, actor="ci")
    assert control(shadow=False, on_serving=False) == {}, "the baseline serves nobody any more"


def test_control_pairs_that_exist_count_though_no_more_can_come(database: Database) -> None:
    add_pairs(database, "bf16", epoch="epoch of bf16", model="m", arm="control", clean=2)
    rung = read_standing(database, ladder(shadow=False), QUESTION, now=NOW).rung("w8a8")
    assert rung.evidence is not None
    assert rung.evidence.control is not None
    assert rung.evidence.control["refusal"].n == 2


def test_every_sentence_ends_with_one_full_stop(database: Database) -> None:
    pairs(database, "w8a8", clean=ENOUGH)
    for rung in read_standing(database, ladder(), QUESTION, now=NOW).rungs:
        assert rung.sentence.endswith(".")
        assert not rung.sentence.endswith("..")


def test_the_account_without_redis_says_so(database: Database, free_port: int) -> None:
    captures = open_captures(f"redis://127.0.0.1:{free_port}/0", timeout=0.2)
    try:
        account = read_account(database, captures, "m", now=NOW)
    finally:
        captures.close()
    assert account.seen == 0
    assert any("Redis does not answer" in problem for problem in account.problems)
