"""A policy by itself, from a file of its own or from a whole `tiergate.yaml`, with the source of each value.

Nothing is made and no secret is read: this is how a policy is tried before anybody uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import ValidationError

from service.decision.epoch import policy_facts
from service.decision.failure_chain import RETRY_OR_ESCALATE
from service.decision.policy import Criterion, Policy
from service.decision.ramp import Promotion
from service.settings import spelling
from service.settings.complaints import complaints, valid_keys
from service.settings.document import Document
from service.settings.evaluating import known
from service.settings.forms import Section, Shape
from service.settings.load import read
from service.settings.money_shape import build_chain
from service.settings.policies import build_policy
from service.settings.policy_shape import PolicyShape
from service.settings.problems import Findings, Place, Problem, SettingsError, spell
from service.settings.promotion import build_promotion
from service.settings.shape import TiergateShape

DEFAULT = "default"
SECTION: Place = ("policy",)


class PolicyAlone(Shape):
    """A file that holds nothing but `policy`."""

    policy: Annotated[PolicyShape, Section] = PolicyShape()


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One value that is in force, as people write it."""

    key: str
    """Such as `criteria.refusal.margin`."""
    value: str
    origin: str
    """`default`, or the key that says it: itself, or the one of the whole policy that it is taken from."""
    line: int | None
    """Of that key in the file, counted from 1; None for a default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRead:
    """A policy with its source."""

    path: Path
    policy: Policy
    promotion: Promotion
    told: tuple[Told, ...]
    candidates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tiers under test by model; empty for a file that holds a policy alone."""

    def changes_to(self, other: PolicyRead) -> list[dict[str, str | None]]:
        """Every `key` whose value is another there, `before` and `after`; None where one does not have it."""
        before = {told.key: told.value for told in self.told}
        after = {told.key: told.value for told in other.told}
        return [
            {"key": key, "before": before.get(key), "after": after.get(key)}
            for key in dict.fromkeys([*before, *after])
            if before.get(key) != after.get(key)
        ]

    def counts_alike(self, other: PolicyRead) -> bool:
        """Whether what counts under this policy counts under the other, or epochs begin (statistics A5)."""
        return policy_facts(self.policy) == policy_facts(other.policy)


def read_policy(path: Path) -> PolicyRead:
    """Read `policy` of a whole file, or of one that holds it alone with or without that heading.

    Raises `SettingsError` with every problem.
    """
    path = path.expanduser().absolute()
    document = read(path)
    whole = bool((set(document.content) & set(valid_keys(()))) - set(SECTION))
    if not whole and set(document.content) != set(SECTION):
        document = _under_heading(document)
    names = known()
    try:
        form = TiergateShape if whole else PolicyAlone
        shape = form.model_validate(document.content, context={"known": names})
    except ValidationError as error:
        raise SettingsError(path, [*document.problems, *complaints(error, document)]) from None
    findings = Findings()
    failure = build_chain(shape.money.failure) if isinstance(shape, TiergateShape) else RETRY_OR_ESCALATE
    policy = build_policy(shape.policy, names, findings, failure=failure)
    problems = [*document.problems, *(document.problem(place, text) for place, text in findings.entries)]
    if problems or policy is None:
        raise SettingsError(path, problems)
    models = shape.models if isinstance(shape, TiergateShape) else {}
    return PolicyRead(
        path=path,
        policy=policy,
        promotion=build_promotion(shape.policy.promotion),
        told=told_of(shape.policy, policy, document),
        candidates={name: tuple(tier.tier for tier in model.ladder[1:]) for name, model in models.items()},
    )


def told_of(shape: PolicyShape, policy: Policy, document: Document) -> tuple[Told, ...]:
    """Every value of a policy with its source, the criteria first."""
    return (
        *(told for criterion in policy.criteria for told in _criterion(criterion, document)),
        *_section(shape, SECTION, document),
    )


_CRITERION: Mapping[str, tuple[Callable[[Criterion], str], Place | None]] = {
    # How it is written, and the key of the policy that it is taken from where the criterion says nothing.
    "role": (lambda each: spelling.plain(each.role), None),
    "hypothesis": (lambda each: spelling.plain(each.hypothesis), None),
    "margin": (lambda each: spelling.points(each.margin), (*SECTION, "margin")),
    "min_pairs": (lambda each: spelling.plain(each.min_pairs), (*SECTION, "min_pairs")),
    "max_pairs": (lambda each: spelling.plain(each.max_pairs or "planned"), None),
    "baseline_failure_cap": (lambda each: spelling.share(each.baseline_failure_cap), None),
}
_SHARES = (
    *("accept", "harm", "warn", "strata", "gates", "max_unscored"),
    *("baseline_misses", "power", "least_power"),
)
_WRITTEN: Mapping[str, Callable[..., str]] = {
    **dict.fromkeys(_SHARES, spelling.share),
    **dict.fromkeys(("idle", "longest", "hold", "measured_within"), spelling.duration),
    "ramp": lambda steps: ", ".join(map(spelling.share, steps)),
    "slo_margin": spelling.points,
    "failure_weight": lambda weight: "as money.failure" if weight is None else f"{weight:g}x",
    "tenant_share_cap": lambda cap: "none" if cap is None else spelling.share(cap),
}
_OF_CRITERIA = frozenset({"criteria", "margin", "min_pairs"})
"""Told with each criterion."""


def _criterion(criterion: Criterion, document: Document) -> list[Told]:
    own: Place = (*SECTION, "criteria", criterion.evaluator)
    told = []
    for key, (written, inherited) in _CRITERION.items():
        sources = [place for place in ((*own, key), inherited) if place is not None]
        told.append(_told((*own, key), written(criterion), sources, document))
    return told


def _section(shape: Shape, place: Place, document: Document) -> list[Told]:
    told = []
    for key in type(shape).model_fields:
        value = getattr(shape, key)
        here: Place = (*place, key)
        if isinstance(value, Shape):
            told += _section(value, here, document)
        elif not (place == SECTION and key in _OF_CRITERIA):
            told.append(_told(here, _WRITTEN.get(key, spelling.plain)(value), [here], document))
    return told


def _told(place: Place, value: str, sources: list[Place], document: Document) -> Told:
    said = next((source for source in sources if source in document.lines), None)
    return Told(
        key=spell(place[len(SECTION) :]),
        value=value,
        origin=DEFAULT if said is None else spell(said),
        line=None if said is None else document.lines[said],
    )


def _under_heading(document: Document) -> Document:
    """The same, as if it stood below `policy:`."""
    return Document(
        content={"policy": document.content},
        lines={(*SECTION, *place): line for place, line in document.lines.items()},
        problems=[
            Problem(place=(*SECTION, *problem.place), line=problem.line, message=problem.message)
            for problem in document.problems
        ],
    )
