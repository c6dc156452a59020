"""`tiergate policy`: what is in force, what a file would change, what it would have said of past evidence."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from service.cli import policy
from service.decision.evidence import Shown
from service.decision.policy import Gate
from service.settings import load
from service.store.sql.database import open_database
from service.store.verdicts.measurements import Measurement, put_measurement
from tests.approval.live import add_pairs

runner = CliRunner()
MODEL = "qwen"
CONFIGURATION = """
models:
  qwen:
    ladder:
      - {tier: bf16, backends: [http://a:1], shadow: [http://s:1]}
      - {tier: w8a8, backends: [http://b:1]}
      - {tier: w4a16, backends: [http://c:1]}
policy:
  margin: 20pp
  min_pairs: 20
  criteria: {structured_output: , refusal: {hypothesis: non_inferior}}
  gates: {control: off, coverage: off, attribution: off, slo: off, money: off}
"""
LIKE_IT = CONFIGURATION.partition("policy:\n")[2]


@pytest.fixture
def place(elsewhere: Path) -> Path:
    """The working directory, with a configuration in force."""
    (elsewhere / "tiergate.yaml").write_text(CONFIGURATION)
    return elsewhere


@pytest.fixture
def stored(place: Path) -> Path:
    """... and with evidence: w8a8 is clean, w4a16 fails where the baseline does not."""
    settings = load(None, {})
    db = open_database(settings.database_url)
    for tier, counts in (("w8a8", {"clean": 100}), ("w4a16", {"clean": 60, "harm": 40})):
        add_pairs(db, tier, model=MODEL, epoch=settings.epoch_of(MODEL, tier), **counts)
    db.close()
    return place


def ran(*arguments: str, code: int = 0) -> Result:
    app = typer.Typer()
    policy.register(app)
    outcome = runner.invoke(
        app, ["policy", *arguments], env={"COLUMNS": "160", "TERM": "dumb"}, catch_exceptions=False
    )
    assert outcome.exit_code == code, outcome.output
    return outcome


def document(*arguments: str, code: int = 0) -> Any:
    return json.loads(ran(*arguments, "--json", code=code).stdout)


def test_show_tells_every_value_its_source_and_what_it_asks_for(place: Path) -> None:
    told = " ".join(ran("show").stdout.split())
    for part in (
        "criteria.structured_output.margin 20pp policy.margin (line 9)",
        "criteria.refusal.hypothesis non_inferior policy.criteria.refusal.hypothesis (line 11)",
        "alpha.accept 5% default",
        "gates.slo off policy.gates.slo (line 12)",
        "qwen: 2 candidates, attempt 1, alpha 0.0304",
        "structured_output decisive 20pp 32.9 80",
    ):
        assert part in told, part
    asks = document("show")["asks"]
    assert {each["model"] for each in asks} == {MODEL}
    decisive = [each["criterion"] for each in asks if each["role"] == "decisive"]
    assert [each["criterion"] for each in asks][:2] == decisive == ["structured_output", "refusal"]
    assert asks[0]["accept_e_value"] == pytest.approx(32.8987, abs=1e-3)
    assert asks[0]["reject_e_value"] == pytest.approx(2 * 2 / 0.05)
    later = document("show", "--attempt", "2")["asks"][0]
    assert later["accept_e_value"] == pytest.approx(4 * asks[0]["accept_e_value"])
    assert later["clean_pairs"] > asks[0]["clean_pairs"]


def test_show_tells_what_load_runs_are_held_to_where_they_are_asked_for(place: Path) -> None:
    assert "SLO gate" not in ran("show").stdout, "it is off there"
    (place / "asked.yaml").write_text("load_runs: {slo_margin: 0.5pp, failure_weight: 3x}\nmargin: 20pp\n")
    told = " ".join(ran("check", "asked.yaml").stdout.split())
    assert "SLO gate: misses rise by less than 0.5pp" in told
    assert "run 1 at alpha 0.0185: " in told
    assert "where a failure costs 3 requests of the baseline" in told
    runs = document("check", "asked.yaml")["load_runs"]
    assert [each["run"] for each in runs] == [1, 2, 10]
    assert runs[0]["alpha"] == pytest.approx(0.05 * 0.6079271**2, rel=1e-6)
    assert runs[1]["alpha"] == pytest.approx(runs[0]["alpha"] / 4)
    assert 7_000 < runs[0]["requests_at_99_percent"] < runs[1]["requests_at_99_percent"]


def test_check_takes_a_policy_alone_compares_it_and_touches_nothing(place: Path) -> None:
    (place / "other.yaml").write_text(LIKE_IT.replace("20pp", "10pp"))
    before = sorted(path.name for path in place.iterdir())
    told = " ".join(ran("check", "other.yaml").stdout.split())
    assert "can be used; nothing was touched" in told
    assert "criteria.structured_output.margin 20pp 10pp" in told
    assert "starts a new epoch for every tier" in told
    assert sorted(path.name for path in place.iterdir()) == before
    (place / "other.yaml").write_text(LIKE_IT.replace("min_pairs: 20", "min_pairs: 30"))
    found = document("check", "other.yaml")
    changed = {each["key"] for each in found["changes"]}
    assert changed > {"criteria.structured_output.min_pairs", "criteria.refusal.min_pairs"}
    assert {key.rpartition(".")[2] for key in changed} == {"min_pairs"}
    assert found["new_epochs"] is False
    assert "says what" in ran("check", "tiergate.yaml").stdout


def test_check_needs_no_configuration_in_force(place: Path) -> None:
    (place / "tiergate.yaml").rename(place / "elsewhere.yaml")
    found = document("check", "elsewhere.yaml")
    assert (found["changes"], found["new_epochs"]) == (None, None)


def test_what_is_wrong_with_a_policy_is_told_with_its_line(place: Path) -> None:
    (place / "other.yaml").write_text("margin: 1pp\ncriteria:\n  refusals: {}\n")
    for arguments in (("check", "other.yaml"), ("diff", "other.yaml")):
        wrong = ran(*arguments, code=2)
        assert "policy.criteria.refusals (line 3)" in wrong.stderr
        assert "did you mean `refusal`?" in wrong.stderr
    assert "no such file" in ran("check", "nowhere.yaml", code=2).stderr


def test_diff_judges_stored_evidence_again_and_says_that_it_approves_nothing(stored: Path) -> None:
    (stored / "other.yaml").write_text(LIKE_IT.replace("20pp", "1pp"))
    told = " ".join(ran("diff", "other.yaml", code=1).stdout.split())
    assert "RETROSPECTIVE" in told
    assert "approves nothing" in told
    assert "starts a new epoch" in told
    assert "qwen / w8a8" in told
    found = document("diff", "other.yaml", code=1)
    assert found["retrospective"] is True
    first, second = found["tiers"]
    decision = first["side_by_side"][0]
    assert (decision["subject"], decision["before"], decision["after"]) == ("decision", "accept", "undecided")
    assert any("margin of 0.01" in reason for reason in decision["why"])
    assert (first["decision_differs"], second["decision_differs"]) == (True, False)
    assert second["side_by_side"][0]["after"] == "reject"


def test_diff_exits_0_when_every_decision_is_the_same(stored: Path) -> None:
    (stored / "other.yaml").write_text(LIKE_IT.replace("20pp", "19pp"))
    assert not any(each["decision_differs"] for each in document("diff", "other.yaml")["tiers"])
    same = ran("diff", "tiergate.yaml").stdout
    assert "Both policies say the same" in same
    assert "starts no new epoch" in same


def test_diff_of_one_tier_judges_the_rungs_below_it_as_well(stored: Path) -> None:
    (stored / "other.yaml").write_text(LIKE_IT.replace("20pp", "1pp"))
    found = document("diff", "other.yaml", MODEL, "w4a16")
    assert [each["tier"] for each in found["tiers"]] == ["w4a16"]
    for names, nearest in ((("qwem",), "'qwen'"), ((MODEL, "w8a9"), "'w8a8'"), ((MODEL, "bf16"), "'w4a16'")):
        assert f"did you mean {nearest}" in ran("diff", "other.yaml", *names, code=2).stderr


def test_diff_looks_for_the_worst_stratum_at_the_other_policy_s_margin(place: Path) -> None:
    (place / "tiergate.yaml").write_text(CONFIGURATION.replace("20pp", "90pp"))
    settings = load(None, {})
    db = open_database(settings.database_url)
    for stratum, counts in (
        ("under-2k/free/whole", {"clean": 150}),
        ("32k-128k/free/whole", {"clean": 2, "harm": 40}),
    ):
        epoch = settings.epoch_of(MODEL, "w8a8")
        add_pairs(db, "w8a8", model=MODEL, epoch=epoch, stratum=stratum, **counts)
    db.close()
    (place / "other.yaml").write_text(LIKE_IT)
    (tier,) = document("diff", "other.yaml", MODEL, "w8a8", code=1)["tiers"]
    decision = tier["side_by_side"][0]
    assert (decision["before"], decision["after"]) == ("accept", "reject")
    assert any("shown in stratum 32k-128k/free/whole" in reason for reason in decision["why"])


def test_diff_takes_load_runs_for_as_long_as_the_other_policy_says(stored: Path) -> None:
    settings = load(None, {})
    db = open_database(settings.database_url)
    put_measurement(
        db,
        Measurement(
            model=MODEL,
            tier="w8a8",
            gate=Gate.SLO,
            epoch=settings.epoch_of(MODEL, "w8a8"),
            at=time.time() - 3 * 86_400.0,
            shown=Shown.PASSED,
            reason="it keeps it",
            run=1,
        ),
    )
    db.close()
    asked = LIKE_IT.replace("slo: off", "slo: required")
    (stored / "other.yaml").write_text(asked)
    assert not document("diff", "other.yaml", MODEL, "w8a8")["tiers"][0]["decision_differs"]
    (stored / "other.yaml").write_text(f"{asked}  promotion: {{measured_within: 1d}}\n")
    (tier,) = document("diff", "other.yaml", MODEL, "w8a8", code=1)["tiers"]
    decision = tier["side_by_side"][0]
    assert decision["after"] == "undecided"
    assert any(reason.startswith("missing_slo: the last load run ended") for reason in decision["why"])


def test_diff_says_what_it_cannot_show(stored: Path) -> None:
    (stored / "other.yaml").write_text(
        "units: closed_conversations\ncriteria: {long_context_recall: , structured_output: }\n"
    )
    notes = document("diff", "other.yaml", code=1)["notes"]
    assert any("counted by units first_sampled" in note for note in notes)
    assert "nothing is stored of long_context_recall in these epochs" in notes


def test_diff_without_a_database_is_no_answer_and_makes_none(place: Path) -> None:
    missing = ran("diff", "tiergate.yaml", code=policy.NO_EVIDENCE)
    assert "there is no database" in missing.stderr
    assert [path.name for path in place.iterdir()] == ["tiergate.yaml"]
