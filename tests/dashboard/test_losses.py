"""What was lost, by why; what became of pairs, and which of it stands out."""

from __future__ import annotations

from dataclasses import replace

from service.dashboard.losses import losses_of, pair_lines
from service.dashboard.sentences import sentences
from service.report.words import Language, words
from service.store.redis.counters import Dropped
from service.store.traffic.account import LedgerAccount, PairAccount

WHOLE = LedgerAccount(
    model="m",
    seen=1000,
    skipped={"not_sampled": 800},
    sampled=200,
    shipped=200,
    dropped={},
    processed=200,
    expired=0,
    lost=0,
    waiting=0,
    in_flight=0,
    unaccounted=0,
    balanced=True,
    problems=(),
)
SAY, REPORT = sentences(Language.EN), words(Language.EN)


def pairs(**changes: object) -> PairAccount:
    told = {"due": 100, "scored": 100, "unscored": {}, "not_applicable": 0, "over_budget": 0}
    return PairAccount(
        model="m",
        tier="w8a8",
        arm="candidate",
        evaluator="refusal",
        **told | changes,  # type: ignore[arg-type]
    )


def test_a_whole_account_has_no_losses() -> None:
    assert losses_of(WHOLE) == ()


def test_losses_come_by_size_with_the_share_of_what_could_have_been_lost() -> None:
    account = replace(WHOLE, dropped={"buffer_full": 20, "store_down": 0}, expired=5, lost=40, unaccounted=2)
    found = losses_of(account)
    assert [(each.kind, each.count, each.share, each.of) for each in found] == [
        ("lost", 40, 0.2, "shipped"),
        ("buffer_full", 20, 0.1, "sampled"),
        ("expired", 5, 0.025, "shipped"),
        ("unaccounted", 2, 0.002, "seen"),
    ]


def test_every_kind_of_loss_has_its_words_and_what_to_do_in_every_language() -> None:
    kinds = [*(each.value for each in Dropped), "expired", "lost", "unaccounted"]
    for language in Language:
        say = sentences(language)
        assert all(say(f"{table}.{kind}") for table in ("loss", "remedy") for kind in kinds)


def test_pairs_that_few_could_be_scored_of_stand_out() -> None:
    account = replace(
        WHOLE,
        pairs=(
            pairs(),
            pairs(scored=80, unscored={"shadow": 12, "unsupported_schema": 8}),
            pairs(scored=10, not_applicable=85, over_budget=5),
            pairs(due=101),
        ),
    )
    clean, few, enough, wrong = pair_lines(account, SAY, REPORT)
    assert (clean.tone, clean.remark) == ("", "")
    assert clean.cells == (
        "w8a8", "candidate", "refusal", "100", "100", "100.0 %", "0", "0", "0",
    )  # fmt: skip
    assert (few.tone, few.remark, few.cells[6]) == (
        "wait",
        "80.0 % scored",
        "shadow 12, unsupported schema 8",
    )
    assert enough.tone == "", "what had nothing to say and what nobody paid for is no failure to score"
    assert (wrong.tone, wrong.remark) == ("bad", "does not add up")
