"""Giving pipelines the answers that are owed to them, out of the outbox, between two looks of the guard.

A judgement is made when it is sent and not when it was asked for. An API that does not answer is left alone
for the rest of a run, and each answer is tried ten times at most, with pauses that double.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from service.approval.answers import policy_digest
from service.approval.dialects.callbacks.github import MOST_REPORTS, Github, comment_of
from service.approval.dialects.callbacks.gitlab import Gitlab
from service.approval.dialects.callbacks.sending import Unanswered
from service.approval.dialects.judgement import Basis, Judgement, State, judge
from service.fleet import Ladder
from service.store.outgoing.callbacks import (
    Callback,
    CallbackState,
    ask,
    count_report,
    due,
    end,
    take,
    wait,
)
from service.store.outgoing.gate_terms import GITHUB, GITLAB_CHECK, GITLAB_DEPLOYMENT, GateTarget, GateTerms
from service.store.sql.database import Database
from service.store.verdicts.standing import Question, read_standing
from workers.attempts import Attempts

log = logging.getLogger("tiergate.guard")

GITLAB = {GITLAB_CHECK, GITLAB_DEPLOYMENT}
ATTEMPTS = Attempts(
    most=10,
    first_pause=5.0,
    longest_pause=600.0,
    later="answered later",
    remedy="delivering the webhook again asks for it again",
)
LOOK_SECONDS = 15.0
"""Between two looks at a judgement that a pipeline waits for."""
CHECK_SECONDS = 90.0
"""How long a status check waits for a decision: GitLab fails it after 120 s and shows no reason."""
REPORT_SECONDS = 120.0
"""Before a second report of progress; each pause is twice the last, so that ten are enough for a day."""
MOST_AT_ONCE = 20
RUN_SECONDS = 4.0
"""After which a run begins nothing more: routes are watched by the same child."""
POLL_SECONDS = 30.0
"""Between two looks at GitLab's deployments that wait."""


@dataclass(slots=True, kw_only=True)
class Answerer:
    """What answering needs."""

    db: Database
    ladders: Mapping[str, Ladder]
    question: Question
    terms: GateTerms
    github: Github | None
    gitlab: Gitlab | None
    clock: Callable[[], float] = time.monotonic
    polled_at: float = field(default=float("-inf"))
    """Unix seconds."""
    silent: set[str] = field(default_factory=set)
    """Kinds of callbacks whose API did not answer in this run."""

    def close(self) -> None:
        for each in (self.github, self.gitlab):
            if each is not None:
                each.close()


def open_answerer(
    db: Database, ladders: Mapping[str, Ladder], question: Question, terms: GateTerms
) -> Answerer:
    """With a connection to each API that is configured."""
    return Answerer(
        db=db,
        ladders=ladders,
        question=question,
        terms=terms,
        github=None if terms.github is None else Github(terms.github),
        gitlab=None if terms.gitlab is None else Gitlab(terms.gitlab),
    )


def answer_callbacks(answerer: Answerer, *, now: float) -> None:
    """Look for deployments that wait, then give every answer that is due."""
    ends = answerer.clock() + RUN_SECONDS
    answerer.silent.clear()
    if now - answerer.polled_at >= POLL_SECONDS:
        answerer.polled_at = now
        try:
            for project, environment, target in _waiting(answerer):
                _find_blocked(answerer, project, environment, target, now=now)
        except Unanswered as error:
            answerer.silent |= GITLAB
            log.error("deployments that wait cannot be seen: %s", error)
    for callback in due(answerer.db, now, limit=MOST_AT_ONCE, tools={GITHUB} | GITLAB):
        if answerer.clock() > ends:
            return
        if callback.tool in answerer.silent or not take(answerer.db, callback, now=now):
            continue
        try:
            _answer(answerer, callback, now=now)
        except Unanswered as error:
            if error.silent:
                answerer.silent |= {GITHUB} if callback.tool == GITHUB else GITLAB
            ATTEMPTS.failed(answerer.db, callback, error, now=now)


def _waiting(answerer: Answerer) -> Iterator[tuple[str, str, GateTarget]]:
    if answerer.terms.gitlab is not None:
        for (project, environment), target in answerer.terms.gitlab.deployments.items():
            yield project, environment, target


