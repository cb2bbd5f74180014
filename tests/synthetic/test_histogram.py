"""The bars of a column on a page: each area is a number of rows, whatever the widths of cells."""

from __future__ import annotations

import re
from datetime import date, datetime
from fractions import Fraction

import numpy as np
import pytest

from discreet.policy.domain import Column, Dates, Decimals, Domain, Integers, Timestamps
from discreet.synthetic.columns.axis import Axis
from discreet.synthetic.report.histogram import draw_column

UPRIGHT = re.compile(
    r'<rect class="fill" x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="([\d.]+)"><title>(.*?):'
)
YEAR = (date(2024, 1, 1), date(2024, 12, 31))


def axis_of(domain: Domain, *, bins: int, cuts: tuple[int, ...] | None = None) -> Axis:
    return Axis(column=Column(name="x", domain=domain, nullable=True), bins=bins, cuts=cuts)


def drawn(axis: Axis, rows: list[float]) -> str:
    """Draw a column with these rows in its cells, 10 of them NULL."""
    return draw_column(axis, np.array([*rows, 10.0]), np.zeros(axis.size))


def upright(page: str) -> list[tuple[float, float, float]]:
    """Return the left end, the width and the height of every upright bar."""
    return [(float(x), float(w), float(h)) for x, w, h, _ in UPRIGHT.findall(page)]


def widths(axis: Axis) -> list[float]:
    return np.diff(np.array(axis.starts, dtype=np.float64)).tolist()


@pytest.mark.parametrize(
    ("axis", "unit"),
    [
        (axis_of(Integers(lo=0, hi=120), bins=100), "value"),
        (axis_of(Integers(lo=0, hi=120), bins=4, cuts=(0, 1, 3, 100, 121)), "value"),
        (axis_of(Integers(lo=-7, hi=4), bins=5), "value"),
        (axis_of(Integers(lo=5, hi=10**6), bins=100), "10,000"),
        (axis_of(Decimals(lo=Fraction(0), hi=Fraction(9), step=Fraction("0.01")), bins=77), "0.1"),
        (axis_of(Dates(lo=YEAR[0], hi=YEAR[1]), bins=100), "day"),
        (
            axis_of(
                Timestamps(lo=datetime(2024, 1, 1), hi=datetime(2024, 1, 8), step=Fraction(60)),
                bins=83,
            ),
            "hour",
        ),
    ],
)
def test_equally_many_rows_of_every_value_are_a_flat_line(axis: Axis, unit: str) -> None:
    """Cells of two values beside cells of one have twice the rows, and are no peaks."""
    page = drawn(axis, [7 * width for width in widths(axis)])
    bars = upright(page)
    assert 2 <= len(bars) <= 50
    heights = [height for _, _, height in bars]
    assert max(heights) <= 1.001 * min(heights)
    assert f"rows per {unit}<" in page
    assert "NULL" in page


def test_areas_are_rows_and_places_are_true() -> None:
    """Half of the rows in the first tenth of the range, cut finely; the rest in one cell."""
    axis = axis_of(Integers(lo=0, hi=999), bins=11, cuts=(*range(0, 101, 10), 1000))
    bars = upright(drawn(axis, [10.0] * 10 + [100.0]))
    areas = [width * height for _, width, height in bars]
    first = sum(area for (x, _, _), area in zip(bars, areas, strict=True) if x < 99)
    assert first / sum(areas) == pytest.approx(0.5, abs=0.01)
    assert bars[0][2] / bars[-1][2] == pytest.approx(9, rel=0.01)
    assert bars[-1][0] + bars[-1][1] == pytest.approx(1000, abs=5)


def test_a_value_without_width_is_a_lying_bar_and_not_a_peak() -> None:
    """Nine of ten rows are 0, of a million values: the plot is of the others, and says so."""
    axis = axis_of(
        Integers(lo=0, hi=10**6 - 1), bins=101, cuts=(0, 1, *range(10**4, 10**6 + 1, 10**4))
    )
    page = drawn(axis, [9e6, *widths(axis)[1:]])
    heights = [height for _, _, height in upright(page)]
    assert max(heights) <= 1.001 * min(heights)
    assert "rows per 10,000, without the values below" in page
    names = re.findall(r'<div class="name">(.*?)</div>', page)
    assert names == ["0", "NULL"]


def test_a_few_single_values_stay_lying_bars() -> None:
    page = drawn(axis_of(Integers(lo=1, hi=3), bins=3), [1.0, 2.0, 3.0])
    assert not upright(page)
    assert re.findall(r'<div class="name">(.*?)</div>', page) == ["1", "2", "3", "NULL"]
