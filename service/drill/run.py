"""One drill, from the user's settings to what was seen, in a directory of its own that goes with it.

DrillBroken
    the drill could not be played: nothing is said about the instrument
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any

from service.demo.prompt import Kind, Prompt
from service.drill.acts import Act, Seen, Sign, signs
from service.drill.arms import CROSSED, DAMAGED, SWAPPED, Stage, stages
from service.drill.chain import LOOK, Chain, chain
from service.drill.configuration import configuration
from service.drill.defects import ASKED_BY, Defect
from service.drill.plan import PER_ROUND, DrillPlan
from service.drill.prompts import prompts_of
from service.drill.relay import Relay, Upstream
from service.fleet import Backend
from service.launch.ask import Unusable, ask_all
from service.launch.ports import free_port
from service.settings import Settings
from service.settings.units import LONGEST_SOCKET, Listen
from service.settings.values import ProbePlan

MODEL_OF: Mapping[Act, str] = {
    Act.HEALTHY: DAMAGED,
    Act.DAMAGED: DAMAGED,
    Act.SWAPPED: SWAPPED,
    Act.CROSSED: CROSSED,
}
UNINFORMATIVE = 0.5
"""Above this share of its own failures the baseline shows nothing of what was planted."""
NEVER_ASKED = "probe.per_capture is 0: recall is never asked"
MOST_FAILURES = 3
ROOM_FOR_SOCKETS = 32
"""Bytes below the drill's directory: names of arms are shorter."""
TELL_EVERY = 15.0
"""Seconds between two words about a backend that takes its time."""
SETTLE_SECONDS = 30.0
"""Patience with the worker, besides the time of a replay and its retries."""


class Outcome(StrEnum):
    """What a drill says of the instrument."""

    PASS = "pass"
    FAIL = "fail"
    UNFINISHED = "unfinished"
    """Budget or time ran out before all was seen, and nothing was seen that must not be."""


class DrillBroken(Exception):
    """Why the drill could not be played, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drilled:
    """What a drill has shown."""

    model: str
    signs: tuple[Sign, ...]
    damaged: int
    """Answers that were damaged."""
    asked: int
    """Requests to the baseline's backends."""
    spent: int
    """Tokens."""
    seconds: float
    cut_short: str = ""
    """What ran out before all was seen; empty when every request that was allowed was asked."""

    @property
    def outcome(self) -> Outcome:
        if all(sign.seen is Seen.YES for sign in self.signs):
            return Outcome.PASS
        cut_short = self.cut_short and not any(sign.seen is Seen.NO for sign in self.signs)
        return Outcome.UNFINISHED if cut_short else Outcome.FAIL


Show = Callable[[float, tuple[Sign, ...], int], None]
"""Is told after every look: seconds, signs, requests to the backends."""


def upstream_of(settings: Settings, model: str, *, on_serving: bool) -> Upstream:
    """Where the drill's questions go; raises `DrillBroken` where nothing may be asked, or nobody answers."""
    baseline = settings.ladders[model].baseline
    backends = baseline.shadow
    if not backends and (on_serving or settings.shadow.on_serving):
        backends = baseline.backends
    if not backends:
        raise DrillBroken(
            f"the baseline {baseline.name!r} of {model!r} has no shadow backends, and its others serve"
            " clients: give it some, or let the drill use those that serve, with --on-serving"
        )
    usable = _usable(backends, baseline.model)
    day = settings.shadow.tokens_per_day
    return Upstream(
        backends=usable,
        model=baseline.model,
        timeout_seconds=settings.shadow.timeout_seconds,
        concurrency=settings.shadow.concurrency,
        # As much at once as all workers together may spend in a burst.
        tokens=None if day is None else day // 24,
    )


