"""Tokens: shown once, stored hashed, found by nobody else."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from service.store.access.tokens import NameTaken, Token, create, list_tokens, lookup, revoke, rotate
from service.store.decided.decisions import read, verify
from service.store.sql.schema import tokens


def make(database, name="ci", scopes=("read", "approve"), **options):
    return create(database, name=name, scopes=scopes, now=100.0, **options)


def test_a_secret_finds_its_token_and_is_stored_nowhere(database):
    secret = make(database)
    expected = Token(name="ci", scopes=frozenset({"read", "approve"}), created_at=100.0, expires_at=None)
    assert lookup(database, secret, now=101.0) == expected
    with database.read() as connection:
        row = connection.execute(select(tokens)).one()
    assert secret not in str(row)
    assert secret.rpartition("_")[2] not in str(row)


@pytest.mark.parametrize(
    "tamper",
    [
        lambda secret: "",
        lambda secret: secret[:-1],
        lambda secret: secret + "x",
        lambda secret: secret[:-1] + ("a" if secret[-1] != "a" else "b"),
        lambda secret: secret.replace("tg_", "tk_"),
        lambda secret: secret.rpartition("_")[0],
        lambda secret: "tg__x",
        lambda secret: "tg_\0_x",
        lambda secret: "tg_' OR 1=1 --_x",
        lambda secret: "tg_\ud83d_x",
    ],
)
def test_nothing_else_finds_it(database, tamper):
    assert lookup(database, tamper(make(database)), now=101.0) is None


def test_the_secret_of_one_token_does_not_open_another(database):
    one, two = make(database, "one"), make(database, "two")
    mixed = f"{one.rsplit('_', 1)[0]}_{two.split('_', 2)[2]}"
    assert lookup(database, mixed, now=101.0) is None


def test_an_expired_or_revoked_token_is_none(database):
    brief, lasting = make(database, "brief", expires_at=200.0), make(database, "lasting")
    assert lookup(database, brief, now=199.9).name == "brief"
    assert lookup(database, brief, now=200.0) is None
    assert revoke(database, "lasting", now=150.0)
    assert not revoke(database, "lasting", now=151.0)
    assert not revoke(database, "nobody", now=151.0)
    assert lookup(database, lasting, now=151.0) is None


def test_a_name_is_used_once_even_after_revocation(database):
    make(database)
    revoke(database, "ci", now=150.0)
    with pytest.raises(NameTaken, match="take another name"):
        make(database)


def test_tokens_in_force_are_listed_by_name(database):
    make(database, "b", scopes=["read"])
    make(database, "a", scopes=["admin"], expires_at=200.0)
    make(database, "c")
    revoke(database, "c", now=101.0)
    assert [token.name for token in list_tokens(database, 150.0)] == ["a", "b"]
    assert [token.name for token in list_tokens(database, 200.0)] == ["b"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"name": ""}, "1 to 100"),
        ({"name": "x" * 101}, "1 to 100"),
        ({"name": "a\nb"}, "printable"),
        ({"scopes": []}, "at least one"),
        ({"scopes": ["read", "root"]}, r"unknown scopes \['root'\]"),
        ({"expires_at": 100.0}, "expires later than now"),
    ],
)
def test_bad_input_says_what_is_wrong(database, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        make(database, **options)


def test_a_secret_has_enough_randomness(database):
    one, two = make(database, "one"), make(database, "two")
    assert one != two
    assert len(one.split("_", 2)[2]) >= 43  # 256 bits in base64


def test_a_token_is_made_and_revoked_in_the_log_without_its_secret(database):
    secret = make(database, "ci", scopes=["read", "approve"], expires_at=500.0)
    revoke(database, "ci", now=150.0, actor="shell:ada", reason="left")
    assert not revoke(database, "ci", now=151.0), "and that is no row"
    made, revoked = read(database)
    assert (made.action, made.actor, made.model, made.detail["token"]) == ("token_made", "shell", "", "ci")
    assert (made.detail["scopes"], made.detail["expires_at"]) == (["approve", "read"], 500.0)
    assert (revoked.action, revoked.actor, revoked.at) == ("token_revoked", "shell:ada", 150.0)
    assert revoked.detail == {"token": "ci", "reason": "left"}
    assert secret.split("_", 2)[2] not in str(read(database))
    with pytest.raises(NameTaken):
        make(database, "ci")
    assert len(read(database)) == 2, "what was refused is no decision"
    assert verify(database) is None


def test_a_token_may_be_for_some_models_alone(database):
    secret = make(database, models=["org/a", "b"])
    make(database, name="all")
    assert lookup(database, secret, now=101.0).models == frozenset({"org/a", "b"})
    assert {token.name: token.models for token in list_tokens(database, 101.0)} == {
        "all": None,
        "ci": frozenset({"org/a", "b"}),
    }
    assert read(database, "")[0].detail["models"] == ["b", "org/a"]
    with pytest.raises(ValueError, match="printable"):
        make(database, name="x", models=[""])


def test_a_rotated_token_stays_what_it_was_under_another_secret(database):
    old = make(database, models=["a"], expires_at=500.0)
    before = lookup(database, old, now=101.0)
    new = rotate(database, "ci", now=110.0)
    assert lookup(database, new, now=111.0) == before
    assert lookup(database, old, now=110.0) is None
    assert lookup(database, new, now=500.0) is None
    assert [entry.action for entry in read(database, "")] == ["token_made", "token_rotated"]
    assert verify(database) is None


def test_the_secret_of_before_is_good_until_its_grace_ends(database):
    old = make(database)
    new = rotate(database, "ci", now=110.0, grace_seconds=60.0, expires_at=1000.0)
    assert lookup(database, new, now=169.0) is not None
    assert lookup(database, old, now=169.0) == lookup(database, new, now=169.0)
    assert lookup(database, old, now=170.0) is None
    assert lookup(database, old[:-1] + ("a" if old[-1] != "a" else "b"), now=120.0) is None
    assert lookup(database, new, now=170.0).expires_at == 1000.0


def test_rotating_twice_and_revoking_end_every_former_secret(database):
    first = make(database)
    second = rotate(database, "ci", now=110.0, grace_seconds=600.0)
    third = rotate(database, "ci", now=120.0, grace_seconds=600.0)
    assert lookup(database, first, now=121.0) is None
    assert lookup(database, second, now=121.0) is not None
    revoke(database, "ci", now=130.0)
    assert [lookup(database, secret, now=131.0) for secret in (first, second, third)] == [None] * 3


def test_only_a_token_in_force_is_rotated_and_only_within_bounds(database):
    make(database, expires_at=200.0)
    with pytest.raises(KeyError):
        rotate(database, "nobody", now=110.0)
    with pytest.raises(KeyError):
        rotate(database, "ci", now=200.0)
    for wrong in ({"grace_seconds": -1.0}, {"grace_seconds": float("nan")}, {"expires_at": 110.0}):
        with pytest.raises(ValueError, match=r"s more|expire"):
            rotate(database, "ci", now=110.0, **wrong)
