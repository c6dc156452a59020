"""`/capacity`: advice about every tier of a ladder, and what to do where nothing is known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, event

from service.approval.tier_capacity import PROMPTS_SECONDS
from service.capacity.prefix_gate import Reading
from service.capacity.prefix_window import Look
from service.dashboard.capacity import held, lines
from service.engines.facts import EngineFacts
from service.engines.settling import Word
from service.report.words import Language, words
from service.store.kept.prompt_prefixes import PromptPrefix, keep_prefix_within
from service.store.load.engine_readings import record_readings
from service.store.verdicts.observations import record_look
from tests.approval.live import LiveApi
from tests.dashboard.house import CHAT, CODE, NAMES, browser
from tests.dashboard.visiting import words_of


def test_every_tier_has_its_part_and_says_what_is_missing(seen_site: LiveApi) -> None:
    page = browser(seen_site, "read").get("/capacity", params={"model": CODE})
    assert page.status_code == 200
    text = words_of(page.text)
    for name in NAMES[CODE]:
        assert f"{name} What the KV cache holds" in text
    assert "The guard keeps what backends that serve tell every 15 minutes" in text
    assert page.text.count("<h1>") == 1


def test_without_a_model_the_first_one_is_shown(seen_site: LiveApi) -> None:
    page = browser(seen_site, "read").get("/capacity")
    assert page.status_code == 200
    assert NAMES[CHAT][0] in words_of(page.text)


def test_engines_and_their_prefix_caches_are_shown_with_their_units(house_site: LiveApi) -> None:
    now, hour = house_site.clock.at, 3600.0
    facts = EngineFacts(
        engine="vllm", version="0.32.0", kv_dtype="fp8", kv_tokens=93184, kv_bytes=1 << 30, max_model_len=4096
    )
    record_look(house_site.db, {(CHAT, "bf16"): {"http://a:1": facts}}, now=now)
    for place in range(101):
        reading = Reading(prefill_tokens=1000.0 * place, reused_tokens=200.0 * place)
        look = Look(backend="http://a:1", at=now - 25 * hour + 900 * place, reading=reading, running=2.0)
        record_readings(house_site.db, {(CHAT, "bf16", "http://a:1"): look})
    text = words_of(browser(house_site, "read").get("/capacity", params={"model": CHAT}).text)
    assert "93,184 tok 1.00 GiB 22" in text
    assert "switch off 20.0% of prefill tokens are reused" in text
    assert "prompt tokens reused 20.00 %" in text


@contextmanager
def readings_of(table: str) -> Iterator[list[str]]:
    """Statements that read the table meanwhile."""
    met: list[str] = []

    def listen(connection: object, cursor: object, statement: str, *rest: object) -> None:
        if f"FROM {table}" in statement:
            met.append(statement)

    event.listen(Engine, "before_cursor_execute", listen)
    try:
        yield met
    finally:
        event.remove(Engine, "before_cursor_execute", listen)


def test_captured_prompts_are_read_for_all_tiers_at_once_and_again_after_a_minute(
    house_site: LiveApi,
) -> None:
    """Thousands of them, by a page that asks for itself every few seconds."""
    kept = PromptPrefix(
        capture_id="c1",
        model=CHAT,
        tenant="",
        at=house_site.clock.at - 60,
        tokens=64,
        named=(1,),
        share=0.1,
        together=False,
    )
    with house_site.db.write() as connection:
        keep_prefix_within(house_site.db, connection, kept, expires_at=house_site.clock.at + 1e6)
    visitor, counts = browser(house_site, "read"), []
    for seconds in (0.0, 5.0, PROMPTS_SECONDS):
        house_site.clock.at += seconds
        with readings_of("prompt_prefixes") as met:
            assert visitor.get("/capacity", params={"model": CHAT}).status_code == 200
        counts.append(len(met))
    assert len(NAMES[CHAT]) > 1
    assert counts == [3, 0, 3], "the present share, when it changed, and the prompts"


def test_it_is_there_in_chinese_and_refuses_unknown_models(seen_site: LiveApi) -> None:
    client = browser(seen_site, "read")
    assert "KV 缓存的容量" in client.get("/capacity", params={"model": CHAT, "lang": "zh"}).text
    assert client.get("/capacity", params={"model": "none"}).status_code == 404


def test_what_an_engine_does_not_tell_is_a_dash() -> None:
    told = held(Word(backend="http://a:1", facts=EngineFacts(engine="llama.cpp"), at=1.0))
    assert (told.tokens, told.size, told.sequences, told.dtype) == ("–", "–", "–", "–")
    assert lines(None, words(Language.EN)) == []
