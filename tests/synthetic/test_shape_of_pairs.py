"""The shape of related columns: normal scores, slopes from one sum, and long tails in a model."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.policy.domain import Categories, Column, Integers
from discreet.synthetic.columns.axis import Axis
from discreet.synthetic.synthesizers.graphical import FitTarget, estimate
from discreet.synthetic.synthesizers.shape import normal_scores, slopes

Floats = NDArray[np.float64]

EIGHTHS = np.full(8, 1 / 8)
CLIPPED = np.array([-1.0, -1.0, -0.6, -0.2, 0.2, 0.6, 1.0, 1.0])


def eight(nullable: bool = False) -> Axis:
    column = Column(name="x", domain=Integers(lo=1, hi=8), nullable=nullable)
    return Axis(column=column, bins=8)


def normal_table(correlation: float) -> Floats:
    """Shares of two normal numbers in eighths, by the density at many points."""
    line = np.linspace(-6, 6, 2401)
    density = np.exp(-(line**2) / 2)
    place = np.minimum((np.cumsum(density) / density.sum() * 8).astype(int), 7)
    x, y = line[:, None], line[None, :]
    joint = np.exp(-(x**2 - 2 * correlation * x * y + y**2) / 2 / (1 - correlation**2))
    rows = np.zeros((8, len(line)))
    np.add.at(rows, place, joint)
    table = np.zeros((8, 8))
    np.add.at(table.T, place, rows.T)
    return np.asarray(table / table.sum())


def test_normal_scores() -> None:
    found = normal_scores(EIGHTHS * 400, CLIPPED, eight())
    assert found == pytest.approx(-found[::-1])
    assert found[-1] == pytest.approx(1.647, abs=2e-3)  # the mean of the highest eighth
    with_null = normal_scores(np.append(EIGHTHS * 400, 90.0), np.append(CLIPPED, 0), eight(True))
    assert with_null == pytest.approx(np.append(found, 0.0))
    missing = np.array([-1.0] * 8 + [1.0])
    assert (normal_scores(np.full(9, 10.0), missing, eight(True)) == missing).all()
    listed = Axis(column=Column(name="x", domain=Categories(values=("p", "q"))), bins=2)
    assert (normal_scores(np.array([3.0, 5.0]), np.array([1.0, -1.0]), listed) == [1, -1]).all()


@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.3, 0.6])
def test_one_sum_tells_a_whole_normal_table(correlation: float) -> None:
    """The sum of clipped scores gives the slope; the slope gives the corners, which the clipped
    scores cannot tell apart from their neighbors.
    """
    truth = normal_table(correlation)
    line = normal_scores(EIGHTHS, CLIPPED, eight())
    mean = float(CLIPPED @ truth @ CLIPPED)
    products = np.multiply.outer(CLIPPED, CLIPPED)
    (slope,) = slopes([0, 1], [EIGHTHS, EIGHTHS], [line, line], [(0, 1, products, mean)])
    assert slope == pytest.approx(correlation / (1 - correlation**2), abs=0.06)
    margins = [
        FitTarget(columns=(i,), cells=np.arange(8), counts=1000 * EIGHTHS, std=0.1) for i in (0, 1)
    ]
    both = {
        name: FitTarget(
            columns=(0, 1),
            cells=np.zeros(0, dtype=np.int64),
            counts=np.array([1000 * mean]),
            std=0.1,
            scores=products.reshape(1, -1),
            shape=shape,
        )
        for name, shape in (("shaped", slope * np.multiply.outer(line, line).ravel()), ("no", None))
    }
    far = {
        name: float(
            np.abs(
                estimate([8, 8], [*margins, target], total=1000, prior=1e-3).model.marginal((0, 1))
                - truth
            ).sum()
        )
        for name, target in both.items()
    }
    assert far["shaped"] < 0.02
    if correlation:
        assert far["no"] > 3 * far["shaped"]


def test_what_is_owed_to_a_third_column_is_not_counted_twice() -> None:
    """Correlations of .5, .5 and .25 are those of a chain: its ends need no slope."""
    line = normal_scores(EIGHTHS, CLIPPED, eight())
    products = np.multiply.outer(CLIPPED, CLIPPED)
    means = {r: float(CLIPPED @ normal_table(r) @ CLIPPED) for r in (0.5, 0.25)}
    wanted = [
        (0, 1, products, means[0.5]),
        (1, 2, products, means[0.5]),
        (0, 2, products, means[0.25]),
    ]
    first, second, ends = slopes([0, 1, 2], [EIGHTHS] * 3, [line] * 3, wanted)
    assert first == pytest.approx(second)
    assert first > 0.5
    assert abs(ends) < 0.06


def test_impossible_sums_and_empty_groups_give_finite_slopes() -> None:
    """Noise may ask for more than any table can give."""
    shares = np.array([0.0, 1.0, 0.0])
    score = np.array([-1.0, 0.0, 1.0])
    column = Column(name="x", domain=Integers(lo=1, hi=3))
    line = normal_scores(shares, score, Axis(column=column, bins=3))
    products = np.multiply.outer(score, score)
    wanted = [(0, 1, products, 5.0), (0, 2, products, -5.0), (1, 2, products, 5.0)]
    found = slopes([0, 1, 2], [shares] * 3, [line] * 3, wanted)
    assert np.isfinite(found).all()
