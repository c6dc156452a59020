"""`/log`: who decided what, when, why and from where; whether the log holds; a signed statement of a row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.approval.errors import Problem, echo
from service.approval.narrowing import check_model
from service.attestation.envelope import key_id, seal
from service.attestation.statement import statement_of
from service.dashboard.render import attached
from service.dashboard.site import Site
from service.dashboard.visit import Visit
from service.store.decided.chain import Row, find_break
from service.store.decided.chain_watch import ChainWatch
from service.store.decided.decision_reading import whence_of
from service.store.decided.decision_search import Wanted, choices, row_at, search
from service.store.decided.decisions import entry_of, head_of, whole

PATH, ROW, STATEMENT, KEY = "/log", "/log/row", "/log/statement", "/log/key"
A_PAGE = 50
LAST_SEQUENCE = 2**31 - 1
DAY_SECONDS = 86_400.0
TONES = {
    "approve": "good",
    "promote": "good",
    "reject": "bad",
    "revoke": "bad",
    "roll_back": "bad",
    "rolled_back": "bad",
    "slo_lost": "bad",
    "frozen": "wait",
    "skip": "wait",
}
"""By kind of decision."""


def log_routes(site: Site) -> Sequence[BaseRoute]:
    """The log, a row of it, and what can be taken away."""
    db, watch = site.desk.db, ChainWatch(site.desk.db)

    def log(visit: Visit) -> Response:
        wanted, below = _wanted(visit), visit.number("below", 0, most=LAST_SEQUENCE)
        entries = search(db, wanted, below=below or None, limit=A_PAGE + 1)
        return site.page(
            visit,
            "log.html",
            entries=entries[:A_PAGE],
            older=entries[A_PAGE - 1].seq if len(entries) > A_PAGE else None,
            newest=not below,
            narrows=wanted.narrows,
            choices=choices(db, visit.caller.models),
            chain=watch.look(visit.now),
            whence=whence_of,
            tones=TONES,
        )

    def row(visit: Visit) -> Response:
        found = _row(site, visit)
        entry = entry_of(found)
        key = site.desk.config.attest_key
        return site.page(
            visit,
            "log_row.html",
            entry=entry,
            fits=found.digest == found.true_digest,
            head=head_of(db),
            lines=json.dumps(entry.detail, indent=2, sort_keys=True, ensure_ascii=False).split("\n"),
            whence=whence_of,
            tones=TONES,
            key_id=None if key is None else key_id(key.public_key()),
        )

    def statement(visit: Visit) -> Response:
        return _statement(site, visit, _row(site, visit))

    def key(visit: Visit) -> Response:
        signs = site.desk.config.attest_key
        if signs is None:
            raise _no_key()
        public = signs.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return attached(public, "application/x-pem-file", "tiergate-attest.key.pub")

    return [site.get(PATH, log), site.get(ROW, row), site.get(STATEMENT, statement), site.get(KEY, key)]


def _wanted(visit: Visit) -> Wanted:
    until = _day(visit, "until")
    return Wanted(
        models=visit.caller.models,
        model=visit.asked("model") or None,
        tier=visit.asked("tier") or None,
        action=visit.asked("action") or None,
        actor=visit.asked("actor") or None,
        since=_day(visit, "since"),
        until=None if until is None else until + DAY_SECONDS,
    )


def _day(visit: Visit, name: str) -> float | None:
    """Unix seconds at which a day begins, by UTC; 422 for what is no day."""
    text = visit.asked(name)
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise Problem(
            422, "invalid_request", f"{name}: {echo(text)} is no day", hint="write it as 2026-01-31"
        ) from None


def _row(site: Site, visit: Visit) -> Row:
    """The row that was asked for; 403 for one of a model that the caller may not know of."""
    visit.needed("seq")
    seq = visit.number("seq", 0, most=LAST_SEQUENCE)
    found = row_at(site.desk.db, seq)
    if found is None:
        raise Problem(404, "not_found", f"the log has no row {seq}", hint="/log lists those that there are")
    check_model(found.model)
    return found


def _statement(site: Site, visit: Visit, row: Row) -> Response:
    """An in-toto statement in a DSSE envelope, as `tiergate attest create` makes it, of a log that holds."""
    signs = site.desk.config.attest_key
    if signs is None:
        raise _no_key()
    if row.tier is None:
        raise Problem(404, "not_found", f"row {row.seq} is about no tier, so there is nothing to state")
    with whole(site.desk.db) as (rows, head):
        broken = find_break(rows, head)
    if broken is not None or head is None:
        raise Problem(
            409,
            "log_broken",
            f"the decision log does not hold, so nothing is signed: {broken}",
            hint="`tiergate log verify` says where; docs/decision-log.md says what to do",
        )
    envelope = seal(statement_of(row, head, issued_at=visit.now), signs)
    name = f"{row.model}-{row.tier}-{row.seq}.intoto.json"
    return attached(json.dumps(envelope) + "\n", "application/json", name)


def _no_key() -> Problem:
    return Problem(
        404,
        "no_attest_key",
        "no key signs statements here",
        hint="`tiergate attest key FILE` makes one; name it as api.attest_key_file, or sign in a shell with "
        "`tiergate attest create`",
    )
