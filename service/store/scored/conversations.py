"""Which conversation a request belongs to: statistics A2 counts conversations, not requests.

Two requests are of one conversation when they share an explicit id, or when the complete message list of one
is a prefix of the other's. A shared beginning is not enough: few-shot prompts share it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select, update

from service.store.sql.database import Database
from service.store.sql.schema import key_of, prefixes


def conversation_of(
    db: Database, *, model: str, tenant: str, explicit: str | None, chain: Sequence[str]
) -> str:
    """The conversation of a request, the same whoever asks and in whatever order.

    `chain` holds the chained hashes of its messages (`wire.message_chain`), the last for the complete
    list; it is not looked at when the request names its conversation. ValueError when there is neither.
    """
    if explicit:
        return "x" + key_of("explicit", model, tenant, explicit)
    if not chain:
        raise ValueError("a request without an explicit conversation needs its message chain")
    keys = [key_of("prefix", model, tenant, link) for link in chain]
    complete = keys[-1]
    with db.write() as connection:
        # Requests of one conversation have their first message in common: it serialises them and no others.
        db.lock(connection, f"conversation {keys[0]}")
        known = {
            row.prefix: row for row in connection.execute(select(prefixes).where(prefixes.c.prefix.in_(keys)))
        }
        earlier = [key for key in keys if key in known and known[key].complete]
        if earlier:  # somebody sent a beginning of this list: the shortest is the oldest turn
            conversation = str(known[earlier[0]].conversation)
        elif complete in known:  # this list is a beginning of one that somebody sent
            conversation = str(known[complete].conversation)
        else:
            conversation = "c" + complete
        new = [
            {"prefix": key, "conversation": conversation, "complete": key == complete}
            for key in dict.fromkeys(keys)
            if key not in known
        ]
        if new:
            connection.execute(db.insert(prefixes).on_conflict_do_nothing(), new)
        if complete in known and not known[complete].complete:
            connection.execute(
                update(prefixes)
                .where(prefixes.c.prefix == complete)
                .values(complete=True, conversation=conversation)
            )
    return conversation
