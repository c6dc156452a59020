"""Who is told of what by an outgoing webhook: said by the configuration alone (ADR 31)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Told(StrEnum):
    """Kinds of events."""

    DECISION = "decision"
    """A row of the decision log, or a verdict that became accept or reject."""
    WARN = "warn"
    """A rise that is not yet beyond the margin, a lost SLO, a ramp that stopped."""
    HARM = "harm"
    """The guard found harm, and what it did about it."""
    JOB = "job"
    """A shadow job is over."""


class Form(StrEnum):
    """How a message is written and signed."""

    PLAIN = "plain"
    SLACK = "slack"
    FEISHU = "feishu"
    DINGTALK = "dingtalk"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookTerms:
    """One receiver."""

    name: str
    form: Form
    url: str = field(repr=False)
    """Whole; of a chat tool it is a secret."""
    secrets: tuple[str, ...] = field(repr=False, default=())
    """Two while they are rotated, the new one first; none for Slack, which verifies none."""
    kinds: frozenset[Told] = frozenset(Told)
    models: frozenset[str] = frozenset()
    """Empty: all, and what is about no model."""
    language: str = "en"
    ca: str | None = None
    """PEM of the authorities to trust instead of the system's."""

    def wants(self, kind: Told, model: str) -> bool:
        """Whether it is told of such an event."""
        return kind in self.kinds and (not self.models or model in self.models)
