"""`/metrics` for Prometheus: what verdicts say, who serves, how the API is used; read at every scrape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, Counter, PlatformCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.responses import Response
from starlette.types import Scope

from service.approval.desk import Desk
from service.decision.policy import Gate
from service.decision.verdict import Decision, Finding, GateState, Verdict
from service.store.decided.holds import HoldKind
from service.store.outgoing.callbacks import count_callbacks
from service.store.sql.database import StoreUnusable
from service.store.traffic.account import LedgerAccount
from service.store.verdicts.standing import Standing, read_account

TIER = ("model", "tier")
CRITERION = (*TIER, "criterion")


class Meters:
    """The registry of one app, and the counter of its answers."""

    def __init__(self, desk: Desk) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.registry.register(Standings(desk))
        self._answers = Counter(
            "tiergate_api_answers",
            "Answers of the API by method, operation and status.",
            ("method", "operation", "status"),
            registry=self.registry,
        )

    def count(self, scope: Scope, status: int) -> None:
        """Count one answer under what was asked, so that names from clients cannot multiply the series."""
        operation = getattr(scope.get("endpoint"), "__name__", "none")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._answers.labels(method, operation, str(status)).inc()


ACCOUNTS = (
    *("seen", "skipped", "sampled", "shipped", "dropped", "processed"),
    *("expired", "lost", "waiting", "in_flight", "unaccounted"),
)
METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH"})


class Standings(Collector):
    """Every ladder as it stands at the moment of the scrape."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def describe(self) -> list[GaugeMetricFamily]:
        return []  # so that registering reads no store

    def collect(self) -> Iterator[GaugeMetricFamily]:
        up = GaugeMetricFamily("tiergate_api_database_up", "1 if the database answers, else 0.")
        try:
            standings = [self._desk.standing(model) for model in self._desk.config.ladders]
            accounts = [
                read_account(self._desk.db, self._desk.captures, model, now=self._desk.now())
                for model in self._desk.config.ladders
            ]
            callbacks = self._callbacks()
        except StoreUnusable:
            up.add_metric((), 0)
            yield up
            return
        up.add_metric((), 1)
        yield up
        yield callbacks
        yield from _route_gauges(standings)
        yield from _ledger_gauges(accounts)
        yield from _verdict_gauges(
            [rung.verdict for each in standings for rung in each.rungs if rung.verdict]
        )

    def _callbacks(self) -> GaugeMetricFamily:
        family = GaugeMetricFamily(
            "tiergate_callbacks",
            "Answers owed to GitHub and GitLab, and messages to webhooks, by what became of them.",
            labels=("tool", "state"),
        )
        for (tool, state), amount in count_callbacks(self._desk.db).items():
            family.add_metric((tool, state.value), amount)
        return family


def _route_gauges(standings: list[Standing]) -> Iterator[GaugeMetricFamily]:
    weight = GaugeMetricFamily(
        "tiergate_route_weight_percent", "Share of clients a tier serves.", labels=TIER
    )
    version = GaugeMetricFamily("tiergate_route_version", "Version of the route in force.", labels=("model",))
    held = GaugeMetricFamily(
        "tiergate_rung_held", "1 while that holds the tier in its epoch, else 0.", labels=(*TIER, "kind")
    )
    for standing in standings:
        version.add_metric((standing.ladder.model,), standing.route.version)
        for rung in standing.rungs:
            names = (standing.ladder.model, rung.tier.name)
            weight.add_metric(names, rung.weight)
            if rung.verdict is not None:
                kinds = {hold.kind for hold in rung.held}
                for kind in HoldKind:
                    held.add_metric((*names, kind.value), float(kind in kinds))
    yield from (weight, version, held)


def _ledger_gauges(accounts: list[LedgerAccount]) -> Iterator[GaugeMetricFamily]:
    requests = GaugeMetricFamily(
        "tiergate_ledger_requests", "The mirror ledger, by account.", labels=("model", "account", "reason")
    )
    balanced = GaugeMetricFamily(
        "tiergate_ledger_balanced", "1 if every equation of the ledger holds.", labels=("model",)
    )
    for account in accounts:
        model = account.model or ""
        for name in ACCOUNTS:
            count = getattr(account, name)
            for reason, amount in count.items() if isinstance(count, Mapping) else (("", count),):
                requests.add_metric((model, name, reason), amount)
        balanced.add_metric((model,), float(account.balanced))
    yield from (requests, balanced)


def _verdict_gauges(verdicts: list[Verdict]) -> Iterator[GaugeMetricFamily]:
    decided = GaugeMetricFamily(
        "tiergate_verdict", "1 for the decision in force, 0 for the others.", labels=(*TIER, "decision")
    )
    gates = GaugeMetricFamily(
        "tiergate_gate", "1 for a gate's state, 0 for the others.", labels=(*TIER, "gate", "state")
    )
    for verdict in verdicts:
        names = (verdict.model, verdict.tier)
        for decision in Decision:
            decided.add_metric((*names, decision.value), float(decision is verdict.decision))
        for gate in Gate:
            for state in GateState:
                gates.add_metric((*names, gate.value, state.value), float(state is verdict.gates[gate]))
    yield from (decided, gates)
    for name, text, read in FINDINGS:
        family = GaugeMetricFamily(name, text, labels=CRITERION)
        for verdict in verdicts:
            for finding in verdict.findings:
                number = read(finding)
                if number is not None:
                    family.add_metric((verdict.model, verdict.tier, finding.criterion), number)
        yield family


def _more_pairs(finding: Finding) -> float | None:
    return finding.more_pairs


FINDINGS = (
    ("tiergate_pairs", "Pairs that count.", lambda finding: finding.n),
    ("tiergate_harm_pairs", "Pairs where only the candidate failed.", lambda finding: finding.harm),
    ("tiergate_benefit_pairs", "Pairs where only the baseline failed.", lambda finding: finding.benefit),
    ("tiergate_more_pairs", "Pairs expected until accept; absent when out of sight.", _more_pairs),
    (
        "tiergate_failure_rise",
        "Rise of the failure rate; absent without pairs.",
        lambda finding: finding.estimate,
    ),
    ("tiergate_failure_rise_lower", "Lower confidence limit.", lambda finding: finding.interval.lower),
    ("tiergate_failure_rise_upper", "Upper confidence limit.", lambda finding: finding.interval.upper),
    ("tiergate_margin", "Tolerated rise of the failure rate.", lambda finding: finding.margin),
    (
        "tiergate_warn",
        "1 if a rise is shown that is not yet beyond the margin.",
        lambda finding: finding.warn,
    ),
    (
        "tiergate_not_shown",
        "1 if the criterion ran out of the pairs or the time that it may ask for.",
        lambda finding: finding.not_shown,
    ),
    (
        "tiergate_worst_stratum_log_e_harm",
        "Logarithm of the e-value of harm in the worst stratum; absent where none has evidence of it.",
        lambda finding: finding.worst_strata[0].log_e_harm if finding.worst_strata else None,
    ),
)


def metrics_routes(meters: Meters) -> APIRouter:
    """The page that Prometheus reads; a token with scope `read` works as its bearer token."""
    router = APIRouter(tags=["health"])

    @router.get("/metrics", summary="For Prometheus", response_class=Response)
    def metrics() -> Response:
        """Verdicts, routes and the API's own answers."""
        return Response(generate_latest(meters.registry), media_type=CONTENT_TYPE_LATEST)

    return router