def _usable(backends: tuple[Backend, ...], model: str) -> tuple[Backend, ...]:
    answers = ask_all(backends)
    told: list[str] = []
    usable: list[Backend] = []
    for backend in backends:
        answer = answers[backend]
        if isinstance(answer, Unusable):
            told.append(f"{backend.url} {answer}")
        elif answer.models and model not in answer.models:
            told.append(f"{backend.url} serves {', '.join(answer.models)}, not {model}")
        else:
            usable.append(backend)
    if not usable:
        raise DrillBroken("no backend of the baseline can be asked: " + "; ".join(told))
    return tuple(usable)


def run(
    settings: Settings,
    model: str,
    plan: DrillPlan,
    upstream: Upstream,
    environ: Mapping[str, str],
    *,
    say: Callable[[str], None],
    show: Show,
    hurry: Callable[[], bool] = lambda: False,
) -> Drilled:
    """The whole drill; raises `DrillBroken`, or what the supervisor raises."""
    began = time.monotonic()
    probe, staged = settings.probe_of(model), stages(plan.defects)
    with _directory(say) as directory:
        admin = Listen(host="127.0.0.1", port=free_port())
        arms = [arm for stage in staged.values() for arm in stage.arms]
        with Relay(arms, upstream, directory, share=plan.share, seed=plan.seed) as relay:
            path = directory / "tiergate.yaml"
            path.write_text(
                configuration(
                    settings, staged, relay.sockets, probe=probe, directory=directory, admin=str(admin)
                ),
                encoding="utf-8",
            )
            with chain(path, environ, admin=admin, say=say, hurry=hurry) as running:
                watch = _Watch(plan=plan, probe=probe, chain=running, relay=relay, stages=staged)
                seen = watch.play(show)
                return Drilled(
                    model=model,
                    signs=seen,
                    damaged=relay.planted.total(),
                    asked=relay.asked,
                    spent=relay.spent,
                    seconds=time.monotonic() - began,
                    cut_short=watch.cut_short,
                )


