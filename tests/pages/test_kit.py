"""The kit for pages: its colors can be told apart and read, its axes are round, its charts say all
they show.
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
from datetime import date, datetime
from pathlib import Path

import pytest

from discreet.pages import axis, blocks
from discreet.pages.bars import Series, bars, ticks_below
from discreet.pages.heat import Patch, Square, heat, shares
from discreet.pages.plot import Curve, plot
from discreet.pages.style import DARK, LIGHT, MIDDLE, fragment_style, page_style

SOURCE = Path(__file__).parents[2] / "src" / "discreet"
# How a color looks to people without one kind of cone (Viénot, Brettel and Mollon 1999, on linear
# light).
SIGHTS = {
    "everybody": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.11238, 0.88762, 0), (0.11238, 0.88762, 0), (0.00401, -0.00401, 1)),
    "deuteranopia": ((0.29275, 0.70725, 0), (0.29275, 0.70725, 0), (-0.02234, 0.02234, 1)),
}


def linear(color: str) -> list[float]:
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def contrast(one: str, other: str) -> float:
    """By the rules for accessible pages: 4.5 is enough for text, 3 for shapes."""
    bright, dark = sorted(
        (
            sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear(each), strict=True))
            for each in (one, other)
        ),
        reverse=True,
    )
    return (bright + 0.05) / (dark + 0.05)


def lab(color: str, sight: str) -> list[float]:
    seen = [sum(w * p for w, p in zip(row, linear(color), strict=True)) for row in SIGHTS[sight]]
    to_xyz = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    x, y, z = (sum(w * p for w, p in zip(row, seen, strict=True)) for row in to_xyz)
    f = [
        max(part, 0) ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116
        for part in (x / 0.9505, y, z / 1.089)
    ]
    return [116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])]


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_words_and_shapes_can_be_read(palette) -> None:
    for ground in (palette.paper, palette.card):
        for text in (palette.ink, palette.soft, palette.good, palette.bad):
            assert contrast(text, ground) >= 4.5, (text, ground)
        for color in palette.series:
            assert contrast(color, ground) >= 3, (color, ground)


def test_a_notebooks_colors_are_seen_on_light_and_on_dark() -> None:
    for color in (*MIDDLE.series, MIDDLE.good, MIDDLE.bad):
        assert min(contrast(color, "#ffffff"), contrast(color, "#111111")) >= 3, color


@pytest.mark.parametrize("palette", [LIGHT, DARK, MIDDLE], ids=["light", "dark", "middle"])
@pytest.mark.parametrize("sight", SIGHTS)
def test_the_first_three_colors_can_be_told_apart(palette, sight: str) -> None:
    """No chart has more than three colors that mean something, and each has its name in the
    legend.
    """
    for one, other in itertools.combinations(palette.series[:3], 2):
        far = (
            sum((a - b) ** 2 for a, b in zip(lab(one, sight), lab(other, sight), strict=True))
            ** 0.5
        )
        assert far >= 20, (one, other, far)


def test_no_page_loads_or_runs_anything() -> None:
    page = blocks.page("<b>", [blocks.paragraph("<i>")], subtitle="<u>", banner="<s>", footer="<a>")
    assert not re.search(r"<script|<link|<img|@import|url\(|https?:", page + fragment_style())
    for text in ("<b>", "<i>", "<u>", "<s>", "<a>"):
        assert text not in page
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page_style()
    assert "prefers-color-scheme" not in fragment_style(), (
        "a notebook is dark or light whatever the system is"
    )


def test_one_style_sheet() -> None:
    """Nobody else writes colors, fonts or drawings."""
    for path in SOURCE.rglob("*.py"):
        if path.parent.name != "pages":
            assert not re.search(r"#[0-9a-f]{6}\b|font-family|<svg|<style", path.read_text()), path


def test_the_kit_needs_the_standard_library_alone() -> None:
    for path in (SOURCE / "pages").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                top = (node.module or "").split(".")
                assert top[0] in sys.stdlib_module_names or top[:2] == ["discreet", "pages"], (
                    path.name,
                    node.module,
                )


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (0, 1, ["0", "0.25", "0.50", "0.75", "1.00"]),
        (-62, 2138, ["0", "1,000", "2,000"]),
        (0, 20921, ["0", "10,000", "20,000"]),
        (-1, 1, ["−1.0", "−0.5", "0", "0.5", "1.0"]),
        (0, 0.004, ["0", "0.001", "0.002", "0.003", "0.004"]),
        (0, 7e9, ["0", "2e9", "4e9", "6e9"]),
        (5, 5, ["4.0", "4.5", "5.0", "5.5", "6.0"]),
        (0, 0, ["0", "0.25", "0.50", "0.75", "1.00"]),
    ],
)
def test_ticks_are_round(low: float, high: float, shown: list[str]) -> None:
    found = axis.numbers(low, high)
    assert [text for _, text in found.ticks] == shown
    assert all(found.low <= value <= found.high for value, _ in found.ticks)


@pytest.mark.parametrize(
    "high", [10.0**power * factor for power in range(-6, 12) for factor in (1, 1.7, 3.3, 7.9)]
)
def test_every_range_has_two_to_five_different_ticks(high: float) -> None:
    for low in (0.0, -high, high / 3):
        ticks = axis.numbers(low, high).ticks
        assert 2 <= len(ticks) <= 5
        assert len({text for _, text in ticks}) == len(ticks)


@pytest.mark.parametrize(
    ("first", "last", "shown"),
    [
        (date(2024, 1, 1), date(2024, 12, 31), ["Jan 2024", "Apr 2024", "Jul 2024", "Oct 2024"]),
        (
            date(2024, 1, 1),
            date(2024, 1, 4),
            ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"],
        ),
        (date(1990, 5, 5), date(2024, 1, 1), ["1990", "2000", "2010", "2020"][1:]),
        (
            datetime(2024, 1, 1, 0),
            datetime(2024, 1, 1, 9),
            ["2024-01-01", "03:00", "06:00", "09:00"],
        ),
        (date(2024, 1, 1), date(2024, 1, 1), ["2024-01-01"]),
    ],
)
def test_ticks_of_time_are_where_hours_days_months_or_years_begin(
    first, last, shown: list[str]
) -> None:
    assert [text for _, text in axis.days(first, last).ticks] == shown


def test_what_is_beyond_an_axis_lies_on_its_end() -> None:
    scale = axis.numbers(0, 10)
    assert (scale.at(-5), scale.at(5), scale.at(50)) == (0.0, 0.5, 1.0)
    log = axis.logarithmic([0.1, 1, 10])
    assert log.at(1) == pytest.approx(0.5)


def test_bars_say_every_name_and_number_in_full() -> None:
    long = "a very long name of a category that no drawing should ever cut off"
    series = Series(values=[3.0, -1.0], ranges=[(2.0, 4.0), None], texts=["3 ± 1", "−1"])
    drawn = bars([long, "<b>"], [series], axis=axis.numbers(-1, 4, title="rows"))
    for text in (long, "&lt;b&gt;", "3 ± 1", "rows"):
        assert text in drawn
    assert drawn.count('class="error"') == 1
    assert drawn.count("<rect") == 2


def test_lines_have_their_band_and_their_legend() -> None:
    one = Curve(across=[0, 1, 2], up=[1, 2, 3], lows=[0, 1, 2], highs=[2, 3, 4], name="one")
    two = Curve(across=[0, 2], up=[4, 4], name="limit", kind="dash", color=1)
    drawn = plot(
        [one, two],
        across=axis.numbers(0, 2, title="day"),
        up=axis.numbers(0, 4, title="ε"),
        label="<x>",
    )
    assert drawn.count('class="band"') == 1
    assert "limit" in drawn
    assert "&lt;x&gt;" in drawn
    assert drawn.count("<svg") == 3  # the plot, and a sample for each name


def test_a_map_of_pairs_shows_each_pair_on_both_sides() -> None:
    drawn = heat(
        ["a", "b"], [Square(row=0, column=1, value=0.1, marked=True)], full=0.2, label="pairs"
    )
    assert drawn.count("<title>a × b: 0.100</title>") == 2
    assert drawn.count("<circle") == 2
    assert "0.2 or more" in drawn


def test_a_map_of_shares_has_a_patch_for_every_row_and_column() -> None:
    lines = [[Patch(share=0, title="a <none>"), Patch(share=1, title="b")]]
    drawn = shares(["finding"], ["x", "y"], lines, label="shares")
    assert drawn.count("<title>") == 2
    assert "a &lt;none&gt;" in drawn
    assert 'fill-opacity="0.05"' in drawn
    assert 'fill-opacity="1.00"' in drawn


def test_numbers_stand_to_the_right_and_texts_to_the_left() -> None:
    table = blocks.table(("name", "n"), [("x", "1,204 ± 12"), ("<y>", "−3"), ("z", "50\u202f%")])
    assert '<th class="n">n</th>' in table
    assert "<th>name</th>" in table
    assert "&lt;y&gt;" in table


def test_many_long_words_below_an_axis_say_so_to_the_style_sheet() -> None:
    def below(words: list[str]) -> str:
        places = tuple((float(place), word) for place, word in enumerate(words))
        return ticks_below(axis.Axis(low=0.0, high=len(words) - 1.0, ticks=places))

    months = ["Mar 2024", "May 2024", "Jul 2024", "Sep 2024", "Nov 2024"]
    assert "ticks dense" in below(months)
    assert "dense" not in below(months[:4])
    assert "dense" not in below(["0", "20", "40", "60"])
