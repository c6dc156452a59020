"""What is asked when nobody brings requests: a dozen questions of our own, half of them Chinese."""

from __future__ import annotations

import json

from evaluators.exchange import Endpoint, Request
from service.wire import NotARequest, parse_request

OWN = (
    "Explain to a child why the sky is blue, in four sentences.",
    "Write a polite e-mail that moves a dentist's appointment from Monday to Thursday.",
    "List the steps to change a bicycle tube.",
    "Translate into French: The library closes at seven, but the garden stays open until dark.",
    "Write a Python function that returns the median of a list of numbers. How does it treat an empty one?",
    "A shop sells pens at 3 for 2.40. What do 14 pens cost? Show the working.",
    "用四句话向孩子解释为什么会有四季。",
    "写一封礼貌的邮件，把周一的牙医预约改到周四。",
    "列出更换自行车内胎的步骤。",
    "把这句话译成英文：图书馆七点关门，花园开到天黑。",
    "写一个返回列表中位数的 Python 函数，并说明它如何处理空列表。",
    "商店里三支笔卖 2.4 元，十四支笔多少钱？写出过程。",
)


class UnusableTexts(ValueError):
    """A file of requests cannot be read; the message has its line."""


def own_requests() -> list[Request]:
    """The questions of our own as chat requests."""
    return [_request({"messages": [{"role": "user", "content": text}]}, "own") for text in OWN]


def read_requests(lines: str, name: str) -> list[Request]:
    """Requests of a file, one JSON body a line; `path` beside its keys names another endpoint than chat."""
    found = []
    # Not `splitlines`: JSON texts may hold U+2028 and other ends of lines as they are.
    for number, line in enumerate(lines.split("\n"), 1):
        if not line.strip():
            continue
        try:
            body = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UnusableTexts(f"{name}, line {number}: not JSON: {error}") from None
        if not isinstance(body, dict):
            raise UnusableTexts(f"{name}, line {number}: a request's body is an object")
        found.append(_request(body, f"{name}, line {number}"))
    if not found:
        raise UnusableTexts(f"{name}: no request in it")
    return found


def _request(body: dict[str, object], where: str) -> Request:
    path = str(body.get("path", Endpoint.CHAT_COMPLETIONS))
    asked = {"model": "any", **{key: value for key, value in body.items() if key != "path"}}
    try:
        return parse_request(path, json.dumps(asked).encode())
    except NotARequest as error:
        raise UnusableTexts(f"{where}: not a request to {path}: {error}") from None
