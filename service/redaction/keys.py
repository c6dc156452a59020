"""Keys, tokens and passwords within a text, by how they begin or what they follow. PURE."""

from __future__ import annotations

import re

SECRET = "masked"
# JSON within text has escapes: `\nann@example.com` must not lose the n of its `\n`, `\u4e2d138...` no digit.
FRESH = r"(?:(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})|(?<![\\%s]))"


def without_keys(text: str) -> str:
    """The text with each of them masked."""
    if "-----BEGIN" in text:
        text = _without_private_keys(text)
    if "://" in text:
        text = _CREDENTIALS.sub(_hidden, text)
    lowered = text.lower()
    if any(word in lowered for word in _PASSWORDS):
        text = _QUOTED_PASSWORD.sub(_hidden, text)
    if "cookie" in lowered:
        text = _COOKIES.sub(_hidden, text)
    for hints, pattern in _SECRETS:
        if any(hint in lowered for hint in hints):  # to look for a word is much faster than for a pattern
            text = pattern.sub(_mixed, text)
    return text


def _mixed(found: re.Match[str]) -> str:
    """Prose follows such words as well: what holds no digit and is short is taken for a word."""
    value = found["value"]
    if not any(letter.isdigit() for letter in value) and len(value) < _SHORTEST_WITHOUT_DIGITS:
        return found[0]
    return f"{found['kept']}{SECRET}"


def _hidden(found: re.Match[str]) -> str:
    """What stands where only a secret can."""
    return f"{found['kept']}{SECRET}"


_CREDENTIALS = re.compile(r"""(?P<kept>://[^\s/:@"'\\]{0,64}:)(?P<value>[^\s/@"'\\]{1,256}+)(?=@)""")
"""Those in front of a URL's host."""
_PASSWORDS = ("password", "passwd", "passphrase", "pwd", "密码", "口令")
_QUOTED_PASSWORD = re.compile(
    r"""(?i)(?P<kept>(?:password|passwd|passphrase|pwd|密码|口令)(?:\\{0,8}["'])?[ \t]{0,8}[:=：][ \t]{0,8}"""
    r"""(?P<quote>\\{0,8}["']))(?P<value>[^"'\\\n]{1,256}+)(?=(?P=quote))"""
)
_COOKIES = re.compile(
    r"""(?i)(?P<kept>cookie(?:\\{0,8}["'])?[ \t]{0,8}[:=][ \t]{0,8}(?:\\{0,8}["'])?)"""
    r"""(?P<value>[^\s=;,"'\\]{1,256}+=[^"'\\\r\n]{1,8192}+)"""
)
"""All those of a line."""
_SHORTEST_WITHOUT_DIGITS = 24
_TOKEN = r"(?P<value>[A-Za-z0-9._~+/-]{8,}+=*+)"
_QUOTES = r"""(?:\\*+["'])?+"""


def _after(prefix: str, value: str) -> re.Pattern[str]:
    return re.compile(FRESH % "A-Za-z0-9" + f"(?P<kept>{prefix})(?P<value>{value})")


_SECRETS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (("sk-",), _after(r"sk-(?:ant-|proj-|or-|svcacct-)?", r"[A-Za-z0-9_-]{16,}+")),
    (
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "npm_", "hf_", "tg_", "dop_v1_", "gsk_"),
        _after(r"(?:gh[pousr]|npm|hf|tg|dop_v1|gsk)_", r"[A-Za-z0-9_-]{16,}+"),
    ),
    (
        ("glpat-", "pypi-", "nvapi-", "xox"),
        _after(r"(?:glpat|pypi|nvapi|xox[abeprs])-", r"[A-Za-z0-9_-]{16,}+"),
    ),
    (("github_pat_",), _after(r"github_pat_", r"[A-Za-z0-9_]{20,}+")),
    (("akia", "asia", "ltai", "akid"), _after(r"(?:AKIA|ASIA|LTAI|AKID)", r"[A-Za-z0-9]{12,}+")),
    (("aiza",), _after(r"AIza", r"[A-Za-z0-9_-]{30,}+")),
    (("_live_", "_test_"), _after(r"(?:sk|pk|rk)_(?:live|test)_", r"[A-Za-z0-9]{10,}+")),
    (("eyj",), _after(r"eyJ", r"[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+")),
    (
        ("bearer", "basic"),
        re.compile("(?i)" + FRESH % "A-Za-z0-9" + rf"(?P<kept>(?:bearer|basic)[ \t]{{1,8}}){_TOKEN}"),
    ),
    (
        ("key=", "sig=", "signature=", "auth="),
        re.compile(r"(?i)(?P<kept>[?&](?:key|sig|signature|auth)=)(?P<value>[A-Za-z0-9._~+/%-]{12,}+=*+)"),
    ),
    (
        _PASSWORDS,
        re.compile(
            r"(?i)(?P<kept>(?:password|passwd|passphrase|pwd|密码|口令)"
            rf"{_QUOTES}[ \t]{{0,8}}[:=：][ \t]{{0,8}})"
            r"""(?P<value>[^\s"'\\,;&<>，。；、]{6,128}+)"""
        ),
    ),
    (
        ("key", "secret", "token", "passw", "authorization", "密码", "密钥"),
        re.compile(
            r"(?i)(?P<kept>(?:(?:api|access|account|secret|private|signing|subscription)[_-]?key"
            r"|secret|token|passw(?:or)?d|authorization|密码|密钥)"
            rf"{_QUOTES}[ \t]{{0,8}}[:=：][ \t]{{0,8}}{_QUOTES}){_TOKEN}"
        ),
    ),
)
"""What a key begins with or follows, in lower case, and the pattern of both."""

_BEGIN = re.compile(r"-----BEGIN (?P<kind>[A-Z0-9 ]{0,40})PRIVATE KEY(?P<block> BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BODY = re.compile(r"(?:[A-Za-z0-9+/=\s:,.()-]|\\++[nrt/])*+")
"""What stands between the two lines, escapes of line ends among it."""
_LINES = re.compile(r"(?:(?:\s|\\++[nrt])*+(?:[A-Za-z0-9+/=]|\\++/){16,}+)*+")
"""The same without an end: whole lines of base64 alone, since prose may follow."""


def _without_private_keys(text: str) -> str:
    parts: list[str] = []
    done = searched = 0
    may_end = False
    while (begin := _BEGIN.search(text, done)) is not None:
        if begin.end() >= searched:  # a run of such letters is read once, however many keys begin in it
            searched, may_end = _body_end(text, begin.end()), True
        end = _END.search(text, begin.end(), searched) if may_end else None
        if end is None:
            may_end = False
            lines = _LINES.match(text, begin.end())
            after = begin.end() if lines is None else lines.end()
        else:
            after = end.end()
        closing = f"-----END {begin['kind']}PRIVATE KEY{begin['block'] or ''}-----"
        parts += [text[done : begin.end()], SECRET, closing]
        done = after
    return "".join([*parts, text[done:]])


def _body_end(text: str, start: int) -> int:
    found = _BODY.match(text, start)
    return start if found is None else found.end()
