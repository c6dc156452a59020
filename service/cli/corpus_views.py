"""The corpus as people see it in a terminal."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.cli.corpus_access import FILLING

if TYPE_CHECKING:
    from service.settings import Settings
    from service.store.kept.corpus_members import CorpusManifest
    from service.store.kept.forgetting import Forgotten


def show_corpora(settings: Settings, found: list[CorpusManifest], *, strata: bool) -> None:
    """A line for each corpus, and a table of its strata where they are asked for."""
    console = Console(highlight=False, soft_wrap=True)
    if not found:
        console.print(Text(f"no request is kept yet: {FILLING}"))
        if not settings.corpus.plan.per_stratum:
            console.print(Text("corpus.per_stratum is 0, so that nothing is drawn from traffic"))
        return
    table = Table(box=SIMPLE_HEAD)
    for heading in ("model", "corpus", "requests", "strata", "seen", "size", "digest"):
        table.add_column(heading, justify="right" if heading in ("requests", "strata", "seen") else "left")
    for each in found:
        seen = sum(stratum.seen for stratum in each.strata)
        table.add_row(
            Text(each.model),
            Text(each.name + (" *" if each.name == settings.corpus.use else "")),
            f"{len(each.members):,}",
            f"{sum(stratum.members > 0 for stratum in each.strata):,}",
            f"{seen:,}",
            size_of(each.size),
            each.digest[:12],
        )
    console.print(table)
    if any(each.name == settings.corpus.use for each in found):
        console.print(Text("* is what shadow jobs send (corpus.use)"))
    else:
        console.print(
            Text(
                f"shadow jobs send the corpus {settings.corpus.use} (corpus.use), which holds no request yet"
            )
        )
    if strata:
        for each in found:
            _show_strata(console, each)


def _show_strata(console: Console, found: CorpusManifest) -> None:
    table = Table(box=SIMPLE_HEAD, title=f"{found.model} {found.name}", title_justify="left")
    for heading in ("stratum", "tenant", "seen", "requests"):
        table.add_column(heading, justify="right" if heading in ("seen", "requests") else "left")
    for each in found.strata:
        table.add_row(Text(each.stratum), Text(each.tenant or "-"), f"{each.seen:,}", f"{each.members:,}")
    console.print(table)


def tell_forgotten(settings: Settings, gone: Forgotten, whose: str | None, *, as_json: bool) -> None:
    """What was taken away, and what may come yet."""
    hours = settings.proxy.mirroring.ttl_seconds / 3600
    if as_json:
        document = {
            "tenant": whose,
            "requests": gone.requests,
            "answers": gone.answers,
            "reasons": gone.reasons,
            "texts": gone.texts,
            "prefixes": gone.prefixes,
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return
    typer.echo(
        f"gone: {gone.requests:,} requests, {gone.answers:,} captures with answers, "
        f"{gone.reasons:,} reasons of pairs, {gone.texts:,} texts for people to judge, "
        f"{gone.prefixes:,} hashes of prompts"
    )
    if whose is not None:
        typer.echo(
            f"captures of tenant {whose} may still wait to be scored, and be kept then: "
            f"run this again in {hours:g} h",
            err=True,
        )


def size_of(amount: int) -> str:
    """Bytes for people."""
    size, unit = float(amount), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
