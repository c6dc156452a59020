"""The API's questions as commands, against the real API."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from service.cli import asking, interventions, questions
from service.cli.whereabouts import whereabouts
from tests.approval.conftest import captures, shared_api, sqlite_api, sqlite_database
from tests.approval.live import ENOUGH, MODEL, LiveApi

__all__ = ["captures", "shared_api", "sqlite_api", "sqlite_database"]

pytestmark = pytest.mark.usefixtures("elsewhere")

runner = CliRunner()


def ran(*arguments: str, **environ: str) -> Result:
    app = typer.Typer()
    questions.register(app)
    interventions.register(app)
    return runner.invoke(app, list(arguments), env={"COLUMNS": "140", "TERM": "dumb", **environ})


def against(api: LiveApi, *arguments: str, scope: str | None = None, **environ: str) -> Result:
    if scope is not None:
        environ["TIERGATE_TOKEN"] = api.secrets[scope]
    return ran(*arguments, TIERGATE_URL=api.url, **environ)


def test_a_verdict_is_a_table_and_its_decision_the_exit_code(sqlite_api: LiveApi) -> None:
    undecided = against(sqlite_api, "verdict", MODEL, "w8a8")
    assert undecided.exit_code == 2
    assert "undecided" in undecided.stdout
    sqlite_api.accept("w8a8")
    accepted = against(sqlite_api, "verdict", MODEL, "w8a8")
    assert accepted.exit_code == 0
    for word in ("structured_output", f" {ENOUGH} ", "20 pp", "slo not asked", "at least 300 pairs"):
        assert word in accepted.stdout
    sqlite_api.record("w4a16", harm=ENOUGH)
    rejected = against(sqlite_api, "verdict", MODEL, "w4a16")
    assert rejected.exit_code == 1


def test_why_prints_the_chain_the_worst_pairs_and_how_to_check_it(sqlite_api: LiveApi) -> None:
    sqlite_api.record("w8a8", harm=2, clean=20, stratum="8k-32k/free/whole")
    asked = against(sqlite_api, "verdict", MODEL, "w8a8", "--why")
    assert asked.exit_code == 2
    text = " ".join(asked.stdout.split())
    for part in (
        "undecided, and why",
        "1. evidence",
        "structured_output: counts",
        "Of 22 counted pairs in 22 conversations the candidate alone failed in 2",
        "harm b = 2",
        "2 pairs speak against the tier. ok -> not_json: 2 where: 8k-32k/free/whole: 2",
        "expected JSON, found prose",
        "tiergate stats --n 22 --harm 2 --benefit 0 --margin 0.2 --alpha 0.03039635509",
        "tiergate recount",
    ):
        assert part in text, part
    document = json.loads(against(sqlite_api, "verdict", MODEL, "w8a8", "--why", "--json").stdout)
    answer = sqlite_api.client().get(f"/api/v1/models/{MODEL}/tiers/w8a8/verdict/why").json()
    assert {**document, "evaluated_at": ""} == {**answer, "evaluated_at": ""}
    few = against(sqlite_api, "verdict", MODEL, "w8a8", "--why", "--pairs", "1", "--json")
    assert [len(each["examples"]) for each in json.loads(few.stdout)["worst_pairs"]] == [1, 1]
    assert against(sqlite_api, "verdict", MODEL, "w8a8", "--why", "--pairs", "0").exit_code == 3


def test_json_is_the_api_s_own(sqlite_api: LiveApi) -> None:
    answer = sqlite_api.client().get(f"/api/v1/models/{MODEL}/tiers/w8a8/verdict").json()
    printed = json.loads(against(sqlite_api, "verdict", MODEL, "w8a8", "--json").stdout)
    assert {**printed, "evaluated_at": ""} == {**answer, "evaluated_at": ""}


def test_a_tier_is_approved_seen_on_the_ladder_rolled_back_and_revoked(sqlite_api: LiveApi) -> None:
    sqlite_api.accept("w8a8")
    approved = against(
        sqlite_api, "approve", MODEL, "w8a8", "--expires-in", "3600", "--reason", "weekly", scope="approve"
    )
    assert approved.exit_code == 0, approved.output
    assert "w8a8 serves (route version 1)" in approved.stdout
    ladder = against(sqlite_api, "ladder", MODEL)
    assert "approved" in ladder.stdout
    assert "100 %" in ladder.stdout
    rolled = against(sqlite_api, "rollback", MODEL, "--reason", "pager", scope="approve")
    assert "bf16 serves (route version 2)" in rolled.stdout
    revoked = json.loads(against(sqlite_api, "revoke", MODEL, "w8a8", "--json", scope="approve").stdout)
    assert revoked["changed"] is True
    log = against(sqlite_api, "decisions", MODEL)
    for word in ("approve", "promote", "roll_back", "revoke", "pager", "chain: intact"):
        assert word in log.stdout


def test_a_tier_is_kept_out_of_service_by_a_person(sqlite_api: LiveApi) -> None:
    sqlite_api.accept("w8a8")
    assert against(sqlite_api, "approve", MODEL, "w8a8", scope="approve").exit_code == 0
    assert against(sqlite_api, "reject", MODEL, "w8a8", scope="approve").exit_code == 2, "it needs a reason"
    why = ("--reason", "its answers are rude")
    refused = against(sqlite_api, "reject", MODEL, "w8a8", *why, scope="read")
    assert (refused.exit_code, "needs scope `approve`" in refused.stderr) == (3, True)
    sqlite_api.upstream.statuses["/health"] = 503
    down = against(sqlite_api, "reject", MODEL, "w8a8", *why, scope="approve")
    assert (down.exit_code, "bf16" in down.stderr) == (3, True)
    rejected = against(sqlite_api, "reject", MODEL, "w8a8", *why, "--force", scope="approve")
    assert rejected.exit_code == 0, rejected.output
    assert "bf16 serves (route version 2)" in rejected.stdout
    assert "rejected: its answers are rude" in " ".join(against(sqlite_api, "ladder", MODEL).stdout.split())
    again = json.loads(against(sqlite_api, "reject", MODEL, "w8a8", *why, "--json", scope="approve").stdout)
    assert again["changed"] is False
    held = against(sqlite_api, "approve", MODEL, "w8a8", scope="approve")
    assert (held.exit_code, "is held in this epoch: rejected" in held.stderr) == (3, True)


def test_a_refused_approval_prints_the_reasons_and_exits_3(shared_api: LiveApi) -> None:
    refused = against(shared_api, "approve", MODEL, "w4a16", scope="approve")
    assert refused.exit_code == asking.NO_ANSWER
    assert "undecided, not accept" in refused.stderr
    assert "min_pairs" in refused.stderr
    assert refused.stdout == ""


def test_an_override_needs_the_right_token(shared_api: LiveApi) -> None:
    asked = ("approve", MODEL, "w4a16", "--override", "--reason", "trial")
    refused = against(shared_api, *asked, scope="approve")
    assert refused.exit_code == asking.NO_ANSWER
    assert "needs scope `admin`" in refused.stderr


def test_all_ladders_are_shown_when_none_is_named(shared_api: LiveApi) -> None:
    assert MODEL in against(shared_api, "ladder").stdout
    assert len(json.loads(against(shared_api, "ladder", "--json").stdout)["ladders"]) == 1
    assert json.loads(against(shared_api, "ladder", MODEL, "--json").stdout)["model"] == MODEL


def test_evidence_and_ledger_are_readable(sqlite_api: LiveApi) -> None:
    sqlite_api.record("w8a8", harm=1, clean=2)
    evidence = against(sqlite_api, "evidence", MODEL, "w8a8")
    assert "expected JSON, found prose" in evidence.stdout
    assert "control: baseline against itself" in evidence.stdout
    assert "the engines tell nothing of themselves" in evidence.stdout
    assert "strata, the worst first" in evidence.stdout
    assert "without each tenant" not in evidence.stdout, "there is one tenant"
    sqlite_api.record("w8a8", clean=2, tenant="other")
    assert "without each tenant in turn" in against(sqlite_api, "evidence", MODEL, "w8a8").stdout
    everything = json.loads(against(sqlite_api, "evidence", MODEL, "w8a8", "--all", "--json").stdout)
    assert len(everything["pairs"]) == 10
    ledger = against(sqlite_api, "ledger", MODEL)
    assert "processed" in ledger.stdout
    assert json.loads(against(sqlite_api, "ledger", "--json").stdout)["model"] is None


def test_epochs_are_readable(shared_api: LiveApi) -> None:
    assert f"{MODEL} / w8a8: epoch epoch-w8a8" in against(shared_api, "epochs", MODEL, "w8a8").stdout
    document = json.loads(against(shared_api, "epochs", MODEL, "w8a8", "--json").stdout)
    assert document["epochs"] == []


def test_an_unknown_tier_names_the_nearest(shared_api: LiveApi) -> None:
    wrong = against(shared_api, "verdict", MODEL, "w8a9")
    assert wrong.exit_code == asking.NO_ANSWER
    assert "did you mean 'w8a8'?" in wrong.stderr


def test_an_api_that_is_not_there_is_one_clear_message(free_port: int) -> None:
    nobody = ran("ladder", TIERGATE_URL=f"http://127.0.0.1:{free_port}")
    assert nobody.exit_code == asking.NO_ANSWER
    assert f"cannot reach the API at http://127.0.0.1:{free_port}" in nobody.stderr
    assert "tiergate up" in nobody.stderr
    assert "Traceback" not in nobody.output


@pytest.mark.parametrize("url", ["nonsense", "http://[", "ftp://x"])
def test_a_url_that_is_none_is_a_usage_error(url: str) -> None:
    wrong = ran("ladder", "--url", url)
    assert wrong.exit_code == 2
    assert "not an API URL" in wrong.stderr


@pytest.mark.parametrize("arguments", [(MODEL,), (MODEL, "w8a8", "--nope"), (MODEL, "w8a8", "--url", "x")])
def test_a_mistyped_question_is_no_answer_and_never_undecided(arguments: tuple[str, ...]) -> None:
    assert ran("verdict", *arguments).exit_code == asking.NO_ANSWER


def test_the_token_comes_from_a_file_the_environment_or_what_up_left_here(
    shared_api: LiveApi, tmp_path: Path
) -> None:
    asked = ("rollback", MODEL)
    missing = against(shared_api, *asked)
    assert "needs a token" in missing.stderr
    file = tmp_path / "secret"
    file.write_text(shared_api.secrets["approve"] + "\n")
    for outcome in (
        against(shared_api, *asked, "--token-file", str(file)),
        against(shared_api, *asked, TIERGATE_TOKEN_FILE=str(file)),
        against(shared_api, *asked, "--token", shared_api.secrets["approve"]),
    ):
        assert "nothing to roll back to" in outcome.stderr
    state = tmp_path / "state"
    state.mkdir()
    (state / "token").write_text(shared_api.secrets["approve"])
    assert "nothing to roll back to" in against(shared_api, *asked, TIERGATE_STATE_DIR=str(state)).stderr
    wrong = against(shared_api, *asked, "--token-file", str(tmp_path / "none"))
    assert wrong.exit_code == 2
    told = " ".join(wrong.stderr.replace("│", " ").split())
    assert "the token file" in told
    assert "cannot be read: No such file or directory" in told
    assert "Errno" not in told


def test_the_token_of_this_machine_is_never_sent_elsewhere(tmp_path: Path) -> None:
    (tmp_path / ".tiergate").mkdir()
    (tmp_path / ".tiergate" / "token").write_text("tg_a_b")
    here, elsewhere = (
        whereabouts(None, url, {}) for url in ("http://127.0.0.1:8081", "http://tiergate.example:8081")
    )
    assert asking.token_of(here, None, None) == "tg_a_b"
    assert asking.token_of(elsewhere, None, None) is None


def configured(directory: Path, api: LiveApi) -> None:
    """As `tiergate up` would leave it there."""
    (directory / "state").mkdir(parents=True)
    (directory / "state" / "token").write_text(api.secrets["approve"])
    listen = api.url.removeprefix("http://")
    (directory / "tiergate.yaml").write_text(f"api: {{listen: '{listen}'}}\nstore: {{state_dir: state}}\n")


def test_the_api_and_its_token_are_found_by_the_configuration(
    shared_api: LiveApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    configured(place, shared_api)
    for outcome in (
        ran("rollback", MODEL, "-c", str(place / "tiergate.yaml")),
        ran("rollback", MODEL, TIERGATE_CONFIG=str(place / "tiergate.yaml")),
    ):
        assert "nothing to roll back to" in outcome.stderr
    monkeypatch.chdir(place)
    assert "nothing to roll back to" in ran("rollback", MODEL).stderr


def test_a_refusal_for_want_of_a_token_says_where_one_was_looked_for(
    shared_api: LiveApi, tmp_path: Path
) -> None:
    refused = against(shared_api, "rollback", MODEL)
    assert ".tiergate/token, and there is none" in refused.stderr
    assert "--token-file" in refused.stderr
    wrong = against(shared_api, "rollback", MODEL, "--token", "tg_wrong_token")
    assert "there is none" not in wrong.stderr


def test_a_file_without_an_address_that_can_be_used_is_a_usage_error_that_url_goes_before(
    shared_api: LiveApi, tmp_path: Path
) -> None:
    file = tmp_path / "tiergate.yaml"
    for text, told in (
        ("api: {listen: here}", "api.listen: expected HOST:PORT"),
        ("api: {listen: '127.0.0.1:0'}", "as `tiergate up` prints it"),
        ("models: [", "not YAML"),
        ("- list", "expected keys and values"),
    ):
        file.write_text(text)
        wrong = ran("ladder")
        assert wrong.exit_code == 2
        assert told in " ".join(wrong.stderr.replace("│", " ").split())
        assert ran("verdict", MODEL, "w8a8").exit_code == asking.NO_ANSWER
        assert against(shared_api, "ladder").exit_code == 0
    file.unlink()
    assert ran("ladder", "-c", str(file)).exit_code == 2


def test_bad_options_are_usage_errors(shared_api: LiveApi) -> None:
    for arguments in (("evidence", MODEL, "w8a8", "--pairs", "1000"), ("decisions", MODEL, "--limit", "0")):
        assert against(shared_api, *arguments).exit_code == 2
    bad = against(shared_api, "approve", MODEL, "w8a8", "--expires-in", "soon", scope="approve")
    assert bad.exit_code == asking.NO_ANSWER
    assert "expires_in" in bad.stderr


def test_a_tier_is_skipped_and_alpha_restored_with_a_reason(sqlite_api: LiveApi) -> None:
    sqlite_api.record("w8a8", harm=60)
    sqlite_api.record("w4a16", clean=3 * ENOUGH)
    assert against(sqlite_api, "skip", MODEL, "w8a8", scope="admin").exit_code == 2
    said = ("--reason", "its kernel is at fault")
    refused = against(sqlite_api, "skip", MODEL, "w8a8", *said, scope="approve")
    assert refused.exit_code == 3
    assert "scope `admin`" in refused.stderr
    skipped = against(sqlite_api, "skip", MODEL, "w8a8", *said, scope="admin")
    assert skipped.exit_code == 0, skipped.stderr
    assert "skipped, the tiers above do without it" in skipped.stdout
    accepted = against(sqlite_api, "verdict", MODEL, "w4a16")
    assert accepted.exit_code == 0
    assert "after_skipped: w8a8" in accepted.stdout
    assert "accepts from" in accepted.stdout
    undone = against(sqlite_api, "skip", MODEL, "w8a8", "--undo", scope="admin")
    assert "not skipped" in undone.stdout
    assert against(sqlite_api, "verdict", MODEL, "w4a16").exit_code == 2
    first = against(sqlite_api, "restore-alpha", MODEL, "w8a8", *said, scope="admin")
    assert first.exit_code == 0
    assert "nothing changed" in first.stdout
    assert "attempt 1" in first.stdout
    assert against(sqlite_api, "restore-alpha", MODEL, "w8a8", scope="admin").exit_code == 2
