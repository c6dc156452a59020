"""Sentences that rooms make as reasons or refusals, found in their source: forms, with `{}` for what changes.

Whatever text with a blank such a module has counts as one, unless it is documentation, is logged, ends a
program (`raise ValueError`), or names a number. So a reason that somebody adds is met here by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DECISION = ("decide", "gates", "finding", "ending", "unscored", "tenants", "labelled", "slo", "economics")
KEPT = ("job_terms", "jobs", "manifest")
JUDGES = ("answer_health", "field_agreement", "long_context_recall", "passive_recall", "refusal", "tool_use")
READERS = ("structured_output", "side_by_side", "strict_json", "json_keywords", "guides", "differences")
ROOMS = {
    "service/decision": (*DECISION, "money", "wording", "watch"),
    "service/capacity": ("prefix_gate", "batch", "patterns", "diagnosis", "diagnosis_rules", "symptoms"),
    "service/report/sections": ("capacity",),
    "service/engines": ("attribution", "settling"),
    "service/store/decided": ("chain", "approvals"),
    "service/store/load": KEPT,
    "service/store/traffic": ("account",),
    "service/store/verdicts": ("standing", "serving"),
    "service/load": ("sweep", "crowd", "reckoning", "clients"),
    "service/approval": ("capacity", "backends"),
    "evaluators": (*JUDGES, *READERS),
    "workers": ("shadow_job", "ramp", "rollback", "load_findings", "load_plan", "load_heart", "load_reading"),
}
REASONS = tuple(f"{room}/{name}.py" for room, names in ROOMS.items() for name in names)
"""Modules whose sentences pages show as reasons."""
DOOR = ("access", "code_logins", "failures", "gatekeeper", "id_tokens", "narrowing")
DESK = (
    "approvals",
    "interventions",
    "jobs",
    "judging",
    "names",
    "pair_texts",
    "plans",
    "promotion",
    "reports",
)
REFUSALS = (
    *(f"service/approval/{name}.py" for name in (*DOOR, *DESK, "reports")),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "service/dashboard").rglob("*.py")),
)
"""Modules whose refusals pages show: what is said to `Problem` and the functions that make one."""
MAKERS = {"Problem", "CannotBegin", "unauthorized", "_failed", "_down", "_not_allowed", "require"}
ENDS = {"ValueError", "KeyError", "TypeError", "RuntimeError", "AssertionError", "Unwatchable", "RouteMoved"}
BLANK = "{}"


def made(path: str) -> Iterator[str]:
    """The forms of a module whose sentences are reasons."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    apart = set(_apart(tree))
    yield from _texts(tree, apart)


def refused(path: str) -> Iterator[str]:
    """The forms of a module's refusals: all that stands in a call of `MAKERS`."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    apart = set(_apart(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) in MAKERS:
            yield from _texts(node, apart)


def _texts(tree: ast.AST, apart: set[int]) -> Iterator[str]:
    for node in ast.walk(tree):
        if id(node) in apart:
            continue
        text = _form(node)
        if text is not None and " " in text.strip(" ;:.,"):
            yield text


def _form(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else BLANK for part in node.values)
    return None


def _apart(tree: ast.AST) -> Iterator[int]:
    """Nodes that are no reason: see the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node.value)
        elif isinstance(node, ast.JoinedStr):
            for part in node.values:
                yield id(part)
                if isinstance(part, ast.FormattedValue) and part.format_spec is not None:
                    yield from map(id, ast.walk(part.format_spec))
        elif isinstance(node, ast.Dict):
            yield from (id(part) for key in node.keys if key is not None for part in ast.walk(key))
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and _called(node.exc) in ENDS:
            yield from map(id, ast.walk(node))
        elif isinstance(node, ast.Assert) and node.msg is not None:
            yield from map(id, ast.walk(node.msg))
        elif isinstance(node, ast.Call) and _called(node) in {
            "exception",
            "error",
            "warning",
            "info",
            "debug",
            "compile",
        }:
            yield from map(id, ast.walk(node))


def _called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
