"""What `tiergate capacity prefix` and `replay` read of the database: counters of a day, captured prompts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from service.cli.configuration import fail, load_or_exit, stored
from service.cli.named import ladder_of, tier_of

if TYPE_CHECKING:
    from service.capacity.prefix_gate import Window
    from service.capacity.prefix_replay import Prompt
    from service.store.sql.database import Database

WAITS = 3
"""Exit status where nothing was kept yet."""
_OTHERWISE = "where the guard keeps what engines tell, and workers what prompts begin with"


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """Prompts of a model in the order in which they were asked."""

    prompts: tuple[Prompt, ...]
    share: float
    """Of traffic, that they are a sample of."""
    together: float
    """Share of them that were sampled with their conversation."""


def observed_window(config: Path | None, model: str, tier: str) -> Window:
    """The last day of a tier, with what captured prompts tell of prefixes; ends the command without any."""
    from dataclasses import replace

    from service.capacity.prefix_shared import shared_prefixes
    from service.capacity.prefix_window import window_until
    from service.store.load.engine_readings import KEPT_SECONDS, read_looks
    from service.wire.prompt_blocks import UNIT_TOKENS

    now = time.time()
    with _database(config, model, "prefix", tier) as db:
        looks = read_looks(db, model, tier, since=now - KEPT_SECONDS)
        captured = _captured(db, model)
    window = window_until(looks, now=now)
    if window is None:
        heard = f"last at {_utc(max(look.at for look in looks))}" if looks else "not once"
        raise fail(
            f"tiergate capacity prefix: the backends of {model}/{tier} told no counters of a prefix cache "
            f"twice in the last hour ({heard}): the guard (`tiergate up`, or a worker of queue `guard` with "
            "beat) keeps what vLLM, SGLang and llama.cpp tell every 15 minutes; SGLang needs "
            "--enable-metrics, llama.cpp --metrics",
            WAITS,
        )
    shared = shared_prefixes(captured.prompts, unit=UNIT_TOKENS)
    if not shared.requests:
        return window
    return replace(window, prefixes=shared.prefixes, prefix_tokens=shared.prefix_tokens or 0.0)


def captured_prompts(config: Path | None, model: str) -> Captured:
    """What captured prompts of a model begin with; ends the command where nothing is kept."""
    with _database(config, model, "replay") as db:
        captured = _captured(db, model)
    if not captured.prompts:
        raise fail(
            f"tiergate capacity replay: no captured prompt of {model} is kept: workers keep hashes of "
            "beginnings as they score captures, unless `corpus.prefixes` is 0",
            WAITS,
        )
    return captured


def _captured(db: Database, model: str) -> Captured:
    from service.capacity.prefix_replay import Prompt
    from service.store.kept.prompt_prefixes import read_prefixes

    kept = read_prefixes(db, model)
    return Captured(
        prompts=tuple(
            Prompt(tokens=each.tokens, named=each.named, tenant=each.tenant or "(no key)") for each in kept
        ),
        share=kept[0].share if kept else 1.0,
        together=sum(each.together for each in kept) / len(kept) if kept else 0.0,
    )


@contextmanager
def _database(config: Path | None, model: str, command: str, tier: str | None = None) -> Iterator[Database]:
    settings = load_or_exit(config, make_key=False)
    ladder = ladder_of(settings, model, before=f"tiergate capacity {command}: ")
    if tier is not None:
        tier_of(ladder, tier, before=f"tiergate capacity {command}: ")
    with stored(settings, otherwise=_OTHERWISE) as db:
        yield db


def _utc(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
