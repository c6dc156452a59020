"""`tiergate attest`: a key pair, a signed statement of a decision, and its check, which needs no server."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.configuration import ConfigOption, JsonOption, fail, load_or_exit, stored
from service.cli.writing import write
from service.moments import moment

if TYPE_CHECKING:
    from service.attestation.statement import Attested
    from service.store.decided.chain import Break, Head, Row

INVALID = 1
UNUSABLE = 2
DECIDED = ("approve", "revoke", "reject", "roll_back", "promote")
"""Actions that say whether a tier may serve; the last of them is what is attested."""

attest_app = typer.Typer(no_args_is_help=True, help="Signed statements of decisions, checked offline.")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (key, create, verify):
        attest_app.command(epilog="Docs: docs/decision-log.md")(command)
    app.add_typer(attest_app, name="attest")


def key(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="The private half; FILE.pub is the public one.")
    ],
) -> None:
    """Make an Ed25519 key pair; FILE can be read by its owner alone (mode 0600).

    Keep FILE where decisions are attested, and hand FILE.pub to whoever checks them.

    \b
      tiergate attest key /etc/tiergate/attest.key
    """
    from service.attestation.envelope import key_id
    from service.attestation.keys import KeyUnusable, make_key, read_public

    try:
        public = make_key(path)
        told = key_id(read_public(public))
    except KeyUnusable as error:
        raise fail(str(error), UNUSABLE) from None
    typer.echo(f"{path}: signs; keep it secret\n{public}: checks; hand it out\nkey id {told}")


def create(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The name clients send.")],
    tier: Annotated[str, typer.Argument(metavar="TIER", help="A tier of its ladder.")],
    key: Annotated[
        Path, typer.Option("--key", envvar="TIERGATE_ATTEST_KEY", help="The private half of the key pair.")
    ],
    row: Annotated[
        int | None, typer.Option("--row", min=1, help="A row of the log, instead of the latest decision.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Standard output when left out.")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Sign the latest decision on whether a tier may serve: an in-toto statement in DSSE.

    That is an approval, revocation, rejection, rollback or promotion. The whole decision log is checked
    first, and its head goes into the statement: nobody can change a row up to there without contradicting it.
    Reads the database of the configuration.

    Exit status: 0 signed, 1 the log does not hold or has no such decision, 2 key or database cannot be used.

    \b
      tiergate attest create qwen3-32b w8a8 --key attest.key -o w8a8.intoto.json
    """
    from service.attestation.envelope import seal
    from service.attestation.keys import KeyUnusable, read_private
    from service.attestation.statement import statement_of

    try:
        signs = read_private(key)
    except KeyUnusable as error:
        raise fail(str(error), UNUSABLE) from None
    chosen, head, broken = _decision(config, model, tier, row)
    if broken is not None:
        raise fail(f"the decision log does not hold, so nothing is attested: {broken}", INVALID)
    if chosen is None or head is None:
        what = f"no row {row}" if row is not None else "no decision"
        raise fail(f"the log has {what} about {tier!r} of {model!r}; see `tiergate log show`", INVALID)
    envelope = json.dumps(seal(statement_of(chosen, head, issued_at=time.time()), signs)) + "\n"
    if output is None:
        typer.echo(envelope, nl=False)
        return
    write(output, envelope, status=UNUSABLE)
    typer.echo(f"{output}: {chosen.action} of {model} {tier}, row {chosen.seq}; log head {head}", err=True)


