"""`tiergate attest`: from a decision in the log to a file that is checked without any server."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest
import typer
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from sqlalchemy import update
from typer.testing import CliRunner, Result

from service.cli import attest, log
from service.store.decided.decisions import append, head_of
from service.store.sql.database import Database, open_database
from service.store.sql.schema import decisions

ARTIFACT = "ab" * 32


def decide(db: Database, action: str = "approve", tier: str = "w8a8", **detail: Any) -> None:
    told = {"artifact": ARTIFACT, "expires_at": None, "override": False, "reason": None, **detail}
    append(db, at=1000.0, actor="ci", action=action, model="m", tier=tier, detail=told)


@pytest.fixture
def ran(config: Path, tmp_path: Path) -> Any:
    app = typer.Typer()
    attest.register(app)
    log.register(app)
    environ = {"COLUMNS": "200", "TERM": "dumb", "TIERGATE_CONFIG": str(config)}

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments), env=environ)

    made = run("attest", "key", str(tmp_path / "k"))
    assert made.exit_code == 0, made.output
    return run


@pytest.fixture
def create(ran: Any, tmp_path: Path) -> Any:
    def run(*arguments: str) -> Path:
        path = tmp_path / "w8a8.json"
        made = ran("attest", "create", "m", "w8a8", "--key", str(tmp_path / "k"), "-o", str(path), *arguments)
        assert made.exit_code == 0, made.output
        return path

    return run


def check(ran: Any, path: Path, *arguments: str) -> Result:
    return ran("attest", "verify", str(path), "--key", str(path.parent / "k.pub"), *arguments)


def test_an_approval_is_attested_and_checked_by_us_and_by_cryptography_alone(
    db: Database, ran: Any, create: Any
) -> None:
    decide(db, verdict={"decision": "accept", "age_seconds": 7200.0})
    decide(db, tier="w4a16")
    path = create()
    told = json.loads(check(ran, path, "--artifact", f"sha256:{ARTIFACT}", "--json").stdout)
    assert (told["valid"], told["action"], told["artifact"], told["row"]) == (True, "approve", ARTIFACT, 1)
    assert (told["evidence_age_seconds"], told["log_head"]) == (7200.0, str(head_of(db)))
    envelope = json.loads(path.read_text())
    payload, kind = base64.b64decode(envelope["payload"]), envelope["payloadType"]
    load_pem_public_key((path.parent / "k.pub").read_bytes()).verify(  # type: ignore[call-arg,union-attr]
        base64.b64decode(envelope["signatures"][0]["sig"]),  # type: ignore[arg-type]
        b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload),
    )
    assert json.loads(payload)["subject"][0] == {"name": "m/w8a8", "digest": {"sha256": ARTIFACT}}


def test_another_artifact_an_expired_approval_and_a_revocation_are_not_valid_for_a_rollout(
    db: Database, ran: Any, create: Any
) -> None:
    decide(db, expires_at=time.time() - 1)
    path = create()
    assert check(ran, path).exit_code == 0, "that it was approved stays true"
    other = check(ran, path, "--artifact", "cd" * 32)
    assert (other.exit_code, "not evaluated" in other.stderr) == (1, True)
    expired = check(ran, path, "--artifact", ARTIFACT)
    assert (expired.exit_code, "expired at" in expired.stderr) == (1, True)
    decide(db, action="revoke")
    revoked = check(ran, create(), "--artifact", ARTIFACT)
    assert (revoked.exit_code, "no approval" in revoked.stderr) == (1, True)
    assert json.loads(check(ran, create("--row", "1"), "--json").stdout)["action"] == "approve"


@pytest.mark.parametrize(
    ("action", "tier", "detail"),
    [
        ("reject", "w8a8", {"reason": "rude"}),
        ("roll_back", "bf16", {"from": "w8a8", "approval": "withdrawn"}),
    ],
)
def test_a_tier_that_was_taken_out_of_service_is_not_attested_by_its_approval(
    db: Database, ran: Any, create: Any, action: str, tier: str, detail: dict[str, str]
) -> None:
    decide(db)
    append(db, at=1001.0, actor="guard", action=action, model="m", tier=tier, detail=detail)
    append(db, at=1002.0, actor="guard", action="roll_back", model="m", tier="bf16", detail={"from": "w4a16"})
    path = create()
    assert json.loads(check(ran, path, "--json").stdout)["action"] == action
    assert "no approval" in check(ran, path, "--artifact", ARTIFACT).stderr


def test_the_log_that_it_came_from_bears_it_out_and_one_written_anew_does_not(
    db: Database, ran: Any, create: Any, tmp_path: Path
) -> None:
    decide(db)
    decide(db, tier="w4a16")
    path, exported = create(), tmp_path / "log.jsonl"
    append(db, at=2000.0, actor="guard", action="promote", model="m", tier="w8a8")
    assert ran("log", "export", "-o", str(exported)).exit_code == 0
    assert check(ran, path, "--log", str(exported)).exit_code == 0
    other = open_database(f"sqlite:///{tmp_path / 'other.db'}")
    try:
        for _ in range(3):
            decide(other)
        from service.store.decided.decision_export import lines_of
        from service.store.decided.decisions import whole

        with whole(other) as (rows, head):
            assert head is not None
            exported.write_text("\n".join(lines_of(rows, head)))
    finally:
        other.close()
    found = check(ran, path, "--log", str(exported))
    assert (found.exit_code, "row 1" in found.stderr, "written anew" in found.stderr) == (1, True, True)


@pytest.mark.parametrize(
    "altered", [{"actor": "mallory"}, {"action": "roll_back", "tier": "bf16", "detail": "no JSON"}]
)
@pytest.mark.parametrize("row", [(), ("--row", "1")])
def test_nothing_is_attested_of_a_log_that_does_not_hold(
    altered: dict[str, str], row: tuple[str, ...], db: Database, ran: Any, tmp_path: Path
) -> None:
    decide(db)
    decide(db)
    with db.write() as connection:
        connection.execute(update(decisions).where(decisions.c.seq == 2).values(**altered))
    made = ran("attest", "create", "m", "w8a8", "--key", str(tmp_path / "k"), *row)
    assert (made.exit_code, "does not hold" in made.stderr, made.stdout) == (1, True, "")


def test_an_altered_file_and_another_key_are_not_valid(
    db: Database, ran: Any, create: Any, tmp_path: Path
) -> None:
    decide(db)
    path = create()
    assert ran("attest", "key", str(tmp_path / "other")).exit_code == 0
    assert ran("attest", "verify", str(path), "--key", str(tmp_path / "other.pub")).exit_code == 1
    envelope = json.loads(path.read_text())
    payload = base64.b64decode(envelope["payload"]).replace(b"w8a8", b"w4a8")
    path.write_text(json.dumps(envelope | {"payload": base64.b64encode(payload).decode()}))
    found = check(ran, path)
    assert (found.exit_code, "altered" in found.stderr) == (1, True)


def test_what_cannot_be_asked_says_what_to_do(db: Database, ran: Any, tmp_path: Path) -> None:
    key = str(tmp_path / "k")
    nothing = ran("attest", "create", "m", "w8a8", "--key", key)
    assert (nothing.exit_code, "tiergate log show" in nothing.stderr) == (1, True)
    assert ran("attest", "create", "m", "w8a8", "--key", f"{key}.pub").exit_code == 2
    assert ran("attest", "verify", str(tmp_path / "none"), "--key", f"{key}.pub").exit_code == 2
    assert ran("attest", "key", key).exit_code == 2
