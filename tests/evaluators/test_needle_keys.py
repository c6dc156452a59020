"""What a value is called by the text on its left."""

from __future__ import annotations

import pytest

from evaluators.needle_keys import chinese_key, label_key, sentence_key


@pytest.mark.parametrize(
    ("before", "key"),
    [
        ("The magic number", "magic number"),
        ("It was old. The access code of the blue room", "access code of the blue room"),
        ("The stone was quiet and the access code of the blue room", "access code of the blue room"),
        ("Note: our support hotline", "support hotline"),
        ("Invoice number", "invoice number"),
        ("done.\nInvoice number", "invoice number"),
        ("She told Anna the door code", "door code"),
        ("For guests, the WiFi password", "WiFi password"),
        ("the API key of the ACME account", "API key of the ACME account"),
        ("She said it", ""),
        ("What I know", ""),
        ("and he", ""),
        ("The answer", ""),
        ("the number of people who came", ""),
        ("he found out that number", ""),
        ("(see below)", ""),
        ("the of", ""),
        ("the very long and winding road", ""),
        ("the one two three four five", ""),
        ("the the thing the", ""),
        ("", ""),
        ("...", ""),
        ("x" * 200, ""),
    ],
)
def test_a_noun_phrase_before_the_verb_is_the_key(before: str, key: str) -> None:
    assert sentence_key(before) == key


@pytest.mark.parametrize(
    ("before", "key"),
    [
        ("Invoice number", "invoice number"),
        ("- **Contact email**", "contact email"),
        ('{"order_id"', "order_id"),
        ("paid. Order No.", "order No"),
        ("Total (EUR)", ""),
        ("Total amount (EUR)", "total amount"),
        ("The booking code", "booking code"),
        ("name, Phone number", "phone number"),
        ("| Room rate ", "room rate"),
        ("> Ref", "ref"),
        ("if you", ""),
        ("one two three four five six", ""),
        ("http", ""),
        ("12", ""),
        ("", ""),
        ("Total", ""),
    ],
)
def test_a_label_before_a_mark_is_the_key(before: str, key: str) -> None:
    assert label_key(before) == key


@pytest.mark.parametrize(
    ("before", "key"),
    [
        ("订单号", "订单号"),
        ("您好。蓝色房间的门禁密码", "蓝色房间的门禁密码"),
        ("其中合同编号", "合同编号"),
        ("他说密码", ""),
        ("这", ""),
        ("如果金额", ""),
        ("号", ""),
        ("abc", ""),
    ],
)
def test_a_run_of_chinese_before_its_mark_is_the_key(before: str, key: str) -> None:
    assert chinese_key(before) == key
