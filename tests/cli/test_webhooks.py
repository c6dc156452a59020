"""`tiergate webhooks`: what was told and what not, telling it again, a test message."""

from __future__ import annotations

import json
import time
from pathlib import Path

import typer
from typer.testing import CliRunner, Result

from service.cli import webhooks
from service.store.decided.decisions import append
from service.store.outgoing.callbacks import CallbackState, due, end
from service.store.outgoing.webhook_terms import Form, WebhookTerms
from service.store.outgoing.webhooks import owe_log, tool_of
from service.store.sql.database import open_database
from tests.approval.dialects.outgoing.chat_servers import Plain, receiving

NOW = 1_700_000_000.0
MODELS = """
models:
  m:
    ladder:
      - {tier: bf16, backends: ["http://127.0.0.1:9"]}
      - {tier: w8a8, backends: ["http://127.0.0.1:9"]}
"""


def written(directory: Path, url: str | None) -> Path:
    path = directory / "tiergate.yaml"
    (directory / "hook").write_text("s1\n")
    hooks = "" if url is None else f"webhooks: [{{name: ops, url: '{url}/hook', secret_file: hook}}]\n"
    path.write_text(MODELS + hooks)
    return path


def with_one_given_up(directory: Path) -> str:
    """The id of the message that was."""
    (directory / ".tiergate").mkdir()
    db = open_database(f"sqlite:///{directory / '.tiergate' / 'tiergate.db'}")
    receivers = (WebhookTerms(name="ops", form=Form.PLAIN, url="https://ops.example"),)
    owe_log(db, receivers)
    append(db, at=NOW, actor="ci", action="approve", model="m", tier="w8a8")
    owe_log(db, receivers)
    [message] = due(db, NOW, limit=9, tools=(tool_of("ops"),))
    end(db, message, state=CallbackState.GIVEN_UP, at=NOW, problem="answered 410")
    db.close()
    return str(message.place["event_id"])


def ran(config: Path, *arguments: str) -> Result:
    app = typer.Typer()
    webhooks.register(app)
    environ = {"COLUMNS": "200", "TERM": "dumb", "TIERGATE_CONFIG": str(config)}
    return CliRunner().invoke(app, ["webhooks", *arguments], env=environ)


def test_what_was_given_up_is_shown_with_its_problem_and_owed_again(tmp_path: Path) -> None:
    config, event = written(tmp_path, "http://127.0.0.1:9"), with_one_given_up(tmp_path)
    shown = ran(config, "list", "--dead")
    assert shown.exit_code == 0, shown.output
    for told in ("ops", event, "decision: approve", "m w8a8", "given_up", "answered 410"):
        assert told in shown.stdout
    [document] = json.loads(ran(config, "list", "--json").stdout)["messages"]
    assert (document["webhook"], document["id"], document["state"]) == ("ops", event, "given_up")
    assert ran(config, "retry", "ops", "--event", "another").stdout == "nothing was given up\n"
    assert ran(config, "retry", "ops", "--event", event).stdout == "1 owed again\n"
    assert ran(config, "list", "--dead").stdout == "nothing was given up\n"


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    nothing = ran(written(tmp_path, "http://127.0.0.1:9"), "list")
    assert nothing.exit_code == 2
    assert "nothing was told" in nothing.output
    unknown = ran(written(tmp_path, "http://127.0.0.1:9"), "test", "opps")
    assert unknown.exit_code == 2
    assert "there are: ops" in unknown.output
    none = ran(written(tmp_path, None), "retry", "ops")
    assert none.exit_code == 2
    assert "no webhook is configured" in none.output


def test_a_test_message_is_signed_as_any_other_and_a_refusal_is_told(tmp_path: Path) -> None:
    inbox = Plain(secrets=("s1",), now=time.time())
    with receiving(inbox) as url:
        taken = ran(written(tmp_path, url), "test", "ops")
        inbox.secrets = ("another",)
        refused = ran(written(tmp_path, url), "test", "ops")
    assert (taken.exit_code, taken.stdout) == (0, "ops took it\n")
    assert [each["action"] for each in inbox.taken] == ["test"]
    assert refused.exit_code == 1
    assert "answered 401" in refused.output
