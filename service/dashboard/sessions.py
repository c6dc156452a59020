"""A browser's session: a signed cookie that names a token by its id, or who an issuer said that somebody is.

The cookie holds no secret. A token's owner is looked up at each visit, so that whoever loses the token loses
the session; it is signed (HS256) with a key that all API processes share and that lies in SQL.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import jwt
from jwt.types import Options
from starlette.requests import cookie_parser

from service.approval.access import Caller, Head, Scope, widest
from service.approval.errors import Problem
from service.store.access.sessions import end_session, has_ended, session_key
from service.store.access.tokens import named_by
from service.store.sql.database import Database

LONGEST_SECONDS = 12 * 3600.0
IDLE_SECONDS = 2 * 3600.0
RENEWED_SECONDS = 300.0
"""A session that was seen longer ago gets a new cookie; a page that asks for itself is no visit."""
NAME = "tiergate_session"
SECURE_NAME = f"__Host-{NAME}"
"""Over https: no other host, and no page without TLS, can set it."""
MOST_KEPT = 3900
"""Characters of a cookie that browsers keep: RFC 6265 asks for 4096 bytes with its name and terms."""
MOST_COOKIE = 8192
"""Characters of a Cookie header that is read."""
ALGORITHM = "HS256"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """Who an issuer said that somebody is, and until when."""

    name: str
    scope: Scope
    models: frozenset[str] | None
    until: float
    basis: str = ""
    """Of what its issuer is taken for; the session ends where that is changed by the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a cookie says: either a token's id or what an issuer claimed."""

    id: str
    began: float
    seen: float
    token_id: str | None = None
    claimed: Claimed | None = None

    @property
    def ends(self) -> float:
        """Unix seconds at which it ends however busy it is."""
        longest = self.began + LONGEST_SECONDS
        return longest if self.claimed is None else min(longest, self.claimed.until)

    def alive(self, now: float) -> bool:
        return now < self.ends and now - self.seen < IDLE_SECONDS


class Sessions:
    """Made once an app; its callers may be threads."""

    def __init__(
        self,
        db: Database,
        now: Callable[[], float],
        *,
        secret: bytes = b"",
        bases: Collection[str] = (),
        secure: bool = False,
    ) -> None:
        """`secret` is what every API process knows and the database does not; `bases` are of the issuers.

        `secure` says that browsers come by https: then a cookie without that name's prefix is none of ours,
        for whoever can answer in our name without TLS, or on a subdomain, may have set it.
        """
        self._db = db
        self._now = now
        self._secret = secret
        self._bases = frozenset(bases)
        self.secure = secure
        self.name = SECURE_NAME if secure else NAME
        """Of the cookie."""
        self._key: bytes | None = None

    def begin(self, *, token_id: str | None = None, claimed: Claimed | None = None) -> Session:
        """A new one of a token, or of somebody whom an issuer vouches for; 403 for what no browser keeps."""
        if (token_id is None) == (claimed is None):
            raise ValueError("a session is of a token or of somebody an issuer vouches for")
        now = self._now()
        made = Session(id=secrets.token_urlsafe(18), began=now, seen=now, token_id=token_id, claimed=claimed)
        if len(self.cookie(made)) > MOST_KEPT:
            raise Problem(
                403,
                "login_refused",
                "the session has more models, or a longer name, than the cookie of a browser has room for",
                hint="name fewer models in the rule of api.oidc, or none, which is all of them",
            )
        return made

    def end(self, session: Session) -> None:
        """Its cookie is worth nothing from now on."""
        end_session(self._db, session.id, until=session.ends, now=self._now())

    def caller(self, head: Head) -> Caller | None:
        """Whose session a request shows, None when none is in force. Asks the database."""
        session = self.shown(";".join(head.all("cookie")))
        if session is None or has_ended(self._db, session.id):
            return None
        if session.claimed is not None:
            claimed = session.claimed
            if claimed.basis and claimed.basis not in self._bases:
                return None
            return Caller(name=claimed.name, scope=claimed.scope, models=claimed.models, by_session=True)
        token = named_by(self._db, session.token_id or "", self._now())
        if token is None:
            return None
        return Caller(name=token.name, scope=widest(token.scopes), models=token.models, by_session=True)

    def shown(self, cookies: str) -> Session | None:
        """The session of a Cookie header, as far as signature and clock tell; asks nobody."""
        if self.name not in cookies or len(cookies) > MOST_COOKIE:
            return None
        shown = cookie_parser(cookies).get(self.name)
        return None if shown is None else self._read(shown)

    def renewed(self, session: Session) -> Session | None:
        """The session as seen now, None where its cookie is young enough."""
        now = self._now()
        return replace(session, seen=now) if now - session.seen > RENEWED_SECONDS else None

    def cookie(self, session: Session) -> str:
        """What the cookie holds."""
        claims: dict[str, object] = {"sid": session.id, "iat": session.began, "seen": session.seen}
        if session.token_id is not None:
            claims["tid"] = session.token_id
        if (claimed := session.claimed) is not None:
            models = None if claimed.models is None else sorted(claimed.models)
            claims |= {"sub": claimed.name, "scope": claimed.scope.value, "models": models}
            claims |= {"until": claimed.until, "basis": claimed.basis}
        return jwt.encode(claims, self._sealed("cookie"), algorithm=ALGORITHM)

    def csrf(self, session: Session) -> str:
        """What every form of the session sends back: a page elsewhere cannot know it."""
        return hmac.new(self._sealed("form"), session.id.encode(), sha256).hexdigest()

    def signed(self, told: dict[str, object], purpose: str) -> str:
        """Something that a browser keeps for us for a while, such as what a log-in elsewhere needs again."""
        return jwt.encode(told, self._sealed(purpose), algorithm=ALGORITHM)

    def opened(self, text: str, purpose: str) -> dict[str, Any] | None:
        """What was signed for that purpose; None for anything else."""
        try:
            return jwt.decode(text, self._sealed(purpose), algorithms=[ALGORITHM], options=_UNTIMED)
        except jwt.PyJWTError:
            return None

    def _read(self, text: str) -> Session | None:
        claims = self.opened(text, "cookie")
        if claims is None:
            return None
        claimed = None
        if "sub" in claims:
            models = claims["models"]
            claimed = Claimed(
                name=claims["sub"],
                scope=Scope(claims["scope"]),
                models=None if models is None else frozenset(models),
                until=claims["until"],
                basis=claims.get("basis", ""),
            )
        session = Session(
            id=claims["sid"],
            began=claims["iat"],
            seen=claims["seen"],
            token_id=claims.get("tid"),
            claimed=claimed,
        )
        return session if session.alive(self._now()) else None

    def _sealed(self, purpose: str) -> bytes:
        """A key of its own for each purpose."""
        if self._key is None:
            self._key = session_key(self._db, now=self._now())
        return hmac.new(self._key + self._secret, purpose.encode(), sha256).digest()


_UNTIMED: Options = {
    "verify_exp": False,
    "verify_iat": False,
    "verify_nbf": False,
    "verify_sub": False,
}
"""PyJWT would ask its own clock."""
