"""What we ship for GitHub and GitLab is what their own schemas take, and the settings in it are ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from service.settings.document import read_document
from service.settings.pipelines import PipelinesShape

EXAMPLES = Path(__file__).parents[3] / "deploy" / "examples"
SCHEMAS = resources.files("check_jsonschema.builtin_schemas.vendor")


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("github/action.yml", "github-actions"),
        ("github/workflow.yml", "github-workflows"),
        ("gitlab/gitlab-ci.yml", "gitlab-ci"),
    ],
)
def test_the_example_is_valid_to_its_tool(path: str, schema: str) -> None:
    rules = json.loads(SCHEMAS.joinpath(f"{schema}.json").read_text(encoding="utf-8"))
    # `on` is no truth value to GitHub.
    document = read_document((EXAMPLES / path).read_text(encoding="utf-8")).content
    kind = jsonschema.validators.validator_for(rules)
    assert [error.message for error in kind(rules).iter_errors(document)] == []
    broken = {**document, "runs" if "runs" in document else "stages": 7, "jobs": 7}
    assert not kind(rules).is_valid(broken)


@pytest.mark.parametrize("tool", ["github", "gitlab"])
def test_its_settings_are_ours(tool: str) -> None:
    section = yaml.safe_load((EXAMPLES / tool / "tiergate.yaml").read_text(encoding="utf-8"))["pipelines"]
    assert getattr(PipelinesShape.model_validate(section), tool) is not None


@pytest.mark.parametrize(
    ("code", "verdict"), [(0, "approved"), (1, "rejected"), (2, "inconclusive"), (3, "")]
)
@pytest.mark.parametrize("artifact", ["ab" * 32, "none", ""])
def test_the_actions_step_passes_exit_codes_on_and_never_drops_an_empty_digest(
    tmp_path: Path, code: int, verdict: str, artifact: str
) -> None:
    action: dict[str, Any] = yaml.safe_load((EXAMPLES / "github" / "action.yml").read_text(encoding="utf-8"))
    step = action["runs"]["steps"][1]
    gate = tmp_path / "tiergate"
    gate.write_text(f"#!{sys.executable}\nimport sys\nprint(sys.argv[1:])\nsys.exit({code})\n")
    gate.chmod(0o755)
    environ = {
        "PATH": os.environ["PATH"],
        "GATE": str(gate),
        "MODEL": "org/model",
        "TIER": "w8a8",
        "ARTIFACT": artifact,
        "WAIT": "2h",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    # As a runner does it.
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert ran.returncode == code
    assert (tmp_path / "output").read_text() == f"verdict={verdict}\n"
    asked = ["gate", "org/model", "w8a8", "--wait", "2h"]
    asked += [] if artifact == "none" else ["--artifact", artifact]
    assert ran.stdout == (tmp_path / "summary").read_text() == f"{asked}\n"
