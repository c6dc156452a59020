"""From what a tool asks to the judgement: names looked up, the standing read."""

from __future__ import annotations

import re

from service.approval.answers import policy_digest
from service.approval.desk import Desk
from service.approval.dialects.judgement import Basis, Judgement, judge
from service.approval.errors import Problem, echo
from service.approval.names import find_candidate, find_ladder

DIGEST = re.compile(r"(?:sha256:)?[0-9a-fA-F]{64}")


def judgement_of(
    desk: Desk, model: str, tier: str, *, artifact: str | None = None, basis: Basis = Basis.APPROVAL
) -> Judgement:
    """The judgement on a tier; 404 for unknown names, 409 for the baseline, 422 for what is no digest."""
    find_candidate(find_ladder(desk.config.ladders, model), tier)
    if artifact is not None and DIGEST.fullmatch(artifact) is None:
        raise Problem(
            422,
            "invalid_request",
            f"artifact: {echo(artifact)} is not a sha256 in 64 hexadecimal digits",
            hint="leave it out, or send what `tiergate artifact digest` prints",
        )
    return judge(
        desk.standing(model).rung(tier),
        artifact=artifact,
        basis=basis,
        policy=policy_digest(desk.config.policy),
        now=desk.now(),
    )
