"""`tiergate artifact digest`: what an approval is bound to, from a declared file or by asking the backend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.configuration import ConfigOption, fail, load_or_exit
from service.cli.named import ladder_of, tier_of

if TYPE_CHECKING:
    from service.engines.artifact import Artifact
    from service.fleet import Backend
    from service.launch.ask import Answered

CONTRADICTED = 1
UNUSABLE = 2
NO_ANSWER = 3

artifact_app = typer.Typer(no_args_is_help=True, help="What an approval is bound to.")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    artifact_app.command(epilog="Docs: docs/decision-log.md")(digest)
    artifact_app.callback()(about)
    app.add_typer(artifact_app, name="artifact")


def about() -> None:
    """What an approval is bound to: model, recipe, engine, version, flags, parallelism, as one sha256."""


def digest(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A declaration, YAML or JSON.")] = None,
    tier: Annotated[
        tuple[str, str] | None,
        typer.Option("--tier", metavar="MODEL TIER", help="Ask the backends of a tier of the configuration."),
    ] = None,
    config: ConfigOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Also what the digest is made of, and what was not told.")
    ] = False,
) -> None:
    """Print the digest of an artifact: sha256 over model, recipe, engine, version, flags, parallelism.

    From FILE: everything as declared. With --tier alone: as all backends of the tier tell it, with the recipe
    that the tier declares; engines do not tell their parallelism. With both: the digest of FILE, if no
    backend contradicts it.

    \b
    A declaration:
      model: Qwen/Qwen3-32B@9216db57
      recipe: {weights: int8, activations: int8, kv_cache: fp8}
      engine: {name: vllm, version: 0.11.0}
      flags: {max_model_len: 32768, enable_prefix_caching: true}
      parallelism: {tensor: 2}

    \b
      tiergate artifact digest w8a8.yaml --tier qwen3-32b w8a8
      tiergate approve qwen3-32b w8a8 --artifact "$(tiergate artifact digest w8a8.yaml)" --expires-in 30d
      tiergate gate qwen3-32b w8a8 --artifact "$(tiergate artifact digest w8a8.yaml)"

    Exit status: 0 printed, 1 a backend contradicts FILE or another backend, 2 FILE or a name is wrong,
    3 a backend does not answer.
    """
    from service.engines.artifact import ArtifactUnclear

    if file is None and tier is None:
        raise typer.BadParameter("name a FILE, or --tier MODEL TIER, or both")
    untold: list[str] = []
    try:
        artifact = None if file is None else _declared(file)
        if tier is not None:
            answers, model, words = _asked(config, *tier)
            if artifact is None:
                artifact = _told(answers, model, words)
                untold = ["parallelism"]
            else:
                _compare(artifact, answers, model)
    except ArtifactUnclear as error:
        raise fail(f"{file or ' '.join(tier or ())}: {error}", UNUSABLE) from None
    assert artifact is not None, "a file or a tier was named"
    if as_json:
        made_of = json.loads(artifact.canonical)
        document = {"digest": f"sha256:{artifact.digest}", "artifact": made_of, "not_told": untold}
        typer.echo(json.dumps(document, indent=2))
        return
    typer.echo(f"sha256:{artifact.digest}")


def _declared(file: Path) -> Artifact:
    from service.engines.artifact import declared
    from service.settings.document import Unreadable, read_document

    try:
        document = read_document(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise fail(f"{file} cannot be read: {error.strerror}", UNUSABLE) from None
    except (Unreadable, UnicodeDecodeError) as error:
        raise fail(f"{file}: {error}", UNUSABLE) from None
    if document.problems:
        raise fail("\n".join(f"{file}: {problem}" for problem in document.problems), UNUSABLE)
    return declared(document.content)


def _asked(config: Path | None, model: str, name: str) -> tuple[dict[Backend, Answered], str, dict[str, str]]:
    """What every backend of a tier answers, what they call the model, and what the tier declares."""
    settings = load_or_exit(config, make_key=False)
    from service.launch.ask import Answered, ask_all

    tier = tier_of(ladder_of(settings, model), name)
    answers: dict[Backend, Answered] = {}
    for backend, answer in ask_all((*tier.backends, *tier.shadow)).items():
        if not isinstance(answer, Answered):
            raise fail(f"{backend.url} {answer}", NO_ANSWER)
        if tier.model not in answer.models:
            serves = ", ".join(answer.models)
            raise fail(f"{backend.url} serves {serves}, not {tier.model}", CONTRADICTED)
        answers[backend] = answer
    return answers, tier.model, dict(tier.declares)


def _told(answers: dict[Backend, Answered], model: str, words: dict[str, str]) -> Artifact:
    """The one artifact that all backends tell."""
    from service.engines.artifact import told

    found: dict[str, tuple[str, Artifact]] = {}
    for backend, answer in answers.items():
        facts = answer.engine_of(model)
        if facts is None:
            raise fail(
                f"{backend.url} is no engine that tells what it runs: declare the artifact in a FILE",
                NO_ANSWER,
            )
        artifact = told(facts, model=model, words=words)
        found.setdefault(artifact.digest, (backend.url, artifact))
    if len(found) > 1:
        (one, first), (other, second) = list(found.values())[:2]
        raise fail(
            f"two artifacts behind one tier:\n  {one}: {first.canonical}\n  {other}: {second.canonical}",
            CONTRADICTED,
        )
    return next(iter(found.values()))[1]


def _compare(artifact: Artifact, answers: dict[Backend, Answered], model: str) -> None:
    """Exit status 1 with every contradiction."""
    from service.engines.artifact import contradictions

    lines = [
        f"{backend.url}: {line}"
        for backend, answer in answers.items()
        if (facts := answer.engine_of(model)) is not None
        for line in contradictions(artifact, facts)
    ]
    if lines:
        raise fail("\n".join(lines), CONTRADICTED)
