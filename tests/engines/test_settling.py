"""The clock of these tests is an argument: minutes pass at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from service.engines.facts import EngineFacts
from service.engines.settling import Settlement, Word, settle
from tests.engines.test_pages import vllm_facts

OLD = vllm_facts("auto", 46592)
NEW = replace(OLD, version="0.33.0")
LOOK = 30.0
"""Seconds between two looks."""

Told = Mapping[str, EngineFacts | None]
"""By backend; None when it does not answer."""


class Tier:
    """A tier that is looked at every half minute."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.state = Settlement()
        self.words: dict[str, Word] = {}
        self.opened: list[str] = []
        """Versions, as they settled."""

    def look(self, told: Told) -> Settlement:
        self.now += LOOK
        for backend, facts in told.items():
            if facts is not None:
                self.words[backend] = Word(backend=backend, facts=facts, at=self.now)
        before = self.state.settled
        self.state = settle(self.state, list(self.words.values()), now=self.now)
        settled = self.state.settled
        if settled is not None and (before is None or before.identity != settled.identity):
            self.opened.append(str(settled.version))
        return self.state

    def watch(self, minutes: float, told: Told | Callable[[float], Told]) -> Iterable[bool]:
        """Whether it was settled at each look; `told` may depend on the minutes since the start."""
        start = self.now
        seen = []
        while self.now - start < 60 * minutes:
            at = (self.now - start) / 60
            seen.append(not self.look(told(at) if callable(told) else told).unsettled)
        return seen


def test_the_first_identity_settles_at_once() -> None:
    tier = Tier()
    assert tier.look({"a": OLD}).settled == OLD
    assert tier.state.unsettled == ""


def test_a_tier_whose_engines_tell_nothing_is_settled_without_an_identity() -> None:
    tier = Tier()
    assert all(tier.watch(30, {"a": None}))
    assert tier.state == Settlement()


def test_replicas_that_disagree_are_unsettled_and_named() -> None:
    tier = Tier()
    tier.look({"http://a:1": OLD, "http://b:1": OLD})
    state = tier.look({"http://a:1": OLD, "http://b:1": NEW})
    assert state.settled == OLD
    assert state.unsettled == "its backends disagree: engine: http://a:1 vllm 0.32.0, http://b:1 vllm 0.33.0"


def test_replicas_that_disagree_from_the_first_settle_once_they_agree() -> None:
    tier = Tier()
    assert not any(tier.watch(60, {"a": OLD, "b": NEW}))
    assert tier.state.settled is None
    assert tier.look({"a": NEW, "b": NEW}).settled == NEW


def test_a_new_identity_counts_after_ten_minutes_of_agreement() -> None:
    tier = Tier()
    tier.watch(5, {"a": OLD})
    assert not any(tier.watch(10, {"a": NEW}))
    assert "its engine changed (engine: was vllm 0.32.0, is vllm 0.33.0)" in tier.state.unsettled
    assert all(tier.watch(5, {"a": NEW}))
    assert tier.opened == ["0.32.0", "0.33.0"]


def test_a_version_that_flaps_every_minute_for_an_hour_opens_one_new_epoch() -> None:
    tier = Tier()
    tier.watch(5, {"a": OLD})
    assert not any(tier.watch(60, lambda minute: {"a": NEW if int(minute) % 2 == 0 else OLD}))
    assert tier.opened == ["0.32.0"]
    tier.watch(30, {"a": NEW})
    assert tier.opened == ["0.32.0", "0.33.0"]


def test_a_rolling_upgrade_of_three_replicas_opens_one_new_epoch() -> None:
    tier = Tier()

    def version(backend: int, minute: float) -> EngineFacts | None:
        """Each in turn is down for three minutes and comes back as the new one, eight minutes apart."""
        down = 8.0 * backend
        return OLD if minute < down else None if minute < down + 3 else NEW

    def told(minute: float) -> Told:
        return {name: version(place, minute) for place, name in enumerate("abc")}

    tier.watch(5, dict.fromkeys("abc", OLD))
    # The last comes back after 19 minutes, and until then it is taken at its last word.
    settled = list(tier.watch(45, told))
    assert tier.opened == ["0.32.0", "0.33.0"]
    assert settled.index(False) == 6, "as soon as the first tells the new version"
    assert settled.index(True, 6) == 2 * (19 + 10)


