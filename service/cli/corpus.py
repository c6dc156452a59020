"""`tiergate corpus`: what is kept of requests for shadow jobs; in, out, and forgotten.

Reads and writes the database of the configuration, whether the API runs or not.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.configuration import ConfigOption, JsonOption, fail, load_or_exit
from service.cli.corpus_access import (
    BAD_LINES,
    UNUSABLE,
    ModelArgument,
    check_model,
    database_of,
    manifest_of,
)
from service.cli.corpus_import import import_file
from service.cli.corpus_views import show_corpora, size_of, tell_forgotten
from service.cli.writing import write, writing

if TYPE_CHECKING:
    from service.settings import Settings

corpus_app = typer.Typer(
    no_args_is_help=True,
    help="Requests that are kept for shadow jobs: drawn from traffic, or imported.",
)

NameOption = Annotated[
    str | None,
    typer.Option("--name", help="The corpus; `traffic` is what was drawn. Default: what corpus.use says."),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    docs = "Docs: docs/shadow-job.md"
    corpus_app.command("show", epilog=docs)(show)
    corpus_app.command("import", epilog=docs)(import_file)
    corpus_app.command("export", epilog=docs)(export)
    corpus_app.command("manifest", epilog=docs)(manifest)
    corpus_app.command("forget", epilog=docs)(forget)
    app.add_typer(corpus_app, name="corpus")


def show(
    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help="With its strata; all models when left out.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """What is kept: requests by corpus, the strata they are drawn from, answers to be judged again.

    A stratum is the length of a request, whether it asks for structure, whether it streams, its language;
    each for each tenant. Of every one at most `corpus.per_stratum` requests stay, those with the smallest
    ranks: a keyed hash, so that neither clients nor answers have a say. `seen` is how many there were to draw
    from; a request stands for seen / requests of them where numbers are weighted back to the traffic.

    \b
    Is there enough for a shadow job?
      tiergate corpus show
    Which kinds of requests are missing?
      tiergate corpus show qwen3-32b
    """
    settings = load_or_exit(config, make_key=False)
    check_model(settings, model)
    from service.store.kept.corpus_members import corpora
    from service.store.kept.kept_answers import kept_counts

    with database_of(settings, make=False) as db:
        found = [
            manifest_of(settings, db, of, name) for of, name in corpora(db) if model is None or of == model
        ]
        kept = {of: count for of, count in kept_counts(db).items() if model is None or of == model}
    document = {
        "corpora": [{**each.document(), "members": None} for each in found],
        "answers": {of: {"captures": count.captures, "bytes": count.size} for of, count in kept.items()},
    }
    if as_json:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return
    show_corpora(settings, found, strata=model is not None)
    for of, count in kept.items():
        typer.echo(
            f"{of}: {count.captures:,} captures with all answers, {size_of(count.size)}, to be judged again"
        )


def export(
    model: ModelArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write; - for standard output.")],
    name: NameOption = None,
    config: ConfigOption = None,
) -> None:
    """Write a corpus as OpenAI batch lines, opened: whoever reads the file reads the prompts.

    The file is made readable for its owner alone. What it holds was masked before it was kept. Imported
    again, it is the same corpus with the same digest, which `tiergate corpus manifest` shows.

    \b
      tiergate corpus export qwen3-32b -o corpus.jsonl
      tiergate corpus export qwen3-32b -o - | jq -r .body.messages[0].content
    """
    settings = load_or_exit(config, make_key=False)
    check_model(settings, model)
    from service.cli.corpus_files import batch_lines
    from service.store.kept.corpus_members import opened

    chosen = name or settings.corpus.use
    with database_of(settings, make=False) as db:
        members = opened(
            db,
            settings.keyring,
            model=model,
            name=chosen,
            per_stratum=settings.corpus.plan.per_stratum,
            now=time.time(),
        )
        lines = batch_lines(members)
        if str(output) == "-":
            amount = sum(1 for line in lines if sys.stdout.write(line + "\n"))
        else:
            with writing(output, status=UNUSABLE, private=True) as file:
                amount = sum(1 for line in lines if file.write(line + "\n"))
    typer.echo(f"{amount:,} requests of the corpus {chosen} of {model}", err=True)
    if not amount:
        raise typer.Exit(BAD_LINES)


def manifest(
    model: ModelArgument,
    name: NameOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; standard output when left out.")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Print what a corpus is made of, as JSON: its strata, the digest of each request, one digest of all.

    No text is in it. `digest` is sha256 over the sorted digests of the requests, a line each: the same
    requests give the same digest, wherever they were put together. A shadow job's manifest names it.

    \b
      tiergate corpus manifest qwen3-32b | jq -r .digest
    """
    settings = load_or_exit(config, make_key=False)
    check_model(settings, model)
    with database_of(settings, make=False) as db:
        found = manifest_of(settings, db, model, name or settings.corpus.use)
    text = json.dumps(found.document(), indent=2)
    if output is None:
        typer.echo(text)
    else:
        write(output, text + "\n", status=UNUSABLE)


def forget(
    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help="Whose corpus, with --name or --answers.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="The corpus to take away.")] = None,
    answers: Annotated[
        bool, typer.Option("--answers", help="Take away the answers that are kept of MODEL.")
    ] = False,
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="Take away every text of one tenant, of all models.")
    ] = None,
    api_key_file: Annotated[
        Path | None,
        typer.Option(
            "--api-key-file", help="The same for the tenant whose API key is the file's first line."
        ),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take away what is kept: a corpus, a model's answers, or every text of one tenant. At once, for good.

    A tenant is the keyed hash of its API key, as `tiergate corpus show MODEL` prints it. Its requests, its
    answers, what people were to judge and the reasons beside its pairs, which quote answers, go; counts and
    verdicts stay, since nobody can tell from them what was said. Captures that still wait to be scored are
    sealed, so nobody knows whose they are: ask again once `mirror.capture.ttl` has passed.

    \b
      tiergate corpus forget qwen3-32b --name azure
      tiergate corpus forget --api-key-file leaving-customer.key
    """
    settings = load_or_exit(config, make_key=False)
    check_model(settings, model)
    from service.store.kept.forgetting import Forgotten, forget_answers, forget_corpus, forget_tenant

    whose = _tenant(settings, tenant, api_key_file)
    if whose is None and (model is None or (name is None and not answers)):
        raise typer.BadParameter(
            "say what: MODEL with --name CORPUS or --answers, or --tenant, or --api-key-file"
        )
    gone = Forgotten()
    with database_of(settings, make=False) as db:
        if whose is not None:
            gone = gone.plus(forget_tenant(db, whose))
        if model is not None and name is not None:
            gone = gone.plus(forget_corpus(db, model=model, name=name))
        if model is not None and answers:
            gone = gone.plus(forget_answers(db, model))
    tell_forgotten(settings, gone, whose, as_json=as_json)


def _tenant(settings: Settings, tenant: str | None, key_file: Path | None) -> str | None:
    if key_file is None:
        return tenant or None
    if tenant is not None:
        raise typer.BadParameter("--tenant and --api-key-file name the same thing twice")
    from service.proxy.entry.admission import tenant_of
    from service.settings.secrets import SecretUnreadable, read_secret

    try:
        return tenant_of(settings.proxy.mirroring.salt, read_secret(key_file).encode())
    except SecretUnreadable as error:
        raise fail(str(error), UNUSABLE) from None
