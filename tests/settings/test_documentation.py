"""`docs/configuration.md` has a row for every key, with the default and meaning that the code has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic_core import PydanticUndefined

from service.settings.complaints import all_places, valid_keys
from service.settings.fleet_shape import (
    BackendShape,
    HeaderShape,
    KvGuardShape,
    ModelShape,
    PriorityShape,
    TierShape,
)
from service.settings.forms import Shape
from service.settings.money_shape import StepShape
from service.settings.oidc import ClaimRuleShape, IssuerShape
from service.settings.pipelines import CheckShape, DeploymentShape, GithubShape, GitlabShape, RuleShape
from service.settings.policy_shape import CriterionShape
from service.settings.shape import TiergateShape, TlsShape
from service.settings.webhooks import WebhookShape
from tests.settings.test_load import Loaded

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def rows(kind: type[Shape], above: str = "") -> list[str]:
    """`| key | default | meaning |`, sections opened in place; lists and free keys have tables of theirs."""
    found: list[str] = []
    for name, about in kind.model_fields.items():
        key = f"{above}{name}"
        if isinstance(about.default, Shape):
            found += rows(type(about.default), f"{key}.")
        else:
            found.append(f"| `{key}` | {shown(about)} | {about.description} |")
    return found


def shown(about: Any) -> str:
    if about.default is PydanticUndefined:
        return "required" if about.is_required() else "none"
    if about.default is None:
        return "none"
    return f"`{str(about.default).lower() if isinstance(about.default, bool) else about.default}`"


EVERY_ROW = [
    *(row for row in rows(TiergateShape) if not row.startswith("| `models`")),
    *rows(ModelShape),
    *rows(KvGuardShape),
    *rows(PriorityShape),
    *rows(TierShape),
    *rows(BackendShape),
    *rows(HeaderShape),
    *rows(TlsShape),
    *rows(CriterionShape),
    *rows(StepShape),
    *rows(GithubShape),
    *rows(RuleShape),
    *rows(GitlabShape),
    *rows(CheckShape),
    *rows(DeploymentShape),
    *rows(IssuerShape),
    *rows(ClaimRuleShape),
    *rows(WebhookShape),
]


@pytest.mark.parametrize("row", EVERY_ROW, ids=lambda row: row.split("`")[1])
def test_every_key_has_its_row(row: str) -> None:
    assert row in PAGE.read_text(encoding="utf-8").splitlines()


def test_no_row_is_about_a_key_that_does_not_exist() -> None:
    first_cells = [
        line.split("|")[1].strip(" `") for line in PAGE.read_text().splitlines() if line.startswith("| `")
    ]
    keys = {".".join(step for step in place if step != "*") for place in all_places()}
    endings = {key.split(".", cut)[-1] for key in keys for cut in range(key.count(".") + 1)}
    unknown = [cell for cell in first_cells if not cell.startswith("TIERGATE_") and cell not in endings]
    assert unknown == []
    assert valid_keys(()) != []


@pytest.mark.parametrize(
    "block", PAGE.read_text(encoding="utf-8").split("```yaml\n")[1:] if PAGE.exists() else []
)
def test_its_examples_are_valid(block: str, loaded: Loaded) -> None:
    assert loaded(block.split("```")[0]).ladders