def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An envelope that `create` wrote.")],
    key: Annotated[
        Path, typer.Option("--key", envvar="TIERGATE_ATTEST_PUBLIC_KEY", help="The public half, FILE.pub.")
    ],
    artifact: Annotated[
        str | None, typer.Option("--artifact", help="sha256 that is about to be rolled out.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="An exported log that it must be part of.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a statement without any server: signature, row, artifact, expiry, and the log it came from.

    With --artifact it must be an approval of that artifact, and not have expired. It cannot tell whether the
    approval was revoked since: `tiergate gate` asks that.

    Exit status: 0 valid, 1 not, 2 a file cannot be read.

    \b
      tiergate attest verify w8a8.intoto.json --key attest.key.pub --artifact "$(cat digest)"
      tiergate attest verify w8a8.intoto.json --key attest.key.pub --log decisions.jsonl
    """
    from service.attestation.envelope import EnvelopeUnreadable, NotSigned, unseal
    from service.attestation.keys import KeyUnusable, read_public
    from service.attestation.statement import StatementUnusable, read_statement

    try:
        attested = read_statement(unseal(file.read_text(encoding="utf-8"), read_public(key)))
    except OSError as error:
        raise fail(f"{file} cannot be read: {error.strerror}", UNUSABLE) from None
    except KeyUnusable as error:
        raise fail(str(error), UNUSABLE) from None
    except (EnvelopeUnreadable, NotSigned, StatementUnusable, UnicodeDecodeError) as error:
        raise fail(f"{file} is not valid: {error}", INVALID) from None
    wrong = _objection(attested, artifact, time.time()) or (log and _not_in(log, attested))
    document = _document(attested)
    if as_json:
        typer.echo(json.dumps({"valid": not wrong, "problem": wrong or None, **document}, indent=2))
    elif not wrong:
        typer.echo("\n".join(f"{name}: {value}" for name, value in {"valid": "yes", **document}.items()))
    if wrong:
        raise fail(f"{file} is not valid for this: {wrong}", INVALID)


def _decision(
    config: Path | None, model: str, tier: str, wanted: int | None
) -> tuple[Row | None, Head | None, Break | None]:
    """The row, the head and where the log is broken, all of one moment."""
    settings = load_or_exit(config, make_key=False)
    from service.store.decided.chain import find_break
    from service.store.decided.decisions import whole

    chosen: list[Row] = []

    def passing(rows: Any) -> Any:
        for each in rows:
            yield each  # its detail is read below only once the row is known to fit
            chosen_by = each.seq == wanted if wanted is not None else each.action in DECIDED
            if chosen_by and each.model == model and _is_about(each, tier):
                chosen[:] = [each]

    with stored(settings, otherwise="so there is nothing to attest") as db, whole(db) as (rows, head):
        broken = find_break(passing(rows), head)
    return (chosen[0] if chosen else None), head, broken


def _is_about(row: Row, tier: str) -> bool:
    """A rollback is about the tier that clients went to, and about the one that they came from."""
    return row.tier == tier or (row.action == "roll_back" and json.loads(row.detail).get("from") == tier)


def _objection(attested: Attested, artifact: str | None, now: float) -> str | None:
    """What is against rolling out the artifact on the word of this statement."""
    from service.engines.artifact import bare

    if artifact is None:
        return None
    asked = bare(artifact)
    if attested.row.action != "approve":
        return f"it is a {attested.row.action!r}, no approval"
    if attested.artifact is None:
        return "not evaluated: the approval names no artifact"
    if asked != attested.artifact:
        return f"not evaluated: it approves artifact {attested.artifact}, not {asked}"
    if attested.expires_at is not None and attested.expires_at <= now:
        return f"the approval expired at {moment(attested.expires_at)}"
    return None


def _not_in(log: Path, attested: Attested) -> str | None:
    """Why an exported log is not the one that the statement came from."""
    from service.store.decided.chain import Head
    from service.store.decided.decision_export import NotALog, check_lines

    kept = (attested.head, Head(seq=attested.row.seq, digest=attested.row.digest))
    try:
        with log.open(encoding="ascii") as lines:
            _, broken = check_lines(lines, kept=kept)
    except OSError as error:
        raise fail(f"{log} cannot be read: {error.strerror}", UNUSABLE) from None
    except (NotALog, UnicodeDecodeError) as error:
        raise fail(f"{log}: {error}", UNUSABLE) from None
    return None if broken is None else f"{log} does not bear it out: {broken}"


def _document(attested: Attested) -> dict[str, Any]:
    row = attested.row
    detail = json.loads(row.detail)
    return {
        "action": row.action,
        "override": bool(detail.get("override", False)),
        "model": row.model,
        "tier": row.tier,
        "artifact": attested.artifact,
        "by": row.actor,
        "at": moment(row.at),
        "expires_at": None if attested.expires_at is None else moment(attested.expires_at),
        "evidence_age_seconds": attested.evidence_age,
        "row": row.seq,
        "log_head": str(attested.head),
        "issued_at": moment(attested.issued_at),
    }