@dataclass(slots=True, kw_only=True)
class _Watch:
    """Asks, looks, and remembers what was seen when it was seen first."""

    plan: DrillPlan
    probe: ProbePlan
    chain: Chain
    relay: Relay
    stages: Mapping[str, Stage]
    settled: dict[tuple[Act, Defect], Sign] = field(default_factory=dict)
    """Signs that nothing can change any more."""
    prompts: dict[tuple[str, Kind], Iterator[Prompt]] = field(default_factory=dict)
    asked: Counter[tuple[str, Kind]] = field(default_factory=Counter)
    cut_short: str = ""

    def play(self, show: Show) -> tuple[Sign, ...]:
        """All acts side by side, until everything is seen or nothing more may be asked."""
        began = told = time.monotonic()
        seen: tuple[Sign, ...] = ()

        def tell() -> None:
            nonlocal told
            told = time.monotonic()
            show(told - began, seen, self.relay.asked)

        def tick() -> None:
            if time.monotonic() - told > TELL_EVERY:
                tell()

        while bodies := self._round(seen):
            self.chain.send(bodies, tick=tick)
            self._wait(tick)
            self._check_answers()
            seen = self._look()
            tell()
            elapsed = time.monotonic() - began
            if self.relay.is_spent:
                self.cut_short = f"the shadow budget of an hour ({self.relay.spent:,} tokens) is spent"
            elif elapsed > self.plan.seconds:
                self.cut_short = f"{self.plan.seconds:g} s are over"
            if self.cut_short:
                break
        self._check_baseline(seen)
        return seen

    def _round(self, seen: tuple[Sign, ...]) -> list[dict[str, Any]]:
        """The next requests: of each kind, to each ladder on which something is still to be seen."""
        wanted = (
            {(MODEL_OF[sign.act], ASKED_BY[sign.defect]) for sign in seen if sign.seen is Seen.NOT_YET}
            if seen
            else {(model, ASKED_BY[defect]) for model in self.stages for defect in self.plan.defects}
        )
        return [
            self._body(prompt, model) for model, kind in sorted(wanted) for prompt in self._next(model, kind)
        ]

    def _next(self, model: str, kind: Kind) -> list[Prompt]:
        place = (model, kind)
        if place not in self.prompts:
            # The same for every ladder: what one has asked, the relay knows when another asks it.
            self.prompts[place] = prompts_of(
                kind,
                seed=self.plan.seed,
                min_context_chars=self.probe.min_context_chars,
                facts=self.probe.per_capture,
            )
        count = min(PER_ROUND, self.plan.pairs - self.asked[place])
        self.asked[place] += count
        return list(islice(self.prompts[place], count))

    def _body(self, prompt: Prompt, model: str) -> dict[str, Any]:
        """As long an answer, and the same extras, as recall questions have: a thinking model needs both."""
        body = prompt.body(model)
        return {
            **body,
            **self.probe.extra_body,
            "max_tokens": max(prompt.max_tokens, self.probe.max_tokens),
        }

    def _wait(self, tick: Callable[[], None]) -> None:
        settings = self.chain.settings.shadow
        deadline = time.monotonic() + SETTLE_SECONDS + settings.timeout_seconds * (settings.retries + 1)
        while not self.chain.is_settled():
            self._check_answers()
            if self.relay.is_spent:
                return
            if time.monotonic() > deadline:
                raise DrillBroken("the drill's worker does not finish what it was given: see its log")
            time.sleep(LOOK)
            tick()

    def _check_answers(self) -> None:
        failures = [*self.relay.failures, *self.chain.failures]
        if len(failures) >= MOST_FAILURES and not self.relay.is_spent:
            raise DrillBroken(f"the baseline's backends do not answer the drill: {failures[0]}")

    def _look(self) -> tuple[Sign, ...]:
        standings = self.chain.standings()
        found = [
            replace(sign, seen=Seen.NO, trouble=NEVER_ASKED)
            if sign.defect is Defect.RECALL and not self.probe.per_capture
            else sign
            for sign in signs(self.chain.settings.policy, self.plan.defects, standings)
        ]
        for sign in found:
            # A healthy arm may still be rejected; what else is seen stays seen.
            if sign.seen is Seen.NO or (sign.seen is Seen.YES and sign.act is not Act.HEALTHY):
                self.settled.setdefault(sign.key, sign)
        return tuple(self.settled.get(sign.key, sign) for sign in found)

    def _check_baseline(self, seen: tuple[Sign, ...]) -> None:
        """A baseline that fails by itself cannot tell a blind instrument from a seeing one."""
        missed = {sign.defect for sign in seen if sign.seen is Seen.NOT_YET and sign.tally.n}
        for sign in seen:
            failing = sign.tally.baseline_failures / sign.tally.n if sign.tally.n else 0.0
            if sign.act is Act.HEALTHY and sign.defect in missed and failing > UNINFORMATIVE:
                raise DrillBroken(
                    f"the baseline itself fails {failing:.0%} of {sign.tally.n} {sign.criterion} pairs:"
                    " the model cannot do what the drill asks, it thinks until `probe.max_tokens` is used up"
                    " (give it more, or switch thinking off with `probe.extra_body`), or the evaluator passes"
                    " nothing. Leave it out with --defect, or score an answer with `tiergate score`"
                )


@contextmanager
def _directory(say: Callable[[str], None]) -> Iterator[Path]:
    """For sockets, stores and logs; its path must be short, since that of a socket must be."""
    directory = Path(tempfile.mkdtemp(prefix="tiergate-drill-"))
    if len(os.fsencode(directory)) + ROOM_FOR_SOCKETS > LONGEST_SOCKET:
        directory.rmdir()
        raise DrillBroken(
            f"{directory.parent} is too long a path for the drill's sockets, of {LONGEST_SOCKET} bytes each: "
            "set TMPDIR to a shorter one, such as /tmp"
        )
    try:
        yield directory
    except Exception:
        say(f"the logs are kept in {directory / 'logs'}")
        raise
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    shutil.rmtree(directory, ignore_errors=True)
