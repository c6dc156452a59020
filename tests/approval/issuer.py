"""An OpenID Connect issuer for tests: on a socket of its own, with real keys, answering what a test wants."""

from __future__ import annotations

import json
import threading
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import time
from typing import Any
from urllib.parse import parse_qsl, quote_plus, urlencode

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt import PyJWS
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from service.store.access.issuer_terms import ClaimRule, IssuerTerms, LoginTerms
from tests.patience import PATIENCE

AUDIENCE = "tiergate"
SUBJECT = "repo:my-org/serving:environment:production"
DISCOVERY, KEYS = "/.well-known/openid-configuration", "/keys"
AUTHORIZE, TOKEN = "/authorize", "/token"
CLIENT, CLIENT_SECRET = "tiergate dashboard", "s3cret+/="
SigningKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@cache
def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


def jwk_of(key: SigningKey, kid: str, **members: object) -> dict[str, Any]:
    """The public half, as an issuer shows it."""
    if isinstance(key, rsa.RSAPrivateKey):
        shown = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        shown = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        shown = OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**{name: shown[name] for name in shown if name != "key_ops"}, "kid": kid, **members}


def algorithm_of(key: SigningKey) -> str:
    if isinstance(key, rsa.RSAPrivateKey):
        return "RS256"
    return "ES256" if isinstance(key, ec.EllipticCurvePrivateKey) else "EdDSA"


def part(content: object) -> str:
    """Header or claims, as they stand in a token; text is taken as it is."""
    text = content if isinstance(content, str) else json.dumps(content)
    return urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def signed(head: object, claims: object, key: SigningKey) -> str:
    said = f"{part(head)}.{part(claims)}"
    signature = PyJWS().get_algorithm_by_name(algorithm_of(key)).sign(said.encode(), key)
    return f"{said}.{urlsafe_b64encode(signature).rstrip(b'=').decode()}"


class Issuer:
    """Signs tokens, and shows the public halves of `keys`; `answers` go before, and 0 bytes of one hang."""

    def __init__(self) -> None:
        self.keys: dict[str, SigningKey] = {"first": ec.generate_private_key(ec.SECP256R1())}
        self.answers: dict[str, tuple[int, bytes]] = {}
        """Status and body by path; a redirect leads to the body."""
        self.said: dict[str, Any] = {}
        """Claims of the next ID token, beside or instead of the right ones."""
        self.granting: dict[str, dict[str, str]] = {}
        """By code: what was asked for."""
        self.asked: list[str] = []
        self.now: Callable[[], float] = time
        """When ID tokens are made."""
        self.down = False
        """Whether connections are closed without an answer."""
        self.silent = False
        """Whether nothing is answered until `stop`."""
        self._released = threading.Event()
        issuer = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                if issuer.silent:
                    issuer._released.wait(PATIENCE)
                if issuer.down or issuer.silent:
                    return
                self.answer(issuer.answers.get(self.path) or issuer.document(self.path))

            def do_POST(self) -> None:
                issuer.asked.append(self.path)
                form = self.rfile.read(int(self.headers["content-length"])).decode()
                shown = self.headers.get("authorization", "")
                self.answer(issuer.answers.get(self.path) or issuer.exchanged(form, shown))

            def answer(self, answered: tuple[int, bytes]) -> None:
                status, body = answered
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("location", body.decode())
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                with suppress(OSError):  # who asked had enough
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def document(self, path: str) -> tuple[int, bytes]:
        if path == DISCOVERY:
            places = {"jwks_uri": KEYS, "authorization_endpoint": AUTHORIZE, "token_endpoint": TOKEN}
            found = {name: self.url + path for name, path in places.items()}
            return 200, json.dumps({"issuer": self.url, **found}).encode()
        if path == KEYS:
            shown = [jwk_of(key, kid, use="sig") for kid, key in self.keys.items()]
            return 200, json.dumps({"keys": shown}).encode()
        if path.startswith(f"{AUTHORIZE}?"):
            return 302, self.authorized(dict(parse_qsl(path.partition("?")[2]))).encode()
        return 404, b""

    def authorized(self, asked: dict[str, str]) -> str:
        """Where a browser is sent once somebody has logged in, with a code that is good once."""
        code = f"code {len(self.granting)}"
        self.granting[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def exchanged(self, form: str, shown: str) -> tuple[int, bytes]:
        """The ID token for a code, a verifier and the client's secret; an error of RFC 6749 otherwise."""
        told = dict(parse_qsl(form))
        asked = self.granting.pop(told.get("code", ""), None)
        pair = f"{quote_plus(CLIENT)}:{quote_plus(CLIENT_SECRET)}".encode()
        if shown != f"Basic {b64encode(pair).decode()}":
            return 401, json.dumps({"error": "invalid_client"}).encode()
        digest = sha256(told.get("code_verifier", "").encode()).digest()
        challenge = urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (
            asked is None
            or asked["code_challenge"] != challenge
            or asked["redirect_uri"] != told["redirect_uri"]
        ):
            return 400, json.dumps({"error": "invalid_grant", "error_description": "no such code"}).encode()
        claims = {"aud": CLIENT, "nonce": asked["nonce"], **self.said}
        return 200, json.dumps({"id_token": self.token(self.now(), **claims)}).encode()

    def terms(self, *rules: ClaimRule, **changes: Any) -> IssuerTerms:
        """Without rules, its subject approves everything."""
        return IssuerTerms(
            **{
                "issuer": self.url,
                "audience": AUDIENCE,
                "rules": rules or (ClaimRule(claim="sub", equals=SUBJECT, scope="approve"),),
                "fetch_seconds": PATIENCE,
                **changes,
            }
        )

    def login_terms(self, *rules: ClaimRule, **changes: Any) -> IssuerTerms:
        """People log in there as well; `changes` are of how."""
        login = {"client_id": CLIENT, "client_secret": CLIENT_SECRET, "label": "Staff", **changes}
        return self.terms(*rules, login=LoginTerms(**login))

    def claims(self, now: float, **changes: Any) -> dict[str, Any]:
        """Those of a right token; a change to None leaves a claim out."""
        right = {
            "iss": self.url,
            "sub": SUBJECT,
            "aud": AUDIENCE,
            "iat": int(now),
            "nbf": int(now),
            "exp": int(now) + 300,
            **changes,
        }
        return {name: value for name, value in right.items() if value is not None}

    def token(
        self, now: float, kid: str = "first", head: Mapping[str, object] | None = None, **changes: Any
    ) -> str:
        key = self.keys[kid]
        return signed(
            {"alg": algorithm_of(key), "typ": "JWT", "kid": kid, **(head or {})},
            self.claims(now, **changes),
            key,
        )

    def stop(self) -> None:
        """Also releases requests that hang."""
        self._released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
