"""What one answer is worth. PURE.

Enters: a `Request` and, for each arm, an `Outcome` (`exchange`). Leaves: a `PairScore`, or the counted reason
why there is none (`score`). One evaluator a file; `ALL` is the list the worker walks. Imported by `workers`
and `service.cli`; imports nothing of theirs, and no clock, no network, no store.

`structured_output` rests on `strict_json`, `guides` and `json_schema` (with `json_formats` and `patterns`),
`long_context_recall` on `values`, and both on `refusal_rules` where an answer declines. `needles` makes the
recall questions, `planted` those of facts of our own, and `passive_recall` asks none. `answer_health` rests
on `repetition`, `scripts` and `beside`; `field_agreement` (on `differences` and `field_names`) and
`side_by_side` compare the two answers of a pair.
"""

from evaluators.answer_health import AnswerHealth
from evaluators.field_agreement import FieldAgreement
from evaluators.long_context_recall import LongContextRecall
from evaluators.passive_recall import PassiveRecall
from evaluators.refusal import Refusal
from evaluators.score import Evaluator
from evaluators.side_by_side import SideBySide
from evaluators.structured_output import StructuredOutput
from evaluators.tool_use import ToolUse

ALL: tuple[Evaluator, ...] = (
    StructuredOutput(),
    LongContextRecall(),
    Refusal(),
    ToolUse(),
    FieldAgreement(),
    AnswerHealth(),
    PassiveRecall(),
)
"""Every evaluator that judges without being asked to, in the order in which they are shown."""
ASKED_FOR: tuple[Evaluator, ...] = (SideBySide(),)
"""Those that judge where a policy names them: each costs every pair a unit, and these say little more than
what `AnswerHealth` counts beside."""

__all__ = ["ALL", "ASKED_FOR"]
