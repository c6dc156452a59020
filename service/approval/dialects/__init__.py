"""One judgement in every pipeline's own dialect, under `/gates/<tool>/...` (ADR 30).

Enters: what a tool asks (model, tier, the artifact it is about to roll out). `judgement` makes the one answer
from verdict, approval and artifact, without I/O; `asking` reads what it needs. Each other module renders it
for one tool: its states, its JSON, its status codes. An outage of ours never approves and never rolls back.
"""
