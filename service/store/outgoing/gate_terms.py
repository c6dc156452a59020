"""Which gates of GitHub and GitLab are ours to answer, and with what: said by the configuration alone.

What a request says of where to answer is compared with this and never followed (ADR 31).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

GITHUB, GITLAB_CHECK, GITLAB_DEPLOYMENT = "github", "gitlab_check", "gitlab_deployment"
"""Kinds of callbacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateTarget:
    """What a gate is about."""

    model: str
    tier: str
    basis: str = "approval"
    """`approval` or `verdict`."""
    represented_as: str | None = None
    """Of a deployment on GitLab: as whom it is decided; None: as GitLab takes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubTerms:
    """A GitHub App whose deployment protection rule we are."""

    url: str
    """Of the REST API, without a slash at the end; the only place that is ever called."""
    app: str
    """Client id or number of the App."""
    private_key: str = field(repr=False)
    """PEM."""
    secret: str = field(repr=False)
    """Of the App's webhook."""
    environments: Mapping[tuple[str, str], GateTarget]
    """By repository (OWNER/NAME) and environment, both in lower case: to GitHub case is no difference."""
    wait_seconds: float = 86_400.0
    """How long a run waits for a decision; then it is rejected as inconclusive."""
    ca: str | None = None
    """PEM of the authorities to trust instead of the system's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitlabTerms:
    """A GitLab whose status checks and protected deployments we answer."""

    url: str
    """Of the instance, without `/api/v4` and without a slash at the end."""
    token: str = field(repr=False)
    secret: str | None = field(repr=False, default=None)
    """Shared by all status checks; None where there are none."""
    checks: Mapping[tuple[str, str], GateTarget] = field(default_factory=dict)
    """By project (path, in lower case) and name of the check."""
    deployments: Mapping[tuple[str, str], GateTarget] = field(default_factory=dict)
    """By project (path, in lower case) and environment."""
    ca: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateTerms:
    """Both; None: not ours to answer."""

    github: GithubTerms | None = None
    gitlab: GitlabTerms | None = None

    @property
    def any(self) -> bool:
        """Whether there is anything to call back."""
        return self.github is not None or self.gitlab is not None


NO_GATES = GateTerms()
