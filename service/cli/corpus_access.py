"""What the commands of the corpus have in common: its options, the database, names that exist."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.configuration import fail
from service.cli.named import ladder_of

if TYPE_CHECKING:
    from service.settings import Settings
    from service.store.kept.corpus_members import CorpusManifest
    from service.store.sql.database import Database

BAD_LINES = 1
"""Exit status of an import that takes nothing, or not everything, and of an export of nothing."""
UNUSABLE = 2
FILLING = (
    "workers keep requests as they score captures of traffic, and `tiergate corpus import MODEL FILE` brings "
    "in a file of yours"
)

ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="The name that clients send.")]


def check_model(settings: Settings, model: str | None) -> None:
    """Refuse a model that the configuration does not have."""
    if model is not None:
        ladder_of(settings, model)


@contextmanager
def database_of(settings: Settings, *, make: bool = True) -> Iterator[Database]:
    """The database for as long as the block lasts; what is wrong with it ends the command."""
    from service.store.sql.database import StoreEmpty, StoreUnusable, open_database

    try:
        db = open_database(settings.database_url, make=make, part="shell")
        try:
            yield db
        finally:
            db.close()
    except StoreEmpty as error:
        raise fail(f"{error}, so nothing is kept yet; {FILLING}", UNUSABLE) from None
    except StoreUnusable as error:
        raise fail(str(error), UNUSABLE) from None


def manifest_of(settings: Settings, db: Database, model: str, name: str) -> CorpusManifest:
    """What a corpus is made of now."""
    from service.store.kept.corpus_members import manifest as made_of

    return made_of(db, model=model, name=name, per_stratum=settings.corpus.plan.per_stratum, now=time.time())
