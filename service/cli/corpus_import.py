"""`tiergate corpus import`: requests of a batch file, or made up to the lengths of a trace."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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

if TYPE_CHECKING:
    from service.cli.corpus_files import Imported
    from service.settings import Settings

MOST_BAD = 100
"""Bad lines that are printed; --json has them all."""


def import_file(
    model: ModelArgument,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="OpenAI batch lines, or a trace that tells lengths.")
    ],
    name: Annotated[
        str | None, typer.Option("--name", help="Of the corpus; default: the file's name without its ending.")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Take the good lines; without it, one bad line stops all.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Most requests, from the start of the file.")
    ] = None,
    seed: Annotated[str, typer.Option(help="Of the words that a trace's prompts are made of.")] = "1",
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Of a trace: ask for answers of exactly the told length (`ignore_eos`, that vLLM and SGLang "
            "know).",
        ),
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring in requests of your own: a batch file, or lengths of a trace with prompts made up for them.

    Batch lines are OpenAI's: custom_id, method, url, body. They are masked as `corpus.redact` says. A trace
    is JSON lines (Mooncake: timestamp, input_length, output_length, hash_ids) or CSV with a header (Azure:
    TIMESTAMP, ContextTokens, GeneratedTokens). Its prompts are common words, about one token each; what the
    trace says was a shared prefix is one, so that prefix caches have their work. Same file, seed and model:
    same requests, same digest.

    What is imported stays until `tiergate corpus forget`. Shadow jobs send it when `corpus.use` names it.

    Exit status: 0 taken, 1 nothing taken (or, with --skip-bad, not everything), 2 the file or name is wrong.

    \b
    Requests of a test set:
      tiergate corpus import qwen3-32b requests.jsonl
    The lengths and arrivals of a public trace:
      tiergate corpus import qwen3-32b AzureLLMInferenceTrace_conv.csv --name azure --limit 2000
    """
    settings = load_or_exit(config)
    check_model(settings, model)
    chosen = _new_name(name or file.stem)
    read = _read(settings, model, chosen, file, seed=seed, exact=exact, limit=limit)
    document: dict[str, Any] = {
        "model": model,
        "corpus": chosen,
        "kind": read.kind,
        "requests": len(read.drawn),
        "new": 0,
        "bad": [{"line": each.line, "reason": each.reason} for each in read.bad],
        "digest": None,
    }
    stopped = bool(read.bad) and not skip_bad
    if not stopped and read.drawn:
        from service.store.kept.corpus import CorpusFull, take_in

        with database_of(settings) as db:
            try:
                document["new"] = take_in(db, settings.corpus.plan, read.drawn)
            except CorpusFull as error:
                raise fail(str(error), UNUSABLE) from None
            document["digest"] = manifest_of(settings, db, model, chosen).digest
    if as_json:
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        _tell_import(document, stopped)
    if read.bad or not read.drawn:
        raise typer.Exit(BAD_LINES)


def _read(
    settings: Settings,
    model: str,
    name: str,
    file: Path,
    *,
    seed: str,
    exact: bool,
    limit: int | None,
) -> Imported:
    from service.cli.corpus_files import FileUnreadable, Importing, read_file
    from service.settings.redacting import MaskUnusable, mask_of

    try:
        importing = Importing(
            model=model,
            name=name,
            mask=mask_of(settings.corpus.redact),
            salt=settings.proxy.mirroring.salt,
            keyring=settings.keyring,
            at=time.time(),
            told=_progress(),
        )
        return read_file(file, importing, seed=seed, exact=exact, limit=limit)
    except (FileUnreadable, MaskUnusable) as error:
        raise fail(str(error), UNUSABLE) from None


def _progress() -> Callable[[int], None]:
    on_terminal = sys.stderr.isatty()

    def told(done: int) -> None:
        if on_terminal:
            sys.stderr.write(f"{done:,} requests read\r")
            sys.stderr.flush()

    return told


def _new_name(name: str) -> str:
    from service.store.kept.corpus_plan import TRAFFIC

    if name == TRAFFIC:
        raise fail(f"{TRAFFIC} is drawn from captures; give the import another --name", UNUSABLE)
    if not 0 < len(name) <= 64 or " " in name or not name.isprintable():
        raise fail(
            f"a corpus is named by 1 to 64 printable characters without spaces, not {name!r}", UNUSABLE
        )
    return name


def _tell_import(document: dict[str, Any], stopped: bool) -> None:
    bad = document["bad"]
    for each in bad[:MOST_BAD]:
        typer.echo(f"line {each['line']}: {each['reason']}", err=True)
    if len(bad) > MOST_BAD:
        typer.echo(f"and {len(bad) - MOST_BAD:,} more (--json has them all)", err=True)
    if stopped:
        typer.echo(
            f"nothing is taken: {len(bad):,} lines are wrong, {document['requests']:,} are right; correct "
            "them, or take the right ones with --skip-bad",
            err=True,
        )
    elif not document["requests"]:
        typer.echo("nothing is taken: the file holds no request", err=True)
    else:
        here = document["requests"] - document["new"]
        again = f" ({here:,} were there already, or twice in the file)" if here else ""
        typer.echo(
            f"{document['new']:,} requests are in the corpus {document['corpus']} of {document['model']}"
            f"{again}\n"
            f"digest {document['digest']}\n"
            f"To have shadow jobs send it: `corpus: {{use: {document['corpus']}}}` in tiergate.yaml."
        )