def _find_blocked(
    answerer: Answerer, project: str, environment: str, target: GateTarget, *, now: float
) -> None:
    """Owe an answer to each, once it is known; nothing is kept of those that wait for a decision."""
    assert answerer.gitlab is not None, "projects are named where GitLab is"
    blocked = answerer.gitlab.blocked(project, environment)
    if not blocked:
        return
    found = _judged(answerer, target.model, target.tier, target.basis, now=now)
    if found is None or found.state is State.INCONCLUSIVE:
        return
    for deployment in blocked:
        ask(
            answerer.db,
            tool=GITLAB_DEPLOYMENT,
            key=(project, str(deployment)),
            delivery="",
            model=target.model,
            tier=target.tier,
            basis=target.basis,
            place={"project": project, "deployment": deployment, "represented_as": target.represented_as},
            now=now,
            reopens=frozenset(),
        )


def _answer(answerer: Answerer, callback: Callback, *, now: float) -> None:
    found = _judged(answerer, callback.model, callback.tier, callback.basis, now=now)
    if found is None:
        problem = f"{callback.model} {callback.tier} is not configured any more"
        log.error("a pipeline waits in vain: %s", problem)
        end(answerer.db, callback, state=CallbackState.GIVEN_UP, at=now, problem=problem)
        return
    answers = {GITHUB: _github, GITLAB_CHECK: _check, GITLAB_DEPLOYMENT: _deployment}
    if answers[callback.tool](answerer, callback, found, now):
        end(answerer.db, callback, state=CallbackState.ANSWERED, at=now)
        log.info("%s was told of %s %s: %s", callback.tool, callback.model, callback.tier, found.line)


def _github(answerer: Answerer, callback: Callback, found: Judgement, now: float) -> bool:
    github, terms = answerer.github, answerer.terms.github
    if github is None or terms is None:
        raise Unanswered("GitHub is not configured any more", again=False)
    if found.state is not State.INCONCLUSIVE:
        approved = found.state is State.APPROVED
        github.decide(callback.place, approved=approved, comment=comment_of(found))
        return True
    if now - callback.created_at >= terms.wait_seconds:
        comment = f"Nobody decided in time.\n\n{comment_of(found)}"
        github.decide(callback.place, approved=False, comment=comment)
        return True
    age = now - callback.created_at
    # The k-th is due after 2 + 4 + ... minutes, and only if there is something new to say.
    news = age >= REPORT_SECONDS * (2.0**callback.reports - 1) and found.line != callback.told
    wait(answerer.db, callback, until=now + LOOK_SECONDS)
    if news and count_report(answerer.db, callback, most=MOST_REPORTS, told=found.line):
        try:
            github.report(callback.place, found)
        except Unanswered as error:  # no attempt at an answer: it decides nothing
            answerer.silent.add(callback.tool)
            log.warning("a report of progress is missing: %s", error)
    return False


def _check(answerer: Answerer, callback: Callback, found: Judgement, now: float) -> bool:
    if answerer.gitlab is None:
        raise Unanswered("GitLab is not configured any more", again=False)
    age = now - callback.created_at
    if found.state is State.INCONCLUSIVE and not found.settled and age < CHECK_SECONDS:
        wait(answerer.db, callback, until=min(now + LOOK_SECONDS, callback.created_at + CHECK_SECONDS))
        return False
    answerer.gitlab.answer_check(callback.place, passed=found.state is State.APPROVED)
    return True


def _deployment(answerer: Answerer, callback: Callback, found: Judgement, now: float) -> bool:
    if answerer.gitlab is None:
        raise Unanswered("GitLab is not configured any more", again=False)
    if found.state is State.INCONCLUSIVE:
        wait(answerer.db, callback, until=now + LOOK_SECONDS)
        return False
    answerer.gitlab.decide(callback.place, approved=found.state is State.APPROVED, comment=found.line)
    return True


def _judged(answerer: Answerer, model: str, tier: str, basis: str, *, now: float) -> Judgement | None:
    """None where the tier is not configured any more, or serves as the baseline."""
    ladder = answerer.ladders.get(model)
    if ladder is None or tier not in {each.name for each in ladder.candidates}:
        return None
    rung = read_standing(answerer.db, ladder, answerer.question, now=now).rung(tier)
    return judge(
        rung, artifact=None, basis=Basis(basis), policy=policy_digest(answerer.question.policy), now=now
    )
