"""The public keys of a JSON Web Key Set (RFC 7517) that may verify a token, each for one algorithm alone.

The algorithm follows from the kind of the key, never from a token: a public key that is taken for the secret
of an HMAC would let anybody sign, so there is no symmetric algorithm at all, and no `none`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import InvalidKeyError
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ALGORITHMS = ("RS256", "ES256", "EdDSA")
"""Those of RFC 7518 and RFC 8037 that issuers use; no others are taken."""
MOST_KEYS = 64
"""Of one set; issuers have two to ten."""
MOST_ID = 256
"""Characters of a key's id."""
RSA_BITS = range(2048, 8193)

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey
KeyName = tuple[str, str]
"""Id and algorithm."""

_KINDS = {("RSA", None): "RS256", ("EC", "P-256"): "ES256", ("OKP", "Ed25519"): "EdDSA"}
"""Algorithm by kind and curve."""


class NoKeySet(ValueError):
    """What is no key set at all, and why."""


def public_keys(document: object) -> dict[KeyName, PublicKey]:
    """The keys that we can use, by name; others are passed over, as the RFC wants. NoKeySet for no set."""
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise NoKeySet("there is no list of `keys` in it")
    found: dict[KeyName, PublicKey] = {}
    for jwk in listed[:MOST_KEYS]:
        name = _name_of(jwk) if isinstance(jwk, dict) else None
        key = None if name is None else _read(jwk)
        if name is not None and key is not None:
            found.setdefault(name, key)
    return found


def _name_of(jwk: Mapping[str, Any]) -> KeyName | None:
    """Id and algorithm; None for a key that has no id, or that is for something else."""
    kid, kind, uses = jwk.get("kid"), jwk.get("kty"), jwk.get("key_ops", ["verify"])
    curve = None if kind == "RSA" else jwk.get("crv")
    algorithm = _KINDS.get((str(kind), curve if curve is None else str(curve)))
    if not isinstance(kid, str) or not 0 < len(kid) <= MOST_ID or algorithm is None:
        return None
    if jwk.get("alg", algorithm) != algorithm or jwk.get("use", "sig") != "sig":
        return None
    return (kid, algorithm) if isinstance(uses, list) and "verify" in uses else None


def _read(jwk: Mapping[str, Any]) -> PublicKey | None:
    """The public members alone, whatever else there is; None when they are no key, or a weak one."""
    public = {each: jwk[each] for each in ("kty", "crv", "n", "e", "x", "y") if each in jwk}
    key: object
    try:
        if jwk["kty"] == "RSA":
            key = RSAAlgorithm.from_jwk(public)
        elif jwk["kty"] == "EC":
            key = ECAlgorithm.from_jwk(public)
        else:
            key = OKPAlgorithm.from_jwk(public)
    except (InvalidKeyError, ValueError, TypeError, AttributeError):
        return None
    if isinstance(key, RSAPublicKey):
        return key if key.key_size in RSA_BITS else None
    return key if isinstance(key, EllipticCurvePublicKey | Ed25519PublicKey) else None
