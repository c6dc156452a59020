"""What one answer is worth. PURE.

Enters: a `Request` and, for each arm, an `Outcome` (`exchange`). Leaves: a `PairScore`, or the counted reason
why there is none (`score`). One evaluator a file; `ALL` is the list the worker walks. Imported by `workers`
and `service.cli`; imports nothing of theirs, and no clock, no network, no store.
"""
