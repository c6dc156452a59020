"""Strata: names, buckets, and what a request is told by."""

from __future__ import annotations

import pytest

from service.proxy.entry.admission import stratum_of
from service.strata import DIMENSIONS, UNIVERSE, crossed, language_of, marginals, of_depth, split_crossed


def test_the_universe_is_every_crossed_stratum_and_every_bucket() -> None:
    assert len(UNIVERSE) == 5 * 2 * 2 + sum(len(buckets) for buckets in DIMENSIONS.values()) == 42


@pytest.mark.parametrize(
    ("size", "length"),
    [
        (0, "under-2k"),
        (2047, "under-2k"),
        (2048, "2k-8k"),
        (8192, "8k-32k"),
        (32 * 1024, "32k-128k"),
        (128 * 1024, "over-128k"),
        (10**9, "over-128k"),
    ],
)
def test_proxies_and_workers_name_a_length_alike(size: int, length: str) -> None:
    assert crossed(size, structured=False, streams=False) == f"{length}/free/whole"
    assert stratum_of(size, None) == f"{length}/free/whole"


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("turns", [0, 1, 5, 20, 10**6])
def test_a_request_has_one_stratum_in_every_dimension(structured: bool, streams: bool, turns: int) -> None:
    stratum = crossed(9000, structured=structured, streams=streams)
    found = marginals(stratum, constrained=structured, language="zh", turns=turns)
    # a depth is of a recall question and not of its request
    assert [name.partition("=")[0] for name in found] == [name for name in DIMENSIONS if name != "depth"]
    assert {stratum, *found} <= UNIVERSE


def test_turns_fall_into_their_buckets() -> None:
    found = {
        turns: marginals("", constrained=False, language="en", turns=turns)[-1]
        for turns in (0, 1, 2, 5, 6, 20, 21)
    }
    assert list(found.values()) == [
        "turns=1",
        "turns=1",
        "turns=2-5",
        "turns=2-5",
        "turns=6-20",
        "turns=6-20",
        "turns=over-20",
    ]


@pytest.mark.parametrize("stratum", ["", "short", "length=2k-8k", "2k-8k/free", "2k-8k/free/whole/x"])
def test_a_stratum_that_is_not_crossed_has_no_parts(stratum: str) -> None:
    assert split_crossed(stratum) == ()


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(ValueError, match="one of en, zh, other, got 'fr'"):
        marginals("", constrained=False, language="fr", turns=1)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Please summarise the attached contract in five points.", "en"),
        ("", "en"),
        ("def add(a, b): return a + b", "en"),
        ("What does 'Schadenfreude' mean, and how do I use it? Müller said it to me once.", "en"),
        ("请用中文总结这份合同的要点。", "zh"),
        ("把这段 Python 代码改成异步的：\nasync def main(): await asyncio.sleep(1)", "zh"),
        ("請將以下文字翻譯成英文", "zh"),
        ("この契約書を要約してください", "other"),
        ("이 계약서를 요약해 주세요", "other"),
        ("Сделай краткое содержание договора", "other"),
        ("Bitte fasse den Vertrag in wenigen Punkten zusammen und nenne die Fristen.", "other"),
        ("Résume le contrat en cinq points, s'il te plaît.", "other"),
        ("Resume el contrato en cinco puntos por favor y di los plazos.", "other"),
        ("لخص هذا العقد", "other"),
    ],
)
def test_the_language_is_told_from_what_was_written(text: str, language: str) -> None:
    assert language_of([text]) == language


def test_the_end_of_a_long_text_tells_its_language() -> None:
    assert language_of(["the answer is in the text " * 5000, "请总结一下。" * 2000]) == "zh"


@pytest.mark.parametrize(
    ("depth", "quarter"),
    [(0.0, "first"), (0.2499, "first"), (0.25, "second"), (0.7499, "third"), (1.0, "last")],
)
def test_an_answer_stands_in_a_quarter_of_the_context(depth: float, quarter: str) -> None:
    assert of_depth(depth) == f"depth={quarter}-quarter"
    assert of_depth(depth) in UNIVERSE


@pytest.mark.parametrize("depth", [-0.01, 1.01, float("nan")])
def test_a_depth_outside_of_the_context_is_refused(depth: float) -> None:
    with pytest.raises(ValueError, match="within 0 and 1"):
        of_depth(depth)