def test_coming_back_counts_again_after_ten_minutes_and_is_nothing_new() -> None:
    tier = Tier()
    tier.watch(5, {"a": OLD})
    tier.watch(1, {"a": NEW})
    assert not any(tier.watch(10, {"a": OLD}))
    assert "agree again" in tier.state.unsettled
    assert all(tier.watch(5, {"a": OLD}))
    assert tier.opened == ["0.32.0"]


def test_a_backend_that_restarts_unchanged_disturbs_nothing() -> None:
    tier = Tier()
    tier.watch(5, {"a": OLD, "b": OLD})
    assert all(tier.watch(3, {"a": None, "b": OLD}))
    assert all(tier.watch(60, {"a": None, "b": None}))
    assert all(tier.watch(5, {"a": replace(OLD, kv_tokens=46464), "b": OLD}))
    assert tier.opened == ["0.32.0"]


def test_a_backend_that_is_gone_is_taken_at_its_word_for_ten_minutes_only() -> None:
    tier = Tier()
    tier.watch(5, {"a": OLD, "b": OLD})
    settled = list(tier.watch(30, {"a": None, "b": NEW}))
    assert tier.opened == ["0.32.0", "0.33.0"]
    assert settled.index(True) == 2 * (10 + 10)


def test_agreement_that_nobody_saw_does_not_count() -> None:
    tier = Tier()
    tier.watch(5, {"a": OLD})
    tier.watch(8, {"a": NEW})
    assert not any(tier.watch(30, {"a": None}))
    assert not any(tier.watch(10, {"a": NEW})), "the ten minutes begin anew"
    assert all(tier.watch(2, {"a": NEW}))


def test_a_look_without_an_answer_now_and_then_does_not_interrupt() -> None:
    tier = Tier()
    tier.watch(5, {"a": OLD})
    tier.watch(12, lambda minute: {"a": None if int(minute) % 2 else NEW})
    assert tier.opened == ["0.32.0", "0.33.0"]


def test_a_clock_that_is_set_back_asks_for_no_more_than_another_ten_minutes() -> None:
    tier = Tier()
    tier.watch(5, {"a": OLD, "b": OLD})
    tier.watch(9, {"a": NEW, "b": NEW})
    tier.now -= 3600.0
    settled = list(tier.watch(12, {"a": NEW, "b": NEW}))
    assert tier.opened == ["0.32.0", "0.33.0"]
    assert settled.index(True) == 2 * 10
    assert tier.state.settled_since is not None
    settled_since = tier.state.settled_since
    tier.now -= 3600.0
    tier.look({"a": NEW, "b": NEW})
    assert tier.state.settled_since == tier.now < settled_since, "or what is answered from now on is too old"


def test_a_word_from_before_the_clock_was_set_back_keeps_nobody_unsettled() -> None:
    tier = Tier()
    tier.watch(5, {"a": OLD, "b": OLD})
    tier.now -= 3600.0
    assert list(tier.watch(15, {"a": NEW, "b": None})).index(True) == 2 * 10


def test_guards_whose_clocks_are_a_little_apart_interrupt_nothing() -> None:
    tier = Tier()
    tier.look({"a": OLD})
    for _ in range(45):
        tier.look({"a": NEW})
        tier.now -= 10.0
    assert tier.opened == ["0.32.0", "0.33.0"]


def test_what_is_told_only_now_and_then_is_no_change() -> None:
    tier = Tier()
    less = replace(OLD, prefix_caching=None, memory_utilisation=None)
    tier.look({"a": OLD})
    assert all(tier.watch(60, lambda minute: {"a": less if int(minute) % 2 else OLD}))
    assert tier.opened == ["0.32.0"]


def test_silence_between_two_contradictions_does_not_hide_them() -> None:
    tier = Tier()
    less, off = replace(NEW, prefix_caching=None), replace(NEW, prefix_caching=False)
    tier.look({"a": OLD})
    tier.watch(4, {"a": NEW})
    tier.watch(4, {"a": less})
    assert not any(tier.watch(10, {"a": off})), "it agrees with the silence, and not with what was before"
    assert tier.look({"a": off}).settled == off
