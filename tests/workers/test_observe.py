"""Real servers with the pages of engines; the clock is an argument."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import replace

import pytest

from service.engines.facts import UNTOLD, EngineFacts
from service.fleet import Backend, Ladder, Tier
from service.store.load.engine_readings import read_looks
from service.store.sql.database import Database
from service.store.verdicts.current_epochs import known_epochs
from service.store.verdicts.observations import read_settlements, read_words
from tests.engines.test_pages import (
    LLAMA_CPP,
    LLAMA_CPP_FACTS,
    SGLANG,
    SGLANG_FACTS,
    vllm_facts,
    vllm_metrics,
)
from tests.launch.conftest import models_page, serving
from workers.observe import AT_ONCE, Patience, observe

NOW = 1_800_000_000.0
Pages = dict[str, tuple[int, str]]


def vllm(version: str = "0.32.0", **changes: tuple[int, str]) -> Pages:
    return {
        "/v1/models": (200, models_page("qwen")),
        "/version": (200, f'{{"version":"{version}"}}'),
        "/metrics": (200, vllm_metrics("auto", 46592)),
        **changes,
    }


def tier(name: str, *urls: str, shadow: tuple[str, ...] = (), model: str = "qwen", **more: str) -> Tier:
    return Tier(
        name=name,
        model=model,
        backends=tuple(Backend(url=url, **more) for url in urls),
        shadow=tuple(Backend(url=url, **more) for url in shadow),
    )


def look(db: Database, *tiers: Tier, now: float = NOW, patience: Patience | None = None) -> None:
    ladders = {"m": Ladder(model="m", tiers=tiers)}
    observe(db, ladders, declared, now=now, patience=patience)


def declared(model: str, tier: str) -> Mapping[str, object]:
    return {"model": model, "tier": tier}


def settled(db: Database, tier: str) -> EngineFacts | None:
    return read_settlements(db)["m", tier].settled


def test_every_backend_of_every_pool_is_asked_who_it_is(db: Database) -> None:
    llama = {"/v1/models": (200, models_page("qwen")), "/props": (200, LLAMA_CPP)}
    sglang = {"/v1/models": (200, models_page("qwen")), "/server_info": (200, SGLANG)}
    with serving(vllm()) as a, serving(vllm()) as b, serving(llama) as c, serving(sglang) as d:
        look(db, tier("bf16", a, shadow=(b,)), tier("w8a8", c), tier("w4a16", shadow=(d,)))
        assert [word.backend for word in read_words(db, "m", "bf16")] == sorted([a, b])
    assert settled(db, "bf16") == vllm_facts("auto", 46592)
    assert settled(db, "w8a8") == LLAMA_CPP_FACTS
    assert settled(db, "w4a16") == SGLANG_FACTS
    assert len(known_epochs(db, "m", "w8a8")) == 1


def test_the_longest_context_is_that_of_the_model_which_the_tier_serves(db: Database) -> None:
    listing = '{"data": [{"id": "qwen", "max_model_len": 32768}, {"id": "lora", "max_model_len": 8192}]}'
    with serving(vllm(**{"/v1/models": (200, listing)})) as url:
        look(db, tier("bf16", url), tier("lora", url, model="lora"))
    assert settled(db, "bf16") == replace(vllm_facts("auto", 46592), max_model_len=32768)
    assert settled(db, "lora") == replace(vllm_facts("auto", 46592), max_model_len=8192)


@pytest.mark.parametrize(
    "pages",
    [
        {},
        {"/v1/models": (503, "")},
        {"/v1/models": (200, "<html>")},
        {"/v1/models": (200, models_page("another"))},
        vllm(**{"/metrics": (500, "")}),
        vllm(**{"/version": (503, "")}),
        vllm(**{"/metrics": (429, "")}),
    ],
)
def test_a_backend_that_answers_badly_or_in_part_keeps_its_last_word(pages: Pages, db: Database) -> None:
    served = vllm()
    with serving(served) as url:
        look(db, tier("bf16", url))
        served.clear()
        served.update(pages)
        look(db, tier("bf16", url), now=NOW + 30)
        (word,) = read_words(db, "m", "bf16")
    assert (word.at, word.facts.version) == (NOW, "0.32.0")
    assert read_settlements(db)["m", "bf16"].unsettled == ""


def test_who_told_once_and_answers_without_telling_now_has_changed(db: Database) -> None:
    served = vllm()
    with serving(served) as url:
        look(db, tier("bf16", url))
        for name in ("/version", "/metrics"):
            served[name] = (404, "")
        look(db, tier("bf16", url), now=NOW + 30)
        assert "is unknown (version not told)" in read_settlements(db)["m", "bf16"].unsettled
        for number in range(2, 23):
            look(db, tier("bf16", url), now=NOW + 30 * number)
    assert read_settlements(db)["m", "bf16"].settled == EngineFacts(engine=UNTOLD)
    assert len(known_epochs(db, "m", "bf16")) == 2


def test_who_never_told_is_silent(db: Database) -> None:
    with serving({"/v1/models": (200, models_page("qwen"))}) as url:
        look(db, tier("bf16", url))
    assert read_settlements(db) == {}


def test_one_that_hangs_and_one_that_is_not_there_hold_up_nobody(db: Database) -> None:
    with serving(vllm()) as well, socket.create_server(("127.0.0.1", 0)) as silent:
        hanging = f"http://127.0.0.1:{silent.getsockname()[1]}"
        look(
            db,
            tier("bf16", hanging, "http://127.0.0.1:9", well),
            patience=Patience(page=60.0, look=2.0),
        )
        assert [word.backend for word in read_words(db, "m", "bf16")] == [well]
    assert settled(db, "bf16") == vllm_facts("auto", 46592)


def test_the_backends_key_goes_with_the_questions(db: Database) -> None:
    with serving(vllm(), api_key="right") as url:
        look(db, tier("bf16", url, api_key="right"))
        assert settled(db, "bf16") is not None
        look(db, tier("w8a8", url, api_key="wrong"))
    assert ("m", "w8a8") not in read_settlements(db)


def test_a_change_is_told_once_with_what_was_and_what_is(
    db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    served = vllm()
    with serving(served) as url:
        for minute, version in enumerate(["0.32.0", "0.32.0"] + ["0.33.0"] * 12):
            served.update(vllm(version))
            look(db, tier("bf16", url), now=NOW + 60 * minute)
    told = [record.getMessage() for record in caplog.records if record.name == "tiergate.engines"]
    assert len(told) == 2
    assert "unsettled" in told[0]
    assert "was vllm 0.32.0, is vllm 0.33.0" in told[0]
    assert told[1] == "m/bf16 is settled again: vllm 0.33.0"
    assert len(known_epochs(db, "m", "bf16")) == 2


def test_an_hour_of_flapping_with_broken_pages_opens_one_new_epoch(db: Database) -> None:
    """From sockets to epochs: a replica that comes and goes as another version, whatever its pages are."""
    page = vllm_metrics("auto", 46592)
    oddities = (
        page[: len(page) // 2],
        page.replace("46592", "9" * 400),
        page.replace("0.92", "NaN"),
        page.encode("utf-16").decode("utf-8", "replace"),
        "\x00" * 1000,
        "",
        page + "# x\n" * 1_500_000,  # beyond what is read of a page
    )
    flapping, steady, baseline = vllm(), vllm(), vllm()
    with serving(flapping) as a, serving(steady) as b, serving(baseline) as c:
        tiers = tier("bf16", c), tier("w8a8", a, b)
        look(db, *tiers)
        for minute in range(1, 61):
            odd = oddities[minute % len(oddities)] if minute % 3 == 0 else page
            flapping.update(vllm("0.33.0" if minute % 2 else "0.32.0", **{"/metrics": (200, odd)}))
            look(db, *tiers, now=NOW + 60 * minute)
            assert len(known_epochs(db, "m", "w8a8")) == 1
        assert settled(db, "w8a8") == settled(db, "bf16") == vllm_facts("auto", 46592)
        flapping.update(vllm("0.33.0"))
        steady.update(vllm("0.33.0"))
        for minute in range(61, 73):
            look(db, *tiers, now=NOW + 60 * minute)
    assert settled(db, "w8a8") == replace(vllm_facts("auto", 46592), version="0.33.0")
    assert len(known_epochs(db, "m", "w8a8")) == 2
    assert len(known_epochs(db, "m", "bf16")) == 1


def test_more_slow_backends_than_are_asked_at_a_time_keep_no_later_tier_unheard(db: Database) -> None:
    with serving(vllm()) as well, socket.create_server(("127.0.0.1", 0)) as silent:
        hanging = [f"http://127.0.0.1:{silent.getsockname()[1]}/{number}" for number in range(AT_ONCE)]
        look(
            db,
            tier("bf16", *hanging),
            tier("w8a8", well),
            patience=Patience(page=60.0, backend=1.0, look=60.0),
        )
    assert settled(db, "w8a8") == vllm_facts("auto", 46592)


COUNTERS = """
vllm:prefix_cache_queries_total{engine="0"} %d.0
vllm:prefix_cache_hits_total{engine="0"} 48.0
vllm:num_requests_running{engine="0"} 3.0
"""


def test_counters_of_prefix_caches_are_kept_of_serving_backends_four_times_an_hour(db: Database) -> None:
    metrics = vllm_metrics("auto", 46592)
    served = vllm(**{"/metrics": (200, metrics + COUNTERS % 150)})
    with serving(served) as url, serving(vllm(**{"/metrics": (200, metrics + COUNTERS % 9)})) as shadow:
        for minutes in (0, 1, 14, 15, 31):
            look(db, tier("bf16", url, shadow=(shadow,)), now=NOW + 60 * minutes)
            served["/metrics"] = (200, metrics + COUNTERS % (151 + minutes))
    found = read_looks(db, "m", "bf16", since=0.0)
    assert [(each.at - NOW, each.reading.prefill_tokens, each.running) for each in found] == [
        (0, 150, 3),
        (900, 165, 3),
        (1860, 166, 3),
    ]
    assert {each.backend for each in found} == {url}


def test_sglang_is_asked_for_its_metrics_only_when_a_reading_is_due(db: Database) -> None:
    class Counting(dict[str, tuple[int, str]]):
        asked = 0

        def get(self, path: str, otherwise: object = None) -> object:  # type: ignore[override]
            self.asked += path == "/metrics"
            return super().get(path, otherwise)

    counters = "sglang:prompt_tokens_total 900.0\nsglang:cached_tokens_total 300.0\n"
    pages = Counting(
        {
            "/v1/models": (200, models_page("qwen")),
            "/server_info": (200, SGLANG),
            "/metrics": (200, counters),
        }
    )
    with serving(pages) as url:
        for seconds in (0, 30, 60):
            look(db, tier("bf16", url), now=NOW + seconds)
        assert pages.asked == 1
        pages["/metrics"] = (404, "")
        look(db, tier("bf16", url), now=NOW + 900)
    [found] = read_looks(db, "m", "bf16", since=0.0)
    assert (found.reading.prefill_tokens, found.reading.reused_tokens) == (900, 300)
    assert settled(db, "bf16") == SGLANG_FACTS


def test_who_tells_its_metrics_badly_still_says_who_it_is(db: Database) -> None:
    pages = {"/v1/models": (200, models_page("qwen")), "/server_info": (200, SGLANG), "/metrics": (503, "")}
    with serving(pages) as url:
        look(db, tier("bf16", url))
    assert settled(db, "bf16") == SGLANG_FACTS
    assert read_looks(db, "m", "bf16", since=0.0) == []
