"""The confusion matrices of docs/evaluators.md: `python -m tests.evaluators.refusal_matrix [--wrong]`.

Judges every labelled answer of `refusal_set` and prints what the documentation publishes; `--wrong` adds the
answers that rules are developed with and that are judged wrongly. Those of the test half stay unread.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluators.exchange import Answer, Endpoint, Message, Request
from evaluators.refusal import Refusal

SET = Path(__file__).parent / "refusal_set"
HALVES = ("development", "test")
SETS = ("development", "further", "test")
"""The halves, and hard answers that were written for version 3."""
LABELS = ("full", "partial", "comply")
LANGUAGES = {"en": "English", "zh": "Chinese"}
Z = 1.959964
"""The normal quantile of a two-sided 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One labelled answer, and what the evaluator says of it."""

    id: str
    language: str
    kind: str
    label: str
    text: str
    judged: str

    @property
    def wrong(self) -> bool:
        """Whether the evaluator gives another label."""
        return self.judged != self.label

    @property
    def flipped(self) -> bool:
        """Whether the other label also turns a pass into a failure, or back."""
        return (self.judged == "full") != (self.label == "full")


def judge(half: str) -> list[Judged]:
    """Every answer of one set, judged."""
    lines = (SET / f"{half}.jsonl").read_text(encoding="utf-8").splitlines()
    return [_judged(json.loads(line)) for line in lines]


def _judged(row: dict[str, str]) -> Judged:
    asked = (Message(role="user", text=row["request"]),) if "request" in row else ()
    request = Request(endpoint=Endpoint.CHAT_COMPLETIONS, model="m", messages=asked)
    score = Refusal().score(request, Answer(text=row["text"]))
    return Judged(
        id=row["id"],
        language=row["language"][:2],
        kind=row["kind"],
        label=row["label"],
        text=row["text"],
        judged=str(score.label),
    )


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a proportion (Wilson 1927)."""
    rate, scale = hits / trials, 1 + Z * Z / trials
    middle = (rate + Z * Z / (2 * trials)) / scale
    reach = Z * (rate * (1 - rate) / trials + Z * Z / (4 * trials * trials)) ** 0.5 / scale
    return max(0.0, middle - reach), min(1.0, middle + reach)


def published() -> str:
    """The tables as Markdown, as docs/evaluators.md holds them."""
    halves = {half: judge(half) for half in SETS}
    return "\n\n".join((_matrices(halves), _rates(halves), _kinds(halves)))


def _matrices(halves: dict[str, list[Judged]]) -> str:
    head = ["half", "language", "label", *(f"judged {label}" for label in LABELS)]
    rows = []
    for half, answers in halves.items():
        for code, language in LANGUAGES.items():
            counts = Counter((one.label, one.judged) for one in answers if one.language == code)
            for label in LABELS:
                rows.append([half, language, label, *(str(counts[label, said]) for said in LABELS)])
    return _table(head, rows)


def _rates(halves: dict[str, list[Judged]]) -> str:
    head = ["half", "language", "refusals found", "other answers failed wrongly"]
    rows = []
    for half, answers in halves.items():
        for code, language in LANGUAGES.items():
            mine = [one for one in answers if one.language == code]
            refusals = [one for one in mine if one.label == "full"]
            others = [one for one in mine if one.label != "full"]
            found = sum(not one.flipped for one in refusals)
            failed = sum(one.flipped for one in others)
            rows.append([half, language, _rate(found, len(refusals)), _rate(failed, len(others))])
    return _table(head, rows)


def _rate(hits: int, trials: int) -> str:
    low, high = wilson(hits, trials)
    return f"{hits} of {trials}: {hits / trials:.1%} ({low:.1%} to {high:.1%})"


def _kinds(halves: dict[str, list[Judged]]) -> str:
    head = ["kind", "label", *(f"{half}: wrong" for half in SETS), "test: pass or fail wrong"]
    rows = []
    for kind, label in dict.fromkeys((one.kind, one.label) for one in halves["test"]):
        cells = [_wrong(one for one in halves[half] if one.kind == kind) for half in SETS]
        flipped = sum(one.flipped for one in halves["test"] if one.kind == kind)
        rows.append([kind.replace("_", " "), label, *cells, str(flipped)])
    return _table(head, rows)


def _wrong(answers: Iterable[Judged]) -> str:
    wrong = [one.wrong for one in answers]
    return f"{sum(wrong)} of {len(wrong)}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def main() -> None:
    """Print the tables, and what is wrong in the development half if asked."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--wrong", action="store_true", help="show the errors, but for the test half's")
    options = asked.parse_args()
    print(published())
    if options.wrong:
        for one in (*judge("development"), *judge("further")):
            if one.wrong:
                print(f"\n{one.id} {one.kind}: {one.label}, judged {one.judged}\n{one.text}")


if __name__ == "__main__":
    main()
