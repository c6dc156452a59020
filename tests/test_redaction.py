"""What is masked, that its form stays, and that no text takes longer than its length."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.redaction import MASKS, mask_personal, redacted, touches, unmasked

KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA1c7+9z5Pad7OejecsQ0bu3aozN3tihPmUZ0x\nabcd==\n"
    "-----END RSA PRIVATE KEY-----"
)
CARDS = [
    "4111 1111 1111 1111",
    "4111111111111111",
    "5500-0055-5555-5559",
    "378282246310005",
    "6222021234567894",
]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("mail ann.b+x@mail.example.co.uk, please", "mail masked@example.com, please"),
        ("邮箱zhang_san@qq.com谢谢", "邮箱masked@example.com谢谢"),
        ("call 13800138000 now", "call 13800000000 now"),
        ("电话：138 0013 8000。", "电话：138 0000 0000。"),
        ("+86 138-0013-8000", "+86 100-0000-0000"),
        ("8613912345678", "8610000000000"),
        ("+1 (415) 555-0100", "+1 (410) 000-0000"),
        ("+44 20 7946 0958", "+44 20 0000 0000"),
        ("415-555-0123 or (212) 555-0198", "415-000-0000 or (212) 000-0000"),
        ("010-12345678", "010-00000000"),
        ("(0755) 1234 5678；021 6543210", "(0750) 0000 0000；021 0000000"),
        ("(+86)13800138000", "(+86)10000000000"),
        ("+44 (0)20 7946 0958", "+44 (0)00 0000 0000"),
        ("https://ann:hunter2@db.example.com/x", "https://ann:masked@example.com/x"),
        ("card 4111 1111 1111 1111 exp 12/27", "card 4000 0000 0000 0000 exp 12/27"),
        ("order 2023 4111 1111 1111 1111", "order 2023 4000 0000 0000 0000"),
        ("key sk-proj-abcdefghij0123456789XYZ.", "key sk-proj-masked."),
        ("ghp_0123456789abcdefghij0123456789abcdef", "ghp_masked"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIAmasked"),
        ("Authorization: Bearer abc123def456", "Authorization: Bearer masked"),
        ("password=hunter2hunter2", "password=masked"),
        ("api_key: 'a1b2c3d4e5f6'", "api_key: 'masked'"),
        ("pay 4111.1111.1111.1111, 4111–1111–1111–1111", "pay 4000.0000.0000.0000, 4000–0000–0000–0000"),
        ("4111  1111  1111  1111 | 4111_1111_1111_1111", "4000  0000  0000  0000 | 4000_0000_0000_0000"),
        (
            json.dumps("号码13800138000，一4111 1111 1111 1111"),
            json.dumps("号码13800000000，一4000 0000 0000 0000"),
        ),
        (json.dumps("了13800138000码010-62341234"), r'"\u4e8610000000000\u7801010-00000000"'),
        ("138.0013.8000", "138.0000.0000"),
        ("手机１３８００１３８０００，４１１１１１１１１１１１１１１１", "手机13800000000，4000000000000000"),
        ("ann＠example.com", "masked@example.com"),
        ("postgres://admin:S3cretPass@10.0.0.1:5432/db", "postgres://admin:masked@10.0.0.1:5432/db"),
        ("redis://:hunter@cache:6379/0", "redis://:masked@cache:6379/0"),
        ("https://maps.example/?q=1&key=0123456789abcdef&z=2", "https://maps.example/?q=1&key=masked&z=2"),
        ('{"password":"hunter2!x"}', '{"password":"masked"}'),
        ('{\\"Passwd\\" : \\"p@ss word\\"}', '{\\"Passwd\\" : \\"masked\\"}'),
        ("password: hunter2, then", "password: masked, then"),
        ("密码：Abc1234。", "密码：masked。"),
        ("هاتف ١٣٨٠٠١٣٨٠٠٠ و ۱۳۸۰۰۱۳۸۰۰۰", "هاتف 13800000000 و 13800000000"),
        ("फ़ोन १३८००१३८०००", "फ़ोन 13800000000"),
        ("?to=ann.b%40example.org&x=1", "?to=masked%40example.com&x=1"),
        ('{"to": "ann\\u0040example.org"}', '{"to": "masked\\u0040example.com"}'),
        (r"\"ann\\u0040example.org\"", r"\"masked\\u0040example.com\""),
        ("ann@münchen.de, bob@例子.中国谢谢", "masked@example.com, masked@example.com谢谢"),
        ("иван@пример.рф", "masked@example.com"),
        ("张三@qq.com", "masked@example.com"),
        (
            "AccountName=a;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1==;X=1",
            "AccountName=a;AccountKey=masked;X=1",
        ),
        ("SECRET_KEY=a1b2c3d4e5f6", "SECRET_KEY=masked"),
        ("Cookie: sid=31d4d96e; theme=dark\nHost: a", "Cookie: masked\nHost: a"),
        ('{"Set-Cookie": "sid=31d4; Path=/"}', '{"Set-Cookie": "masked"}'),
        ("gsk_abcdefghij0123456789 nvapi-abcdefghij0123456789", "gsk_masked nvapi-masked"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4", "eyJmasked"),
    ],
)
def test_what_is_somebodys_is_masked_and_the_rest_stays(text: str, masked: str) -> None:
    assert mask_personal(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "npm install react@18.2.0",
        "at 2023-11-16 18:15:46 it was 1700000000000 ms",
        "version 1.2.3, 20,000 units for 1,234.56",
        "isbn 978-3-16-148410-0",
        "order 4111111111111112",  # Luhn's sum is another
        "0.13800138000",
        "139.69171234 and 138.0013 of 4111.1111.1111",
        "４月１日 2024.1111.1111",
        "the password: at least 8 characters; password=",
        "http://localhost:8000/a@b and https://example.com/?key=short",
        "213800138000",
        "the bearer certificates are void, and token: authentication",
        "sk-slovak-translation-of npm_config_registry_url asia_pacific_southeast",
        "a cookie: small, flat = sweet",
        "2024年１月 ١٢٣٤",
        "量@价.关系 50%40 \\u0040",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "",
    ],
)
def test_what_is_nobodys_stays(text: str) -> None:
    assert mask_personal(text) == text


@pytest.mark.parametrize("card", CARDS)
def test_card_numbers_go_however_they_are_grouped(card: str) -> None:
    masked = mask_personal(f"pay with {card}, thanks")
    assert card not in masked
    assert re.sub("[0-9]", "0", masked) == re.sub("[0-9]", "0", f"pay with {card}, thanks")


def test_private_keys_go_whole_and_cut_off() -> None:
    closed = "-----BEGIN RSA PRIVATE KEY-----masked-----END RSA PRIVATE KEY-----"
    assert mask_personal(f"here:\n{KEY}\nbye") == f"here:\n{closed}\nbye"
    cut = KEY.partition("abcd==")[0]
    assert mask_personal(cut + "and so on") == closed + "\nand so on"
    assert mask_personal(json.dumps(KEY)) == json.dumps(closed)
    assert mask_personal(json.dumps(json.dumps(cut))) == json.dumps(json.dumps(closed + "\n"))


def test_json_within_text_stays_json() -> None:
    inner = {
        "note": "\nann@example.org\t13800138000\u4e2dbob@example.org",
        "phone": 13800138000,
        "card": 4111111111111111,
        "keys": {"api_key": "abcdef123456"},
        "path": 'C:\\new\\"x"',
    }
    for text in (json.dumps(inner), json.dumps(inner, ensure_ascii=False)):
        for depth in range(3):
            written = text
            for _ in range(depth):
                written = json.dumps(written)
            read: Any = json.loads(mask_personal(written))
            for _ in range(depth):
                read = json.loads(read)
            assert read == {
                "note": "\nmasked@example.com\t13800000000\u4e2dmasked@example.com",
                "phone": 13800000000,
                "card": 4000000000000000,
                "keys": {"api_key": "masked"},
                "path": 'C:\\new\\"x"',
            }


def test_structure_keys_and_schemas_stay() -> None:
    body = {
        "model": "ann@example.org",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "I am ann@example.org, 13800138000"}]},
            {
                "role": "assistant",
                "tool_calls": [{"function": {"name": "f", "arguments": '{"p": 13800138000}'}}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,4111111111111111"}}
                ],
            },
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "schema": {
                    "properties": {
                        "password": {"type": "string", "pattern": "^13800138000$"},
                        "ann@example.org": {"type": "integer", "maximum": 13800138000},
                    }
                }
            },
        },
        "seed": 13800138000,
        "api_key": "anything",
        "phone": 13800138000,
        "stream": True,
        "temperature": 0.5,
        "stop": None,
    }
    masked = redacted(body, mask_personal)
    assert masked["messages"][0]["content"][0]["text"] == "I am masked@example.com, 13800000000"
    assert masked["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"p": 13800000000}'
    assert masked["messages"][2] == body["messages"][2]
    assert masked["response_format"] == body["response_format"]
    assert (masked["model"], masked["seed"], masked["api_key"]) == (body["model"], 13800138000, "masked")
    assert (masked["phone"], masked["stream"], masked["temperature"]) == (13800000000, True, 0.5)
    assert redacted(body, unmasked) is body
    assert touches("ann@example.org", mask_personal)
    assert not touches(["Ann", 7], mask_personal)


def test_a_mask_that_gives_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="text for text"):
        redacted({"a": ["b"]}, lambda text: 7)  # type: ignore[arg-type,return-value]


def test_the_masks_that_come_with_it_have_names() -> None:
    assert set(MASKS) == {"personal", "off"}


digits = st.text("0123456789", min_size=4, max_size=4)
somebodys = st.one_of(
    st.builds(
        "1{}7{}{}".format, st.sampled_from("3456789"), digits, digits.filter(lambda text: text != "0000")
    ),
    st.builds("{}@{}.example".format, st.text("abc.-x9", min_size=1), st.text("abz", min_size=1)),
    st.sampled_from(CARDS),
    st.just(KEY),
    st.text("abcdef0123456789", min_size=20, max_size=40).map("sk-{}".format),
)
prose = st.text(st.characters(codec="utf-8", exclude_characters="0123456789@\\-=:."), max_size=20).map(
    lambda text: f" {text} "
)


@given(st.lists(st.tuples(prose, somebodys), min_size=1, max_size=4), prose)
def test_nothing_of_anybody_is_left_in_any_prose_and_masks_stay_as_they_are(
    parts: list[tuple[str, str]], end: str
) -> None:
    text = "".join(f"{before}{secret}" for before, secret in parts) + end
    masked = mask_personal(text)
    for _, secret in parts:
        assert secret not in masked
    assert mask_personal(masked) == masked


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | somebodys,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | somebodys, inner, max_size=4)
    ),
    max_leaves=12,
)


def shape(value: Any) -> Any:
    """Keys and kinds, without what they hold."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return type(value).__name__


