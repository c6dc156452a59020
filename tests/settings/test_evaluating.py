"""Evaluators of other packages: the worked example of the page, and packages that cannot be used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import evaluators
from service.decision.epoch import policy_facts
from service.decision.policy import DECISIVE_BY_DEFAULT, Role
from service.decision.thresholds import thresholds
from service.settings import Settings
from service.settings.evaluating import installed, known
from tests.plug_in import documented, install, install_example

Ran = Callable[..., "subprocess.CompletedProcess[str]"]

SOUND = """
class Sound:
    name = "sound"
    version = "1"
    def applies(self, request): return True
    def score(self, request, answer): raise RuntimeError("boom")
    def score_fault(self, request, fault): raise RuntimeError("boom")
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A directory that the processes of the test find packages in."""
    return tmp_path / "site"


@pytest.fixture
def ran(packages: Path, tmp_path: Path) -> Ran:
    """Runs Python with what is installed in `packages`, in a directory of its own."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "PYTHONPATH": str(packages), "COLUMNS": "200", "TERM": "dumb"}
        return subprocess.run(
            [sys.executable, *arguments],
            env=environ,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def write(directory: Path, minimal: dict[str, Any], policy: str) -> None:
    document = {**minimal, **yaml.safe_load(policy)}
    (directory / "tiergate.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")


def answer(directory: Path, text: str) -> tuple[str, str]:
    request = {"model": "m", "messages": [{"role": "user", "content": "Write to our guests."}]}
    choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
    (directory / "request.json").write_text(json.dumps(request))
    (directory / "answer.json").write_text(json.dumps({"choices": [choice]}))
    return "request.json", "answer.json"


def test_without_other_packages_there_are_ours() -> None:
    assert installed().evaluators == (*evaluators.ALL, *evaluators.ASKED_FOR)
    assert installed().problems == ()
    assert known() == tuple(each.name for each in (*evaluators.ALL, *evaluators.ASKED_FOR))


def test_the_worked_example_scores_answers(packages: Path, ran: Ran, tmp_path: Path) -> None:
    install_example(packages)
    failed = ran("-m", "service.cli", "score", *answer(tmp_path, "Dear [Your Name], welcome."))
    assert failed.returncode == 1, failed.stderr
    assert "no_placeholders      failed         left_open" in failed.stdout
    assert "evidence: [Your Name]" in failed.stdout
    passed = ran("-m", "service.cli", "score", *answer(tmp_path, "Dear guests, welcome."))
    assert passed.returncode == 0, passed.stderr
    assert "no_placeholders      passed         complete" in passed.stdout


def test_the_worked_example_is_shown_until_a_policy_names_it(
    packages: Path, ran: Ran, tmp_path: Path, minimal: dict[str, Any]
) -> None:
    install_example(packages)
    write(tmp_path, minimal, "policy: {margin: 1pp}")
    shown = ran("-m", "service.cli", "policy", "show", "--json")
    values = {each["key"]: each["value"] for each in json.loads(shown.stdout)["values"]}
    assert values["criteria.no_placeholders.role"] == "shown"
    (tmp_path / "stricter.yaml").write_text(documented("yaml"))
    checked = ran("-m", "service.cli", "policy", "check", "stricter.yaml", "--json")
    assert checked.returncode == 0, checked.stderr
    told = json.loads(checked.stdout)
    changed = {each["key"]: (each["before"], each["after"]) for each in told["changes"]}
    assert changed["criteria.no_placeholders.role"] == ("shown", "decisive")
    assert changed["criteria.no_placeholders.margin"] == ("1pp", "2pp")
    assert told["new_epochs"] is True
    schema = json.loads(ran("-m", "service.cli", "schema").stdout)
    names = schema["$defs"]["PolicyShape"]["properties"]["criteria"]["propertyNames"]["enum"]
    assert names == [*(each.name for each in (*evaluators.ALL, *evaluators.ASKED_FOR)), "no_placeholders"]


def test_its_version_belongs_to_the_epoch_once_it_decides(
    packages: Path, ran: Ran, tmp_path: Path, minimal: dict[str, Any]
) -> None:
    install_example(packages)
    code = (
        "import os, pathlib; from service.settings import load; "
        "s = load(pathlib.Path('tiergate.yaml'), {}, make_key=False); "
        "print(s.declared('qwen', 'w8a8')['evaluators'].get('no_placeholders'), s.evaluators[-1].name)"
    )
    write(tmp_path, minimal, documented("yaml"))
    assert ran("-c", code).stdout.split() == ["1", "no_placeholders"]
    write(tmp_path, minimal, "policy: {margin: 1pp}")
    assert ran("-c", code).stdout.split() == ["None", "no_placeholders"]


def test_onlookers_are_all_that_neither_decide_nor_would_by_default(
    loaded: Callable[..., Settings], minimal: dict[str, Any]
) -> None:
    beyond = {each.name for each in evaluators.ALL} - {*DECISIVE_BY_DEFAULT}
    assert {"tool_use", "field_agreement", "answer_health"} <= beyond
    assert loaded(minimal).onlookers == beyond
    criteria = {"refusal": None, "tool_use": None, "answer_health": {"role": "muted"}}
    named = loaded({**minimal, "policy": {"criteria": criteria}})
    assert named.onlookers == beyond - {"tool_use"}


def test_what_is_shown_changes_neither_thresholds_nor_facts_of_an_epoch(
    loaded: Callable[..., Settings], minimal: dict[str, Any]
) -> None:
    policy = loaded(minimal).policy
    alone = replace(policy, criteria=policy.decisive)
    assert [each.evaluator for each in policy.decisive] == [*DECISIVE_BY_DEFAULT]
    assert {each.role for each in policy.criteria[3:]} == {Role.SHOWN}
    assert thresholds(policy, tiers=2, attempt=1) == thresholds(alone, tiers=2, attempt=1)
    assert policy_facts(policy) == policy_facts(alone)
    named = loaded({**minimal, "policy": {"criteria": {"answer_health": None}}}).policy
    assert [each.evaluator for each in named.decisive] == ["answer_health"]


def test_a_proxy_runs_no_code_of_other_packages(
    packages: Path, ran: Ran, tmp_path: Path, minimal: dict[str, Any]
) -> None:
    install(packages, "loud", {"loud": "raise SystemExit('run')"}, {"sound": "loud:Sound"})
    write(tmp_path, minimal, "policy: {criteria: {sound: {}}}")
    code = (
        "import pathlib; from service.settings import load; "
        "print(len(load(pathlib.Path('tiergate.yaml'), {}, make_key=False, judges=JUDGES).evaluators))"
    )
    quiet = ran("-c", code.replace("JUDGES", "False"))
    assert quiet.stdout.split() == [str(len(evaluators.ALL))], quiet.stderr
    refused = ran("-c", code.replace("JUDGES", "True"))
    assert "the package 'loud' cannot be used: SystemExit: run" in refused.stderr


BROKEN = {
    # By the name of its entry point: the module, and what is said of it.
    "unknown": ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
    "missing": ("Other = 1", "AttributeError: "),
    "other": (SOUND, "the entry point must have the name of the evaluator, which is 'sound'"),
    "refusal": (SOUND, "another evaluator has this name"),
    "spelled": (SOUND.replace('"sound"', '"Sound It"'), "lower case letters, digits and _"),
    "sound": (
        SOUND.replace('"1"', '""'),
        "its version must be 1 to 32 visible ASCII characters, got ''",
    ),
    "short": (
        SOUND.replace("score_fault", "fault").replace("sound", "short"),
        "it has no method score_fault",
    ),
    "asking": ("class Sound:\n    def __init__(self, model): pass\n", "TypeError: "),
    "number": ("Sound = 5", "its name must be"),
}


def test_a_package_that_cannot_be_used_is_named_and_stops_no_other(packages: Path, ran: Ran) -> None:
    install_example(packages)
    for name, (module, _) in BROKEN.items():
        install(packages, f"acme-{name}", {f"acme_{name}": module}, {name: f"acme_{name}:Sound"})
    code = (
        "import json; from service.settings.evaluating import installed; found = installed(); "
        "print(json.dumps([[each.name for each in found.evaluators], found.problems]))"
    )
    names, problems = json.loads(ran("-c", code).stdout)
    assert names == [*(each.name for each in (*evaluators.ALL, *evaluators.ASKED_FOR)), "no_placeholders"]
    assert len(problems) == len(BROKEN)
    for name, problem in zip(sorted(BROKEN), problems, strict=True):
        package = f"the evaluator '{name}' (acme_{name}:Sound) of the package 'acme-{name}' cannot be used: "
        assert problem.startswith(package)
        assert BROKEN[name][1] in problem
        assert problem.endswith("correct or uninstall that package")


def test_commands_refuse_a_broken_package_and_tell_a_bug_as_such(
    packages: Path, ran: Ran, tmp_path: Path, minimal: dict[str, Any]
) -> None:
    install(packages, "acme-sound", {"sound": SOUND}, {"sound": "sound:Sound"})
    bug = ran("-m", "service.cli", "score", *answer(tmp_path, "Dear guests, welcome."))
    assert bug.returncode == 2
    assert "sound                unscored       bug" in bug.stdout
    assert "reason: RuntimeError: boom" in bug.stdout
    install(packages, "acme-broken", {"broken": ""}, {"broken": "broken:Broken"})
    write(tmp_path, minimal, "policy: {margin: 1pp}")
    for command in (("score", *answer(tmp_path, "Welcome.")), ("check", "--offline")):
        refused = ran("-m", "service.cli", *command)
        assert refused.returncode == 2
        assert "of the package 'acme-broken' cannot be used: AttributeError" in refused.stderr
        assert "Traceback" not in refused.stderr


def test_what_judges_only_if_asked_for_is_known_and_judges_once_a_policy_names_it(
    loaded: Callable[..., Settings], minimal: dict[str, Any]
) -> None:
    silent = loaded(minimal)
    assert "side_by_side" not in {each.name for each in silent.evaluators}
    assert "side_by_side" not in {each.evaluator for each in silent.policy.criteria}
    minimal["policy"] = {"criteria": {"structured_output": {}, "side_by_side": {"role": "shown"}}}
    asked = loaded(minimal)
    assert "side_by_side" in {each.name for each in asked.evaluators}
    assert "side_by_side" in asked.onlookers
    minimal["policy"]["criteria"]["side_by_side"] = {"margin": "5pp"}
    assert "side_by_side" in {each.evaluator for each in loaded(minimal).policy.decisive}
