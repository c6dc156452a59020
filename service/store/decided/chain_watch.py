"""Whether the decision log holds, told at every look without reading all of it every time.

Rows behind the last one that was found to hold are read at once. Those before it are read again, a part at
every look, so that a row that is altered later is found as well: `since` says how long ago at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from sqlalchemy import Connection, select

from service.store.decided.chain import GENESIS, Break, Head, Row, break_at_end, follow
from service.store.decided.decisions import head_within
from service.store.sql.database import Database
from service.store.sql.schema import decisions

ROWS_A_LOOK = 1000
"""Of the new ones and of the old ones, each: some tens of milliseconds, with verdicts in them."""
START = Head(seq=0, digest=GENESIS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainState:
    """What is known of the chain."""

    head: Head
    """The last row, as the log says of itself; keep it elsewhere."""
    checked: Head
    """The last row that was found to hold, with all before it."""
    broken: Break | None
    since: float | None
    """Unix seconds: every checked row was read at that moment or later; None before that is so."""

    @property
    def whole(self) -> bool:
        """Whether every row was found to hold."""
        return self.broken is None and self.checked == self.head


class ChainWatch:
    """Of one process; its callers are threads, which wait for each other."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._turn = Lock()
        self._broken: Break | None = None
        self._begin(None)

    def look(self, now: float) -> ChainState:
        """Read on, and tell."""
        with self._turn, self._db.read() as connection:
            head = head_within(connection)
            if self._began is None or self._stopped:
                self._begin(now)
            self._advance(connection, head)
            if self._caught_up and not self._stopped:
                self._broken = None  # what was found before is not there any more
                self._read_again(connection, now)
            return ChainState(head=head or START, checked=self._tip, broken=self._broken, since=self._since)

    def _begin(self, now: float | None) -> None:
        """From the first row; what was found before stays told until all rows are found to hold."""
        self._tip = self._again = START
        self._began = now
        self._since: float | None = None
        self._caught_up = self._stopped = False

    def _stop(self, found: Break) -> None:
        self._broken, self._stopped = found, True

    def _advance(self, connection: Connection, head: Head | None) -> None:
        rows = _rows(connection, self._tip.seq, None)
        self._tip, found = follow(rows, self._tip)
        self._caught_up = len(rows) < ROWS_A_LOOK
        if found is None and self._caught_up:
            found = break_at_end(self._tip, head)
        if found is not None:
            self._stop(found)

    def _read_again(self, connection: Connection, now: float) -> None:
        if self._since is None:
            self._since, self._began = self._began, now
            return
        if self._again == START:
            self._began = now
        rows = _rows(connection, self._again.seq, self._tip.seq)
        self._again, found = follow(rows, self._again)
        if found is None and len(rows) < ROWS_A_LOOK:
            found = break_at_end(self._again, self._tip if self._tip.seq else None)
            self._again, self._since = START, self._began
        if found is not None:
            self._stop(found)


def _rows(connection: Connection, after: int, through: int | None) -> list[Row]:
    wanted = select(decisions).where(decisions.c.seq > after).order_by(decisions.c.seq).limit(ROWS_A_LOOK)
    if through is not None:
        wanted = wanted.where(decisions.c.seq <= through)
    return [Row(**row._mapping) for row in connection.execute(wanted)]