@given(json_values)
def test_any_json_keeps_its_structure_keys_and_kinds(value: Any) -> None:
    masked = redacted(value, mask_personal)
    assert shape(masked) == shape(value)
    json.dumps(masked)


@given(json_values, st.booleans())
def test_any_json_written_into_a_text_is_still_json(value: Any, ascii_only: bool) -> None:
    written = json.dumps(value, ensure_ascii=ascii_only)
    json.loads(mask_personal(written))
    json.loads(json.loads(mask_personal(json.dumps(written))))


HOSTILE: list[Callable[[int], str]] = [
    lambda n: "a" * n,
    lambda n: "a." * n + "@",
    lambda n: "a@" * n,
    lambda n: "@a." * n,
    lambda n: "1" * n,
    lambda n: "1 " * n,
    lambda n: "4111-" * n,
    lambda n: "+1 " * n,
    lambda n: "-----BEGIN PRIVATE KEY-----" * n,
    lambda n: "-----BEGIN PRIVATE KEY-----a-----END PRIVATE KEY-----" * n,
    lambda n: "-----BEGIN " * n,
    lambda n: "password" * n,
    lambda n: "token: " * n,
    lambda n: "token\\" * n,
    lambda n: "eyJ" + "a" * n,
    lambda n: "eyJaaaaaaaaa." * n,
    lambda n: "bearer " * n,
    lambda n: "\\" * n,
    lambda n: "\\n" * n,
    lambda n: "sk-" * n,
    lambda n: "(" * n,
    lambda n: "://" * n,
    lambda n: "://a:" * n,
    lambda n: "&key=" * n,
    lambda n: 'password:"' * n,
    lambda n: "4111.1111." * n,
    lambda n: "１" * n,
    lambda n: "é@" + "é." * n,
    lambda n: "é@é." * n,
    lambda n: "a%40" * n,
    lambda n: "a%40a." * n,
    lambda n: "a\\u0040a." * n,
    lambda n: "cookie:" * n,
    lambda n: "cookie:a=" * n,
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_what_a_text_costs_grows_no_faster_than_it_does(number: int) -> None:
    # Not by a clock: a quadratic pattern would need minutes for these, and the test its whole time limit.
    text = HOSTILE[number](400_000)[:400_000]
    assert isinstance(mask_personal(text), str)
