"""Every code of a refusal, with the title that never changes with the occasion (RFC 9457, `title`).

A code once published keeps its meaning: programs branch on it. `docs/api.md` prints this list.
"""

from __future__ import annotations

from collections.abc import Mapping

TITLES: Mapping[str, str] = {
    "artifact_mismatch": "The artifact is another one than the tier declares",
    "bad_host": "The request does not name one host",
    "bad_idempotency_key": "The Idempotency-Key cannot be one",
    "bad_signature": "The signature is not that of the secret shared with the sender",
    "bad_time": "The time of a label cannot be",
    "baseline": "The tier is the baseline, which needs no verdict",
    "body_cut_off": "The body ended before it was complete",
    "body_too_large": "The body is too large",
    "body_too_slow": "The body took too long",
    "empty_corpus": "The corpus has no requests to send",
    "foreign_callback": "The callback leads to a place that is not configured",
    "foreign_labeller": "The label is of somebody else than the token",
    "held": "The text is of a capture that is held",
    "hook_disagrees": "The hook asks about something else than its metadata say",
    "hook_unsaid": "The hook does not say of which kind it is",
    "host_not_allowed": "The API does not answer to that name",
    "idempotency_key_reused": "The Idempotency-Key was used for another request",
    "idempotent_request_running": "A request with this Idempotency-Key is being answered",
    "form_too_old": "The form is of another session",
    "idempotent_outcome_unknown": "What became of the request with this Idempotency-Key is not known",
    "insufficient_scope": "The token may not do this",
    "internal_error": "The API met an error of its own",
    "invalid_json": "The body is not JSON",
    "invalid_manifest": "The manifest is not one of a shadow job",
    "invalid_plan": "The plan of the shadow job cannot be",
    "invalid_request": "A field or parameter is not what it should be",
    "issuer_down": "The issuer of the token cannot be asked",
    "job_runs": "A shadow job of the model runs",
    "metadata_unknown": "The metadata of the hook are not known",
    "method_not_allowed": "The path does not have that method",
    "model_not_allowed": "The token is not for that model",
    "no_adjudication": "No texts can be opened here",
    "no_report": "There is no report",
    "no_slo": "The model has no service level to measure against",
    "not_a_form": "Pages take forms alone",
    "not_approved": "The tier is not approved",
    "not_as_shown": "It would do something else by now than was shown",
    "not_configured": "This gate is not configured",
    "not_found": "There is nothing at that path",
    "not_json": "The body is not declared as JSON",
    "not_lower": "The tier is not below the one that serves",
    "not_rejected": "The tier is neither rejected nor ended without a decision",
    "nothing_below": "No tier is below the one that serves",
    "nothing_to_skip": "There is nothing to skip",
    "one_tier": "The model has one tier alone",
    "origin_not_allowed": "Pages of that origin may not write here",
    "other_model": "The manifest is of another model",
    "reason_required": "A reason is needed",
    "refused": "The request is refused",
    "reserved_labeller": "The name of the labeller is reserved",
    "route_moved": "Others keep changing the route",
    "sealed": "The text cannot be opened",
    "serving_capacity": "The backends serve clients",
    "store_down": "The database does not answer",
    "target_no_room": "The target has no room for its share",
    "target_unhealthy": "The target is down",
    "tier_unsaid": "The hook does not say which tier it is about",
    "too_many_failures": "Too many wrong tokens came from that address",
    "unauthorized": "A token is needed",
    "unknown_evaluator": "There is no such evaluator",
    "unknown_execution": "There is no such judgement",
    "unknown_job": "There is no such shadow job",
    "unknown_model": "There is no such model",
    "unknown_tier": "There is no such tier",
    "verdict_not_accept": "The verdict is not accept",
}


def title_of(code: str) -> str:
    """The title of a code; the code in words where it has none."""
    return TITLES.get(code, code.replace("_", " ").capitalize())
