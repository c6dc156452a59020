"""Every chart, in both layouts: inside its canvas, with its numbers where they belong, and never empty."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import pytest

from service.charts import STYLE
from service.charts.canvas import breadth, wrapped
from service.charts.chart import NARROW, WIDE, Draw, chart
from service.charts.curve import CurvePoint, Reference, Series, curve
from service.charts.distribution import Spread, distribution
from service.charts.flow import Amount, flow
from service.charts.forest import ForestRow, forest
from service.charts.heat import Cell, heat
from service.charts.narrowing import LookPoint, Moment, narrowing
from service.charts.waterfall import Step, waterfall
from tests.charts.drawings import both, extent, of_class, size, words

HOSTILE = "<script>alert(1)</script>\"'&]]>"


def forest_row(estimate: float | None, lower: float, upper: float, **more: object) -> ForestRow:
    told = {
        "label": "structured output",
        "note": "1,000 pairs",
        "numbers": "+0.10 [-0.30, +0.80] pp",
        "margin": 0.01,
    }
    return ForestRow(estimate=estimate, lower=lower, upper=upper, **(told | more))  # type: ignore[arg-type]


def a_forest(*rows: ForestRow) -> Draw:
    return forest(rows, x_name="pp", margin_label="margin", zero_label="none", nothing="nothing yet")


def a_curve(*points: CurvePoint, **more: object) -> Draw:
    return curve(
        [Series(label="w8a8", points=points, style=1)], x_name="x", y_name="y", nothing="nothing yet", **more
    )  # type: ignore[arg-type]


ACCOUNT = Amount(
    label="seen",
    count=100,
    text="100",
    parts=(
        Amount(
            label="sampled",
            count=40,
            text="40",
            parts=(
                Amount(label="shipped", count=37, text="37", tone="good"),
                Amount(label="lost", count=3, text="3", tone="bad"),
            ),
        ),
        Amount(label="skipped", count=60, text="60", tone="aside"),
    ),
)
LOOKS = [LookPoint(at=n, estimate=0.001, lower=-1 / n, upper=1 / n) for n in (10, 100, 1000)]
AS_THEY_ARE = {
    "c-legend",
    "c-number",
    "c-fill",
    "c-on-none",
    "c-on-even",
    "c-on-hot2",
    "c-on-hot4",
    "c-on-cold2",
}
"""Words and marks that look as everything on a chart does."""
EVERY: dict[str, Draw] = {
    "forest": a_forest(
        forest_row(0.001, -0.003, 0.008), forest_row(0.04, 0.02, 0.9, tone="bad", both_ways=True)
    ),
    "curve": a_curve(
        CurvePoint(x=1, y=10), CurvePoint(x=2, y=None), CurvePoint(x=3, y=30, lower=20, upper=40)
    ),
    "distribution": distribution(
        [Spread(label="bf16", points=((0.05, 100), (0.5, 400), (0.95, 900)))],
        x_name="ms",
        y_name="%",
        goal=1500,
        goal_label="SLO 1500 ms",
    ),
    "narrowing": narrowing(
        LOOKS,
        label="w8a8",
        margin=0.01,
        margin_label="margin",
        zero_label="none",
        x_name="pairs",
        y_name="pp",
        moments=[Moment(at=1000, label="accept")],
    ),
    "waterfall": waterfall(
        [
            Step(label="before", numbers="10", amount=10, total=True),
            Step(label="less", numbers="-4", amount=-4),
            Step(label="after", numbers="6", amount=6, total=True, lower=5, upper=7),
        ],
        x_name="CNY",
    ),
    "flow": flow(ACCOUNT),
    "heat": heat(
        [
            ("zh/8k", [Cell(text="+1.2", share=0.9), None]),
            ("en/1k", [Cell(text="0.0"), Cell(text="-0.4", share=-0.5)]),
        ],
        ["a", "b"],
        legend=[(0.0, "alike"), (1.0, "harm")],
    ),
    "heat of many": heat(
        [(f"stratum {row}", [Cell(text="! 12.3 %", share=0.5)] * 13) for row in range(3)],
        ["traffic", *(f"w4a16-fp8kv-g128-{tier}" for tier in range(12))],
        again=1,
    ),
}
NOTHING: dict[str, Callable[[str], Draw]] = {
    "forest": lambda text: forest([], x_name="", margin_label="", zero_label="", nothing=text),
    "curve": lambda text: curve([], x_name="", y_name="", nothing=text),
    "distribution": lambda text: distribution([], x_name="", y_name="", nothing=text),
    "narrowing": lambda text: narrowing(
        [], label="", margin=0.01, margin_label="", zero_label="", x_name="", y_name="", nothing=text
    ),
    "waterfall": lambda text: waterfall([], x_name="", nothing=text),
    "flow": lambda text: flow(Amount(label="", count=0, text="0"), nothing=text),
    "heat": lambda text: heat([], [], nothing=text),
}


@pytest.mark.parametrize("name", EVERY)
def test_everything_is_drawn_inside_the_canvas(name: str) -> None:
    for root in both(EVERY[name]):
        width, height = size(root)
        for x, y in extent(root):
            assert -0.5 <= x <= width + 0.5, (name, width, x)
            assert -0.5 <= y <= height + 0.5, (name, height, y)


@pytest.mark.parametrize("name", EVERY)
def test_every_class_has_its_style(name: str) -> None:
    for root in both(EVERY[name]):
        for each in root.iter():
            for used in each.get("class", "").split():
                if used.startswith("c-") and used not in AS_THEY_ARE:
                    assert re.search(rf"\.{used}\b", STYLE), used


@pytest.mark.parametrize("name", NOTHING)
def test_an_empty_chart_says_so(name: str) -> None:
    for root in both(NOTHING[name]("nothing yet")):
        assert "nothing yet" in words(root)


def test_two_layouts_have_names_of_their_own_and_the_same_words() -> None:
    made = chart(EVERY["forest"], name="f", title="T", text="In words", head=["a", "b"], rows=[["1", "2"]])
    assert 'id="f-wide-title"' in made.wide
    assert 'id="f-narrow-title"' in made.narrow
    for layout in (made.wide, made.narrow):
        assert "In words" in layout
        assert "+0.10 [-0.30, +0.80] pp" in layout
    assert f'width="{WIDE:g}"' in made.wide
    assert f'width="{NARROW:g}"' in made.narrow


def test_a_table_that_does_not_fit_its_head_is_refused() -> None:
    with pytest.raises(ValueError, match="2 cells, its head 1"):
        chart(EVERY["flow"], name="f", title="", text="", head=["a"], rows=[["1", "2"]])


@pytest.mark.parametrize("name", ["forest", "curve", "waterfall", "flow", "heat", "distribution"])
def test_hostile_names_stay_text(name: str) -> None:
    drawn: dict[str, Draw] = {
        "forest": a_forest(forest_row(0, -0.1, 0.1, label=HOSTILE, numbers=HOSTILE)),
        "curve": curve(
            [Series(label=HOSTILE, points=(CurvePoint(x=1, y=1, tip=HOSTILE),))],
            x_name=HOSTILE,
            y_name=HOSTILE,
        ),
        "waterfall": waterfall([Step(label=HOSTILE, numbers=HOSTILE, amount=1)], x_name=HOSTILE),
        "flow": flow(Amount(label=HOSTILE, count=1, text=HOSTILE)),
        "heat": heat([(HOSTILE, [Cell(text=HOSTILE, tip=HOSTILE)])], [HOSTILE]),
        "distribution": distribution(
            [Spread(label=HOSTILE, points=((0.5, 1.0),))], x_name=HOSTILE, y_name=HOSTILE
        ),
    }
    for root in both(drawn[name]):
        assert not [each for each in root.iter() if each.tag in ("script", "img")]
        assert any("<script>" in text or "<s…" in text or text.startswith("<") for text in words(root))


def test_a_forest_draws_estimates_where_their_numbers_are_and_marks_what_runs_off() -> None:
    rows = [forest_row(0.0, -0.004, 0.004), forest_row(0.005, -0.004, 0.004), forest_row(0.0, -0.9, 0.9)]
    for root in both(a_forest(*rows)):
        inside, _, beyond = (each for each in of_class(root, "interval") if each.find("title") is not None)
        middle = (float(inside.get("x1", 0)) + float(inside.get("x2", 0))) / 2
        zero = of_class(root, "zero")[0]
        assert middle == pytest.approx(float(zero.get("x1", 0)), abs=0.2)
        assert float(beyond.get("x2", 0)) - float(beyond.get("x1", 0)) > 200
        # Two estimates of three are diamonds on zero; the third run ends in two arrows.
        assert len(of_class(root, "solid", "wait")) == 3 + 2


def test_a_margin_both_ways_is_shaded_on_both_sides() -> None:
    one_sided, two_sided = (
        of_class(both(a_forest(forest_row(0, -0.01, 0.01, both_ways=ways)))[0], "beyond")
        for ways in (False, True)
    )
    assert (len(one_sided), len(two_sided)) == (1, 2)


def test_a_curve_is_broken_where_nothing_was_measured_and_hollow_where_it_does_not_count() -> None:
    draw = a_curve(
        CurvePoint(x=1, y=1),
        CurvePoint(x=2, y=2),
        CurvePoint(x=3, y=None),
        CurvePoint(x=4, y=4),
        CurvePoint(x=5, y=5),
        CurvePoint(x=6, y=1, hollow=True),
    )
    for root in both(draw):
        lines = list(root.iter("polyline"))
        assert [len(each.get("points", "").split()) for each in lines] == [2, 2]
        assert len(of_class(root, "hollow")) == 1


def test_a_higher_number_is_drawn_higher() -> None:
    for root in both(
        a_curve(CurvePoint(x=1, y=1), CurvePoint(x=2, y=3), references=[Reference(at=2, label="SLO")])
    ):
        (line,) = root.iter("polyline")
        (_, low), (_, high) = (map(float, pair.split(",")) for pair in line.get("points", "").split())
        (limit,) = of_class(root, "limit")
        assert high < float(limit.get("y1", 0)) < low
        assert "SLO" in words(root)


def test_a_distribution_reaches_no_further_than_those_that_came() -> None:
    draw = distribution(
        [Spread(label="bf16", points=((0.1, 10), (0.5, 20), (0.8, 30)))], x_name="ms", y_name="%"
    )
    wide = both(draw)[0]
    (line,) = wide.iter("polyline")
    top = min(float(pair.split(",")[1]) for pair in line.get("points", "").split())
    (guide,) = of_class(wide, "guide")
    assert top > float(guide.get("y1", 0)), "80 % lie below the line of 95 %"


def test_a_sequence_narrows_and_what_runs_off_is_cut() -> None:
    (wide, _) = both(EVERY["narrowing"])
    whiskers = of_class(wide, "whisker")
    lengths = [abs(float(each.get("y2", 0)) - float(each.get("y1", 0))) for each in whiskers]
    assert lengths[0] == pytest.approx(lengths[1], rel=0.2) or lengths[0] > lengths[1]
    assert lengths[-1] < lengths[0] / 20
    assert "accept" in words(wide)


def test_waterfall_bars_begin_where_the_one_before_ended() -> None:
    for root in both(EVERY["waterfall"]):
        bars = [(float(each.get("x", 0)), float(each.get("width", 0))) for each in of_class(root, "bar")]
        (first, first_width), (second, second_width), (third, third_width) = bars
        assert second + second_width == pytest.approx(first + first_width, abs=0.2)
        assert third + third_width == pytest.approx(second, abs=0.2)
        assert third == first


def test_a_flow_has_bands_as_wide_as_their_amounts() -> None:
    wide, narrow = both(EVERY["flow"])
    tall = {each.get("class"): 0.0 for each in of_class(wide, "bar")}
    for each in of_class(wide, "bar"):
        tall[each.get("class")] = tall.get(each.get("class"), 0) + float(each.get("height", 0))
    assert tall["c-bar c-bad"] / tall["c-bar c-good"] == pytest.approx(3 / 37, rel=0.1)
    bars = of_class(narrow, "bar")
    whole, sampled, shipped, lost, skipped = (float(each.get("width", 0)) for each in bars)
    assert sampled + skipped == pytest.approx(whole, abs=0.3)
    assert shipped + lost == pytest.approx(sampled, abs=0.3)
    begins = [float(each.get("x", 0)) for each in bars]
    assert begins[4] == pytest.approx(sampled, abs=0.3)


def test_labels_of_a_flow_never_lie_on_one_another() -> None:
    many = Amount(
        label="seen",
        count=1_000_000,
        text="1,000,000",
        parts=tuple(Amount(label=f"reason {number}", count=1, text="1", tone="bad") for number in range(12)),
    )
    wide = both(flow(many))[0]
    heights = sorted(
        float(each.get("y", 0)) for each in of_class(wide, "label") if float(each.get("x", 0)) > 100
    )
    assert len(heights) == 12
    assert all(after - before >= 24 for before, after in pairwise(heights))


def test_an_account_that_cannot_add_up_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 1"):
        Amount(label="seen", count=1, text="1", parts=(Amount(label="a", count=2, text="2"),))


def test_a_heat_map_shades_by_how_much_it_speaks_of_harm() -> None:
    assert [Cell(text="x", share=share).shade for share in (-2, -0.3, 0, 0.1, 0.3, 1)] == [
        "cold4",
        "cold1",
        "even",
        "even",
        "hot1",
        "hot4",
    ]
    for root in both(EVERY["heat"]):
        assert len(of_class(root, "cell", "hot4")) == 1
        assert len(of_class(root, "cell", "none")) == 1
        assert "–" in words(root)


def test_a_row_of_a_heat_map_that_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        heat([("a", [None])], ["x", "y"])


def test_columns_of_a_heat_map_that_have_no_room_stand_in_a_band_below() -> None:
    wide, narrow = both(EVERY["heat of many"])
    for root, least in ((wide, 2), (narrow, 3)):
        told = words(root)
        bands = told.count("stratum 0")
        assert bands >= least
        assert told.count("traffic") == bands, "what every band begins with"
        cells = of_class(root, "cell")
        assert len(cells) == 3 * (12 + bands)
        assert all("…" not in text for text in told if "%" in text), "a number that is cut is another one"
        for cell in cells:
            assert float(cell.get("width", 0)) >= breadth("! 12.3 %")


def test_columns_that_belong_together_are_not_parted() -> None:
    rows = [("stratum", [Cell(text=f"+{number}.0") for number in range(14)])]
    columns = [name for pair in range(7) for name in (f"criterion {pair}", f"A/A {pair}")]
    for root in both(heat(rows, columns, together=2)):
        lines: dict[str, list[str]] = {}
        for each in of_class(root, "axis-name"):
            whole = each.findtext("title") or each.text or ""
            lines.setdefault(each.get("y", ""), []).append(whole)
        for pair in range(7):
            assert any({f"criterion {pair}", f"A/A {pair}"} <= set(names) for names in lines.values()), lines


def test_a_name_is_broken_where_it_can_be_and_cut_where_it_must() -> None:
    assert wrapped("w4a16", 100, 2) == ["w4a16"]
    assert wrapped("w4a16-fp8kv", breadth("w4a16-f"), 2) == ["w4a16-", "fp8kv"]
    first, second = wrapped("x" * 200, 60, 2)
    assert breadth(first) <= 60
    assert second.endswith("…")


def test_a_file_has_plain_numbers_and_nothing_where_there_is_none() -> None:
    made = chart(
        EVERY["flow"],
        name="f",
        title="",
        text="",
        head=["a"],
        rows=[["1 %"]],
        data=[("share", "n"), (0.1 + 0.2, 1_000_000), (None, 3), (-1e-7, "x")],
    )
    assert made.data == (("share", "n"), ("0.3", "1000000"), ("", "3"), ("-1e-07", "x"))
    with pytest.raises(ValueError, match="1 cells, its head 2"):
        chart(EVERY["flow"], name="f", title="", text="", head=["a"], rows=[], data=[("a", "b"), (1,)])


LONG = "+100.00 [\u2212100.00, +100.00] pp"
DEAR = "CNY 12,345.67 [11,234.56, 13,456.78]"


@pytest.mark.parametrize(
    ("draw", "numbers"),
    [
        (a_forest(forest_row(0.0, -1.0, 1.0, label="long-context recall of a plug-in", numbers=LONG)), LONG),
        (
            waterfall(
                [
                    Step(label="price", numbers="CNY 1", amount=1),
                    Step(
                        label="net benefit per request", numbers=DEAR, amount=1, total=True, lower=0, upper=2
                    ),
                ],
                x_name="CNY",
            ),
            DEAR,
        ),
    ],
)
def test_a_number_and_its_limits_are_never_cut(draw: Draw, numbers: str) -> None:
    for root in both(draw):
        assert numbers in words(root)
        at = next(each for each in of_class(root, "number") if numbers in (each.text or ""))
        beside = [each for each in of_class(root, "label") if each.get("y") == at.get("y")]
        end = size(root)[0] - breadth(numbers)
        for label in beside:
            said = (label[0].tail if len(label) else label.text) or ""
            assert float(label.get("x", 0)) + breadth(said) < end


def test_bars_of_a_waterfall_stay_below_their_words() -> None:
    steps = [
        Step(label="net benefit per request", numbers=DEAR, amount=number, total=True) for number in (1, 2)
    ]
    narrow = both(waterfall(steps, x_name="CNY"))[1]
    bars = [float(each.get("y", 0)) for each in of_class(narrow, "bar")]
    numbers = [float(each.get("y", 0)) for each in of_class(narrow, "number")]
    assert all(bar > base for bar, base in zip(bars, numbers, strict=True))
    assert numbers[1] > bars[0] + 20
