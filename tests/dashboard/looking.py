"""Pairs of the house, their pages, and texts put in their place."""

from __future__ import annotations

import re
from html import unescape

import httpx
from sqlalchemy import update

from service.dashboard.visit import address
from service.store.labels.kept_text import PairText, seal_text
from service.store.scored.pair_listing import ListedPair, Wanted, list_pairs
from service.store.sql.adjudication_tables import adjudication_texts
from service.store.sql.database import Database
from tests.adjudicating import KEYRING
from tests.dashboard.house import CHAT, EVALUATORS, NOW, epoch_of

HOSTILE = (
    '<script>alert(1)</script><svg onload="alert(2)"><a href="javascript:alert(3)">'
    "\x1b[2J\x1b]0;owned\x07 \u202egnp.exe\u2066 zero\u200bwidth \x00 \ud83d {{ 7 * 7 }} <!-- </main>"
)


def pair_of(db: Database, **chosen: str) -> ListedPair:
    """The latest pair of `CHAT` w4a16 under these filters."""
    wanted = Wanted(model=CHAT, tier="w4a16", epoch=epoch_of(CHAT, "w4a16"), evaluators=EVALUATORS, **chosen)
    return list_pairs(db, wanted, page=1, size=1, now=NOW).pairs[0]


def put_text(db: Database, pair: ListedPair, text: PairText) -> None:
    """Another text in the place of a queued pair's."""
    with db.write() as connection:
        connection.execute(
            update(adjudication_texts)
            .where(adjudication_texts.c.item_id == pair.item_id)
            .values(sealed=seal_text(pair.item_id, text, KEYRING))
        )


def listing(client: httpx.Client, **query: object) -> str:
    answer = client.get(address("/pairs", **{"model": CHAT, "tier": "w4a16", **query}))
    assert answer.status_code == 200, answer.text
    return answer.text


def links(page: str) -> list[str]:
    return [unescape(each) for each in re.findall(r'<a href="(/pair\?[^"]+)"', page)]


def shown(client: httpx.Client, pair: ListedPair, **query: object) -> str:
    answer = client.get(address("/pair", id=pair.id, **query))
    assert answer.status_code == 200, answer.text
    return answer.text


def texts_of(page: str) -> list[str]:
    """What stands in the blocks of captured text, as a reader sees it."""
    blocks = re.findall(r'<div class="captured"[^>]*>(.*?)</div>', page, re.DOTALL)
    return [unescape(re.sub(r"<[^>]*>", "", each)) for each in blocks]
