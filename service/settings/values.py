"""What a root is told: frozen values, every one with its unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import evaluators
from evaluators.exchange import AnswerRule
from evaluators.score import Evaluator
from service.decision.policy import DECISIVE_BY_DEFAULT, Policy
from service.decision.ramp import AT_ONCE, Promotion
from service.fleet import Ladder, Slo, Tier
from service.proxy.config import ProxyConfig
from service.settings.adjudicating import AdjudicationPlan
from service.settings.corpus_shape import CorpusTerms
from service.settings.money_shape import DEFAULT_MONEY
from service.settings.money_shape import Money as Money
from service.settings.shadow_job import DEFAULT_SHADOW_JOB, ShadowJob
from service.store.access.issuer_terms import IssuerTerms
from service.store.outgoing.gate_terms import NO_GATES, GateTerms
from service.store.outgoing.webhook_terms import WebhookTerms
from service.store.redis.capture import Keyring


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiListen:
    """Where the API listens and whom it answers."""

    host: str = "127.0.0.1"
    port: int = 8081
    allowed_hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "::1")
    """Values of the Host header without port; a web page must not reach a loopback API by another name."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of pages elsewhere that may write; the API's own pages always may."""
    public_url: str | None = None
    """Where browsers find the dashboard: scheme, host and port; None where nobody said."""
    issuers: tuple[IssuerTerms, ...] = ()
    """Whose JSON Web Tokens are taken beside tokens of ours."""
    attest_key: Ed25519PrivateKey | None = field(default=None, repr=False)
    """Signs statements of decisions; None: none are signed here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowPlan:
    """How replays, the control and probes are sent."""

    on_serving: bool = False
    """Whether tiers without `shadow` backends may be replayed on the backends that serve clients."""
    timeout_seconds: float = 300.0
    concurrency: int = 8
    """Replays at once per worker child."""
    tokens_per_day: int | None = None
    """Prompt plus answer tokens that shadow traffic may spend a day; None = no budget."""
    retries: int = 3
    repeats: float = 0.0
    """Share of captures of which candidates are asked twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbePlan:
    """Recall questions made from captured contexts."""

    per_capture: int = 4
    planted: int = 0
    """Most facts of our own written into a captured context, where a quarter of its depth has none."""
    min_context_chars: int = 2000
    """Shorter contexts are not long and get no probes."""
    max_tokens: int = 128
    extra_body: Mapping[str, object] = field(default_factory=dict)
    """Added to a probe's body, such as what turns thinking off."""
    tokens_per_day: int | None = None
    """Prompt plus answer tokens that one model's probes may spend a day; None = only the shadow budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One configuration file and its environment, read once by a root and handed down in parts."""

    path: Path
    """The file it came from."""
    state_dir: Path
    """Absolute; holds everything that an embedded part keeps."""
    ladders: Mapping[str, Ladder]
    policy: Policy
    redis_url: str
    """Captures, the ledger and routes."""
    broker_url: str
    """Celery's queue."""
    redis_embedded: bool
    """Neither file nor environment names a Redis: `tiergate up` starts its own."""
    database_url: str
    keyring: Keyring = field(repr=False)
    proxy: ProxyConfig
    api: ApiListen = ApiListen()
    shadow: ShadowPlan = ShadowPlan()
    shadow_job: ShadowJob = DEFAULT_SHADOW_JOB
    corpus: CorpusTerms = field(default_factory=CorpusTerms)
    probe: ProbePlan = ProbePlan()
    probes: Mapping[str, ProbePlan] = field(default_factory=dict)
    """By model, where a model asks for its own."""
    answer_rules: Mapping[str, AnswerRule] = field(default_factory=dict)
    """By model; what is expected of its answers, besides what its requests say."""
    slo: Mapping[str, Slo] = field(default_factory=dict)
    """By model."""
    money: Money = DEFAULT_MONEY
    promotion: Promotion = AT_ONCE
    evaluators: tuple[Evaluator, ...] = evaluators.ALL
    """All that judge, in the order in which they are shown; ours alone in a proxy, which judges nothing."""
    adjudication: AdjudicationPlan = field(default_factory=AdjudicationPlan)
    pipelines: GateTerms = NO_GATES
    webhooks: tuple[WebhookTerms, ...] = ()

    @property
    def onlookers(self) -> frozenset[str]:
        """Evaluators beyond those that decide by default, as long as the policy does not let them decide."""
        decisive = {criterion.evaluator for criterion in self.policy.decisive}
        return frozenset(each.name for each in self.evaluators) - decisive - {*DECISIVE_BY_DEFAULT}

    def probe_of(self, model: str) -> ProbePlan:
        """The model's own probe plan, or the one for all."""
        return self.probes.get(model, self.probe)

    def answer_rule_of(self, model: str) -> AnswerRule:
        """The model's own rule, or none."""
        return self.answer_rules.get(model, AnswerRule())

    def declared(self, model: str, tier: str) -> Mapping[str, object]:
        """What the configuration says of the epoch of a tier (statistics A5); KeyError for an unknown name.

        Backend addresses and prices are left out: moving a tier to another host changes no answer.
        """
        # numpy comes with it, which the proxy would load for nothing.
        from service.decision.epoch import policy_facts

        ladder = self.ladders[model]
        probe = self.probe_of(model)
        # What is only shown may come, go and change without a loss of what decides.
        decisive = {criterion.evaluator for criterion in self.policy.decisive}
        return {
            "model": model,
            "baseline": _recipe(ladder.baseline),
            "tier": _recipe(ladder.tier(tier)),
            "evaluators": {each.name: each.version for each in self.evaluators if each.name in decisive},
            "policy": policy_facts(self.policy),
            "structured_output": _rule_facts(self.answer_rule_of(model)),
            "probe": {
                "min_context_chars": probe.min_context_chars,
                "max_tokens": probe.max_tokens,
                "extra_body": probe.extra_body,
                **({"planted": probe.planted} if probe.planted else {}),
            },
        }

    def epoch_of(self, model: str, tier: str) -> str:
        """The epoch of a tier whose engines, like its baseline's, tell nothing of themselves.

        Where they do, what they are belongs to it as well: `service.settings.questions` asks the database.
        """
        from service.decision.epoch import epoch_id

        return epoch_id(self.declared(model, tier))


def _rule_facts(rule: AnswerRule) -> dict[str, object]:
    """Rules of paths are in an epoch only where there are some: without any, it is what it was before."""
    facts = asdict(rule)
    if not rule.paths:
        del facts["paths"]
    return facts


def _recipe(tier: Tier) -> dict[str, object]:
    return {"tier": tier.name, "model": tier.model, "declares": dict(tier.declares)}
