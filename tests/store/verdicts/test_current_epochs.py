"""Declared facts and what engines tell, together. The clock is an argument: an hour passes at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from service.engines.facts import EngineFacts
from service.fleet import Backend, Ladder, Tier
from service.store.sql.database import Database
from service.store.verdicts.current_epochs import CurrentEpochs, known_epochs, read_epochs, record_epochs
from service.store.verdicts.observations import record_look
from service.store.verdicts.standing import Question, read_standing
from tests.approval.live import ENOUGH, WIDE, add_pairs
from tests.engines.test_pages import vllm_facts

NOW = 1_800_000_000.0
OLD = vllm_facts("auto", 46592)
NEW = replace(OLD, version="0.33.0")
REPLICAS = ("http://b:1", "http://c:1", "http://d:1")
LADDERS = {
    "m": Ladder(
        model="m",
        tiers=(
            Tier(name="bf16", model="m", backends=(Backend(url="http://a:1"),)),
            Tier(name="w8a8", model="m", backends=tuple(Backend(url=url) for url in REPLICAS)),
            Tier(name="w4a16", model="m", backends=(Backend(url="http://e:1"),)),
        ),
    )
}


def declared(model: str, tier: str) -> Mapping[str, object]:
    return {"model": model, "tier": tier, "margin": 0.01}


def current(db: Database) -> CurrentEpochs:
    return read_epochs(db, LADDERS, declared)


class Guard:
    """Looks at the engines every half minute; pairs of w8a8 count whenever they belong somewhere."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.now = NOW
        self.attempts: list[int] = []
        self.counted: set[str] = set()

    def look(self, *, baseline: EngineFacts | None, tier: Mapping[str, EngineFacts | None]) -> None:
        self.now += 30
        told = {("m", "bf16"): {"http://a:1": baseline}, ("m", "w8a8"): dict(tier)}
        record_look(self.db, told, now=self.now)
        record_epochs(self.db, LADDERS, declared, now=self.now)

    def count(self) -> None:
        """Enough pairs for a verdict, if the tier is settled; and somebody looks at it."""
        epochs = current(self.db)
        epoch = epochs.epoch_of("m", "w8a8")
        if not epochs.unsettled_of("m", "w8a8") and epoch not in self.counted:
            self.counted.add(epoch)
            add_pairs(self.db, "w8a8", epoch=epoch, model="m", clean=ENOUGH)
        question = Question(policy=WIDE, epoch_of=epochs.epoch_of, attribution_of=epochs.attribution_of)
        evidence = read_standing(self.db, LADDERS["m"], question, now=self.now).rung("w8a8").evidence
        assert evidence is not None
        self.attempts.append(evidence.attempt)

    def watch(self, minutes: float, version: Callable[[float], Mapping[str, EngineFacts | None]]) -> None:
        start = self.now
        while self.now - start < 60 * minutes:
            self.look(baseline=OLD, tier=version((self.now - start) / 60))


def everywhere(facts: EngineFacts) -> Mapping[str, EngineFacts | None]:
    return dict.fromkeys(REPLICAS, facts)


def test_an_epoch_hashes_what_is_declared_and_what_the_engines_are(database: Database) -> None:
    untold = current(database).epoch_of("m", "w8a8")
    guard = Guard(database)
    guard.look(baseline=OLD, tier=everywhere(OLD))
    told = current(database).epoch_of("m", "w8a8")
    assert told != untold
    changed = read_epochs(database, LADDERS, lambda model, tier: {**declared(model, tier), "margin": 0.02})
    assert changed.epoch_of("m", "w8a8") not in (told, untold)


def test_a_baseline_that_changes_opens_an_epoch_of_every_tier(database: Database) -> None:
    guard = Guard(database)
    guard.look(baseline=OLD, tier=everywhere(OLD))
    before = [current(database).epoch_of("m", tier.name) for tier in LADDERS["m"].tiers]
    for _ in range(22):
        guard.look(baseline=NEW, tier=everywhere(OLD))
    after = [current(database).epoch_of("m", tier.name) for tier in LADDERS["m"].tiers]
    assert not set(before) & set(after)


