"""Reasons in Chinese: every one that a room makes has its form, and a person's own words stay as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.approval.problem_codes import TITLES
from service.decision.policy import Gate
from service.report.reasons import in_words, names_of, read_reasons, reasons
from service.report.words import Language
from service.store.decided.holds import HoldKind
from tests.report.reasons_made import BLANK, REASONS, REFUSALS, made, refused

CHINESE = reasons(Language.ZH)
assert CHINESE is not None
NUMBERS = {
    "service/decision/finding.py": {"confidence sequence (betting mixture)"},
    "service/decision/money.py": {
        "baseline request",
        "candidate request",
        "rise of failures",
        "net benefit per request",
        "net benefit per 1M tokens",
        "output tokens of a request, baseline",
        "{}, lower",
        "{}, upper",
    },
    "service/decision/wording.py": {"{} pp", "{} s", "({}, {}, {}) x {}"},
    "service/store/traffic/account.py": {"pairs {} {} {} {}", "unscored {}"},
    "service/store/decided/decision_reading.py": {"{} for {}"},
    "service/capacity/batch.py": {"at least "},
    "service/capacity/diagnosis_rules.py": {"{} requests wait on average{}", " beside {} that run"},
    "service/report/sections/capacity.py": {"max-num-seqs: {}"},
    "service/store/verdicts/serving.py": {"{} as {}/{}"},
    "service/load/reckoning.py": {"{} ({} to {})"},
    "evaluators/answer_health.py": {
        *(
            "tool choice",
            "finish reason",
            " after {} characters of thinking",
            "and more",
            "to the token limit",
        ),
        *("256 characters of white space in a row {}", "nothing was written{}, finish_reason {}"),
        "{}, to the token limit",
    },
    "evaluators/field_agreement.py": {"of another type", "of another value", "only in one answer"},
    "evaluators/passive_recall.py": {"{}; not {}"},
    "evaluators/structured_output.py": {"a call", "a call of {}", "expected {}, found text"},
    "evaluators/json_keywords.py": {"does not hold JSON: {}", "is not base64"},
    "evaluators/guides.py": {
        "the choice offers nothing that can be read",
        "what a {} allows is not judged",
    },
    "service/approval/access.py": {
        'Bearer realm="tiergate"',
        'Bearer realm="tiergate", error="insufficient_scope", scope="{}"',
    },
}
"""What such a module makes besides: numbers with units and their names, headers, and what is put together of
sentences that are tried below.
"""
CHANGES = "x1"


def lacks(form: str) -> bool:
    """Whether some of what never changes in an English form is not recognised."""
    text = f"{CHANGES}{form}" if form[0] in " ," else form.strip(" ;")
    literal = text.replace(BLANK, "").strip(" ;:.,()")
    if not any(letter.isalpha() for letter in literal):
        return False
    found = CHINESE.told(text.replace(BLANK, CHANGES))
    return found is None or found.known < len(literal) - len(CHANGES) * (form[0] in " ,")


@pytest.mark.parametrize("path", REASONS)
def test_every_reason_has_a_form(path: str) -> None:
    forms = set(made(path)) - NUMBERS.get(path, set())
    assert [form for form in sorted(forms) if lacks(form)] == []


@pytest.mark.parametrize("path", REFUSALS)
def test_every_refusal_of_a_page_has_a_form(path: str) -> None:
    forms = set(refused(path)) - NUMBERS.get(path, set())
    assert [form for form in sorted(forms) if lacks(form)] == []


def test_the_sources_are_looked_at() -> None:
    """Moved modules would pass by having nothing."""
    assert sum(len(set(made(path))) for path in REASONS) > 100
    assert sum(len(set(refused(path))) for path in REFUSALS) > 90


def test_a_new_reason_is_met(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(
        'def why(n: int) -> str:\n    """Not a reason."""\n    return f"moons ({n}) are in the way"\n'
    )
    forms = list(made(str(tmp_path / "module.py")))
    assert forms == ["moons ({}) are in the way"]
    assert lacks(forms[0])


def test_every_title_of_a_refusal_has_a_form() -> None:
    assert [title for title in TITLES.values() if lacks(title)] == []


def test_every_code_that_stands_alone_has_a_word() -> None:
    codes = {*HoldKind, "missing_control", "no_control_capacity", "missing_coverage", "missing_attribution"}
    codes |= {f"missing_{gate}" for gate in (Gate.SLO, Gate.MONEY)}
    codes |= {"rung_below_not_accepted", "not_shown", "accept", "reject", "undecided"}
    assert sorted(codes - set(CHINESE.codes)) == []


@pytest.mark.parametrize("form", CHINESE.forms, ids=lambda form: form.english)
def test_a_sentence_of_a_form_is_told_by_it(form: object) -> None:
    """With its numbers in their places, and no other form knows more of it."""
    assert CHINESE is not None
    english, other = form.english, form.other  # type: ignore[attr-defined]
    values = {name: f"v{place}" for place, name in enumerate(names_of(english))}
    found = CHINESE.told(english.format_map(values))
    assert found is not None
    assert found.text == other.format_map(values)


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        (
            "structured_output: counted pairs (3) < min_pairs (20): no request so far is of this kind; if "
            "none will be, name the criteria that apply in policy.criteria; missing_slo",
            "结构化输出：已计入配对 3 对，少于 min_pairs（20）：至今没有这类请求；"
            "若以后也不会有，请在 policy.criteria 中只写适用的指标；"
            "没有 SLO 证据",
        ),
        (
            "slo: miss share +0.0100 over 2,000 requests: not shown below 0.02: p 0.2 > 0.05 "
            "(load run 5 h ago)",
            "SLO：2,000 个请求的未达标占比 +0.0100：未能证明低于 0.02：p 0.2 > 0.05（负载运行于 5 h 前）",
        ),
        (
            "not_shown: age of the epoch (900 s) >= longest (800 s): "
            "shown within the margin of 0.2: e-value 440 >= 20",
            "未能证明（纪元已有 900 秒，达到最长 800 秒）：已证明在容许幅度 0.2 之内：e 值 440 ≥ 20",
        ),
        (
            "not reached: at least 20.0% more tokens at 8 at once than at 4, and no more was tried",
            "未达到：同时 8 个比 4 个至少多 20.0% 的 token，没有再尝试更多",
        ),
        ("2.0 requests wait on average beside 3.0 that run", "平均有 2.0 个请求在等待，3.0 个在运行"),
        ("max-num-seqs: no step tells anything", "max-num-seqs：没有任何一步能说明什么"),
        (
            "w8a8: kv: P95 of TPOT is 90 ms, its limit 80 ms. kv: the KV cache is 95% full. May help: "
            "smaller blocks; more backends; weights of fewer bits; a KV cache of fewer bits; a smaller model "
            "as fallback. To confirm: measure with an engine that tells its KV use and preemptions.",
            "w8a8：KV 缓存：TPOT 的 P95 为 90 ms，上限 80 ms。KV 缓存：KV 缓存占满 95%。可能有用："
            "更小的块；更多后端；位数更少的权重；位数更少的 KV 缓存；以较小的模型作为后备。"
            "如何确认：用会透露 KV 占用与抢占的引擎测量。",
        ),
        ("reject: missing_money.", "拒绝：没有成本证据。"),
        (
            "w8a8: http://gpu:8000 serves clients as chat/w8a8",
            "w8a8：http://gpu:8000 作为 chat/w8a8 服务客户端",
        ),
        (
            "arguments of 'book' at /seats: '2' is not of type 'integer'",
            "'book' 的参数在 /seats 处：'2' 的类型不是 'integer'",
        ),
        (
            "expected JSON, found: Expecting value at character 0",
            "应为 JSON，实为：此处应为一个值，位于第 0 个字符",
        ),
        ("nothing was written, finish_reason stop", "什么都没有写，finish_reason 为 stop"),
        (
            "nothing was written after 7 characters of thinking, finish_reason length",
            "思考 7 个字符之后什么都没有写，finish_reason 为 length",
        ),
        ("256 characters of white space in a row and more", "连续 256 个空白字符，还有更多"),
        ("256 characters of white space in a row to the token limit", "连续 256 个空白字符，直至 token 上限"),
        ("said 9 times in a row, to the token limit", "连续说了 9 次，直至 token 上限"),
        (
            "2 of 4 fields agree; only in one answer: /a, /b; of another type: /c; of another value: /d",
            "4 个字段中有 2 个一致；只在一方：/a, /b；类型不同：/c；值不同：/d",
        ),
        ("repeats 1 of 3 facts; not 17, 2024", "复述了 3 个事实中的 1 个；没有 17, 2024"),
        ("expected a call, found text", "应有一次调用，实为文本"),
        ("expected a call of 'book', found text", "应调用 'book'，实为文本"),
        ("at /key: 'x y' is not base64", "在 /key 处：'x y' 不是 base64"),
        ("no call by the baseline, 2 calls by the candidate", "基线没有调用，候选2 次调用"),
        ("at /lakes: {'a': [1, 2]} is too long", "在 /lakes 处：{'a': [1, 2]} 太长"),
        ("chat template (by the candidate not)", "聊天模板（候选未透露）"),
        ("no model is called 'of a kind; so there'", "没有名为 'of a kind; so there' 的模型"),
    ],
)
def test_reasons_are_told_with_their_parts(english: str, chinese: str) -> None:
    assert in_words(Language.ZH, english) == (chinese, Language.ZH)


@pytest.mark.parametrize(
    "text", ["", "we do not like it", "ask anna; she knows", "看起来不对", "a: b: c", "x" * 5000]
)
def test_what_no_form_fits_stays_as_it_is(text: str) -> None:
    assert in_words(Language.ZH, text) == (text, Language.EN)


def test_english_stays_english() -> None:
    assert in_words(Language.EN, "missing_slo") == ("missing_slo", Language.EN)


def test_braces_and_percent_signs_of_names_are_no_fields() -> None:
    text, language = in_words(Language.ZH, "no model is called '{0.__class__} %s {stratum}'")
    assert language is Language.ZH
    assert "{0.__class__} %s {stratum}" in text


def test_many_reasons_in_a_line_are_told_without_end() -> None:
    found = CHINESE.told("; ".join(["missing_slo"] * 400))
    assert found is not None
    assert found.text.count("没有 SLO 证据") == 400


def test_forms_that_are_there_twice_or_have_other_names_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[same]\n"{n} pairs" = "{n} 对"\n')
    (tmp_path / "b.toml").write_text('[same]\n"{n} pairs" = "{n} 对"\n')
    with pytest.raises(ValueError, match=r"b.toml: '\{n\} pairs' is there already"):
        read_reasons(sorted(tmp_path.glob("*.toml")))
    (tmp_path / "b.toml").write_text('[same]\n"{n} runs" = "{m} 次"\n')
    with pytest.raises(ValueError, match="has other names"):
        read_reasons(sorted(tmp_path.glob("*.toml")))
