"""The part of `tiergate.yaml` under `pipelines`, and its values: whom we call back, and about what.

A URL is called with a token of ours, so it comes from here and from no request (ADR 31).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pydantic import Field

from service import tls
from service.fleet import Ladder
from service.settings.forms import Duration, Name, Shape, is_header_value, written
from service.settings.nearest import nearest
from service.settings.problems import Findings, Place
from service.settings.secrets import SecretUnreadable, read_secret, read_text
from service.settings.urls import CalledUrl
from service.store.outgoing.gate_terms import GateTarget, GateTerms, GithubTerms, GitlabTerms

PLACE: Place = ("pipelines",)


Basis = Literal["approval", "verdict"]
Repository = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}$")]
Project = Annotated[str, Field(pattern=r"^[^/\s?#]+(/[^/\s?#]+)+$", max_length=1000)]


class TargetShape(Shape):
    """What a gate is about."""

    model: Name = Field(description="Whose tier the gate is about.")
    tier: Name = Field(description="A tier above the baseline.")
    basis: Basis = Field(
        default="approval", description="`approval`: one must be in force; `verdict`: accept suffices."
    )


class RuleShape(TargetShape):
    """An environment of a repository on GitHub."""

    repository: Repository = Field(description="OWNER/NAME.")
    environment: Annotated[str, Field(min_length=1, max_length=255)] = Field(
        description="In which the protection rule is switched on."
    )


class CheckShape(TargetShape):
    """A status check of merge requests on GitLab."""

    project: Project = Field(description="GROUP/NAME.")
    check: Annotated[str, Field(min_length=1, max_length=255)] = Field(
        description="Name of the status check."
    )


class DeploymentShape(TargetShape):
    """A protected environment on GitLab."""

    project: Project = Field(description="GROUP/NAME.")
    environment: Annotated[str, Field(min_length=1, max_length=255)] = Field(
        description="Whose deployments wait for approvals."
    )
    represented_as: Annotated[str, Field(min_length=1, max_length=255)] | None = Field(
        default=None,
        description="User, group or role that is approved as, where several rules of the environment fit the "
        "token's user.",
    )


class GithubShape(Shape):
    """A GitHub App whose deployment protection rule we are."""

    url: CalledUrl = Field(
        default="https://api.github.com", description="Of the REST API; nothing else is ever called."
    )
    app: Annotated[str, Field(pattern=r"^[A-Za-z0-9.]{1,64}$")] = Field(description="Client id of the App.")
    private_key_file: str = Field(description="PEM file of the App's private key.")
    secret_file: str = Field(description="File whose first line is the secret of the App's webhook.")
    ca_file: str | None = Field(
        default=None, description="PEM file of authorities to trust there instead of the system's."
    )
    wait: Duration = written("1d", "How long a run waits; then it is rejected as inconclusive.")
    environments: Annotated[list[RuleShape], Field(min_length=1)] = Field(
        description="What each protected environment is about."
    )


class GitlabShape(Shape):
    """A GitLab whose status checks and deployments we answer."""

    url: CalledUrl = Field(description="Of the instance; nothing else is ever called.")
    token_file: str = Field(description="File whose first line is an access token with scope `api`.")
    secret_file: str | None = Field(
        default=None, description="File whose first line is the shared secret of the status checks."
    )
    ca_file: str | None = Field(
        default=None, description="PEM file of authorities to trust there instead of the system's."
    )
    checks: list[CheckShape] = Field(
        default_factory=list, description="External status checks of merge requests."
    )
    deployments: list[DeploymentShape] = Field(
        default_factory=list, description="Environments whose deployments wait for an approval of ours."
    )


class PipelinesShape(Shape):
    """Pipelines that are called back; those that ask need no entry here."""

    github: GithubShape | None = Field(default=None, description="A GitHub App.")
    gitlab: GitlabShape | None = Field(default=None, description="A GitLab instance.")


def build_pipelines(
    shape: PipelinesShape, ladders: Mapping[str, Ladder], *, beside: Path, findings: Findings
) -> GateTerms:
    """The terms; `findings` says what stands in their way."""
    return GateTerms(
        github=None if shape.github is None else _github(shape.github, ladders, beside, findings),
        gitlab=None if shape.gitlab is None else _gitlab(shape.gitlab, ladders, beside, findings),
    )


def _github(
    shape: GithubShape, ladders: Mapping[str, Ladder], beside: Path, findings: Findings
) -> GithubTerms:
    place = (*PLACE, "github")
    named = [(each.repository.lower(), each.environment.lower()) for each in shape.environments]
    return GithubTerms(
        url=shape.url,
        app=shape.app,
        private_key=_private_key(beside, shape.private_key_file, (*place, "private_key_file"), findings),
        secret=_secret(beside, shape.secret_file, (*place, "secret_file"), findings),
        environments=_targets(named, shape.environments, ladders, (*place, "environments"), findings),
        wait_seconds=shape.wait,
        ca=ca_of(beside, shape.ca_file, (*place, "ca_file"), findings),
    )


def _gitlab(
    shape: GitlabShape, ladders: Mapping[str, Ladder], beside: Path, findings: Findings
) -> GitlabTerms:
    place = (*PLACE, "gitlab")
    if shape.checks and shape.secret_file is None:
        findings.add(place, "status checks are signed: name the file of their shared secret in `secret_file`")
    if not shape.checks and not shape.deployments:
        findings.add(place, "name `checks`, `deployments`, or both: there is nothing to answer")
    checked = [(each.project.lower(), each.check) for each in shape.checks]
    deployed = [(each.project.lower(), each.environment) for each in shape.deployments]
    token = _secret(beside, shape.token_file, (*place, "token_file"), findings)
    if token and not is_header_value(token):
        findings.add((*place, "token_file"), "a token is printable ASCII on one line")
    secret = None
    if shape.secret_file is not None:
        secret = _secret(beside, shape.secret_file, (*place, "secret_file"), findings)
    return GitlabTerms(
        url=shape.url,
        token=token,
        secret=secret,
        checks=_targets(checked, shape.checks, ladders, (*place, "checks"), findings),
        deployments=_targets(deployed, shape.deployments, ladders, (*place, "deployments"), findings),
        ca=ca_of(beside, shape.ca_file, (*place, "ca_file"), findings),
    )


def _targets(
    named: Sequence[tuple[str, str]],
    shapes: Sequence[TargetShape],
    ladders: Mapping[str, Ladder],
    place: Place,
    findings: Findings,
) -> dict[tuple[str, str], GateTarget]:
    found: dict[tuple[str, str], GateTarget] = {}
    for index, (name, shape) in enumerate(zip(named, shapes, strict=True)):
        here = (*place, index)
        if name in found:
            findings.add(here, f"{name[1]!r} of {name[0]} stands in this list twice")
        found[name] = GateTarget(
            model=shape.model,
            tier=shape.tier,
            basis=shape.basis,
            represented_as=shape.represented_as if isinstance(shape, DeploymentShape) else None,
        )
        ladder = ladders.get(shape.model)
        if ladder is None:
            meant = nearest(shape.model, ladders) if ladders else "none"
            findings.add((*here, "model"), f"no model has this name; did you mean `{meant}`?")
        elif shape.tier not in {tier.name for tier in ladder.candidates}:
            names = ", ".join(tier.name for tier in ladder.candidates) or "none"
            findings.add((*here, "tier"), f"no tier above the baseline has this name; there are: {names}")
    return found


def _secret(beside: Path, file: str, place: Place, findings: Findings) -> str:
    try:
        return read_secret(beside / Path(file).expanduser())
    except SecretUnreadable as error:
        findings.add(place, str(error))
        return ""


def _private_key(beside: Path, file: str, place: Place, findings: Findings) -> str:
    try:
        text = read_text(beside / Path(file).expanduser())
        key = load_pem_private_key(text.encode(), None)
    except SecretUnreadable as error:
        findings.add(place, str(error))
        return ""
    except (ValueError, TypeError, UnsupportedAlgorithm):
        findings.add(place, "there is no private key in PEM form, without a passphrase, in it")
        return ""
    if not isinstance(key, RSAPrivateKey):
        findings.add(place, "GitHub Apps have RSA keys; this is another kind")
    return text


def ca_of(beside: Path, file: str | None, place: Place, findings: Findings) -> str | None:
    """The authorities to trust, in PEM form."""
    if file is None:
        return None
    try:
        text = read_text(beside / Path(file).expanduser())
        tls.connecting(ca=text)
    except (SecretUnreadable, tls.TlsUnusable) as error:
        findings.add(place, str(error))
        return None
    return text