def test_a_tier_is_unsettled_with_its_baseline_and_says_whose_engines_they_are(database: Database) -> None:
    guard = Guard(database)
    guard.look(baseline=OLD, tier=everywhere(OLD))
    epoch = current(database).epoch_of("m", "w8a8")
    guard.look(baseline=NEW, tier={**everywhere(OLD), "http://c:1": NEW})
    epochs = current(database)
    assert epochs.epoch_of("m", "w8a8") == epoch, "no other opens"
    why = epochs.unsettled_of("m", "w8a8")
    assert "bf16: its engine changed (engine: was vllm 0.32.0, is vllm 0.33.0)" in why
    assert "w8a8: its backends disagree: engine: http://b:1 vllm 0.32.0, http://c:1 vllm 0.33.0" in why
    assert epochs.unsettled_of("m", "bf16").startswith("bf16: its engine changed")
    attribution = epochs.attribution_of("m", "w8a8")
    assert attribution is not None
    assert attribution.unsettled == why


def test_attribution_compares_the_settled_engines_of_tier_and_baseline(database: Database) -> None:
    assert current(database).attribution_of("m", "w8a8") is None
    guard = Guard(database)
    guard.look(baseline=OLD, tier=everywhere(NEW))
    found = current(database).attribution_of("m", "w8a8")
    assert found is not None
    assert found.differences == ("engine: baseline vllm 0.32.0, candidate vllm 0.33.0",)
    assert "chat template (by neither)" in found.not_told
    assert current(database).attribution_of("m", "w4a16") is None, "it told nothing"


def test_a_version_that_flaps_every_minute_for_an_hour_opens_one_new_epoch(database: Database) -> None:
    guard = Guard(database)
    guard.watch(5, lambda minute: everywhere(OLD))
    guard.count()
    for minute in range(60):
        facts = NEW if minute % 2 == 0 else OLD
        guard.watch(1, lambda _, facts=facts: everywhere(facts))  # type: ignore[misc]
        guard.count()
    guard.watch(30, lambda minute: everywhere(NEW))
    guard.count()
    assert len(known_epochs(database, "m", "w8a8")) == 2
    assert guard.attempts == [1] * 61 + [2]


def test_a_rolling_upgrade_of_three_replicas_opens_one_new_epoch(database: Database) -> None:
    def version(minute: float) -> Mapping[str, EngineFacts | None]:
        """Each in turn is down for two minutes, five minutes after the one before."""
        upgraded = {url: minute - 5 * place for place, url in enumerate(REPLICAS)}
        return {url: OLD if since < 0 else None if since < 2 else NEW for url, since in upgraded.items()}

    guard = Guard(database)
    guard.watch(5, lambda minute: everywhere(OLD))
    guard.count()
    guard.watch(40, version)
    guard.count()
    assert len(known_epochs(database, "m", "w8a8")) == 2
    assert guard.attempts == [1, 2]


def test_going_back_resumes_the_epoch_and_its_number(database: Database) -> None:
    guard = Guard(database)
    for facts in (OLD, NEW, OLD):
        guard.watch(12, lambda _, facts=facts: everywhere(facts))  # type: ignore[misc]
        guard.count()
    assert len(known_epochs(database, "m", "w8a8")) == 2
    assert guard.attempts == [1, 2, 1]


def test_what_an_epoch_was_is_written_down_once(database: Database) -> None:
    guard = Guard(database)
    guard.look(baseline=OLD, tier=everywhere(NEW))
    guard.look(baseline=OLD, tier=everywhere(NEW))
    (known,) = known_epochs(database, "m", "w8a8")
    assert known.epoch == current(database).epoch_of("m", "w8a8")
    assert known.first_seen == NOW + 30
    assert known.facts == {
        **declared("m", "w8a8"),
        "engines": {"baseline": OLD.identity, "tier": NEW.identity},
    }


def test_live_answers_count_from_the_beginning_of_the_agreement(database: Database) -> None:
    guard = Guard(database)
    guard.look(baseline=OLD, tier=everywhere(OLD))
    assert current(database).since_of("m", "bf16") == 0.0
    for _ in range(22):
        guard.look(baseline=NEW, tier=everywhere(OLD))
    assert current(database).since_of("m", "bf16") == NOW + 60
    assert current(database).since_of("m", "w8a8") == 0.0
