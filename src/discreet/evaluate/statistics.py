"""Statistics of public tables that SQL lacks: linear and logistic regression, and Spearman's
correlation.

Rows with a missing value are left out. Where a statistic does not exist (too few rows, a column
that does not vary or follows from others, classes that the columns separate) it is NULL: None here,
and NaN in no place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.threads import one_thread

Floats = NDArray[np.float64]
Number = float | None

_DEPENDENT = 1e-9  # smallest singular value of standardized columns, as a share of the largest
_STEPS = 100
_CONVERGED = 1e-10  # change of the log-likelihood, as a share of it
_SEPARATED = 1e-6  # least curvature of the likelihood by row, in standardized columns
_LISTS = ("coefficient", "error", "t", "p")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A regression. The four lists have one entry for each column, in their order, without the
    intercept.

    `t` is z in a logistic regression, and `r2` is McFadden's. `accuracy` is the share of rows on
    the right side of one half; a linear regression has none.
    """

    coefficient: tuple[Number, ...]
    error: tuple[Number, ...]
    t: tuple[Number, ...]
    p: tuple[Number, ...]
    intercept: Number
    r2: Number
    rows: int
    accuracy: Number = None

    def field(self, name: str, place: int | None) -> Number:
        """Return one number of the fit: of a list the one at `place`, counted from 0."""
        found: tuple[Number, ...] | Number = getattr(self, name)
        if isinstance(found, tuple):
            assert place is not None
            return found[place]
        return found


FIELDS = ("coefficient", "error", "t", "p", "intercept", "r2", "rows", "accuracy")


def is_list(field: str) -> bool:
    """Return True if a field of a fit has one entry for each column."""
    return field in _LISTS


@one_thread()
def ols(y: Floats, columns: Sequence[Floats]) -> Fit:
    """Fit ordinary least squares with an intercept; errors assume one variance for all rows,
    p-values are Student's t.
    """
    y, x = _complete(y, columns)
    rows, width = x.shape
    standard = _standardize(x) if rows > width + 1 else None
    if standard is None:
        return _nothing(rows, width)
    z, mean, spread = standard
    center = float(y.mean())
    q, r = np.linalg.qr(z)
    slopes = np.linalg.solve(r, q.T @ (y - center))
    left = float(np.sum((y - center - z @ slopes) ** 2))
    whole = float(np.sum((y - center) ** 2))
    inverse = np.linalg.inv(r)
    degrees = rows - width - 1
    errors = np.sqrt(left / degrees * np.sum(inverse**2, axis=1)) / spread
    slopes = slopes / spread
    return _fit(
        slopes,
        errors,
        intercept=center - float(slopes @ mean),
        r2=1 - left / whole if whole > 0 else None,
        rows=rows,
        tail=lambda t: _student(t, degrees),
    )


@one_thread()
def logit(y: Floats, columns: Sequence[Floats]) -> Fit:
    """Fit a logistic regression with an intercept, by maximum likelihood; y is 0 or 1, and p-values
    are normal ones.
    """
    y, x = _complete(y, columns)
    rows, width = x.shape
    standard = (
        _standardize(x) if rows > width + 1 and set(np.unique(y).tolist()) == {0.0, 1.0} else None
    )
    found = None if standard is None else _likeliest(y, standard[0])
    if standard is None or found is None:
        return _nothing(rows, width)
    (z, mean, spread), (beta, curvature) = standard, found
    variances = np.diag(np.linalg.inv(curvature))
    errors = np.sqrt(variances[1:]) / spread
    slopes = beta[1:] / spread
    share = float(y.mean())
    flat = rows * (share * math.log(share) + (1 - share) * math.log(1 - share))
    score = beta[0] + z @ beta[1:]
    return _fit(
        slopes,
        errors,
        intercept=float(beta[0] - slopes @ mean),
        r2=1 - _log_likelihood(y, score) / flat,
        rows=rows,
        tail=lambda z: math.erfc(abs(z) / math.sqrt(2)),
        accuracy=float(np.mean((score > 0) == (y > 0.5))),
    )


def spearman(x: Floats, y: Floats) -> Number:
    """Return Pearson's correlation of ranks; equal values share the mean of their ranks."""
    x, rest = _complete(x, (y,))
    if len(x) < 2:
        return None
    a = _ranks(x)
    b = _ranks(rest[:, 0])
    a = a - a.mean()
    b = b - b.mean()
    both = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / both if both > 0 else None


def _complete(y: Floats, columns: Sequence[Floats]) -> tuple[Floats, Floats]:
    x = np.column_stack(columns)
    whole = np.isfinite(y) & np.isfinite(x).all(axis=1)
    return y[whole], x[whole]


def _standardize(x: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Return columns with mean 0 and norm √n, their means and spreads; None where one follows from
    the others.
    """
    mean = x.mean(axis=0)
    spread = x.std(axis=0)
    if not (spread > _DEPENDENT * (1 + np.abs(mean))).all():
        return None
    z = (x - mean) / spread
    singular = np.linalg.svd(z, compute_uv=False)
    return (z, mean, spread) if singular[-1] > _DEPENDENT * singular[0] else None


def _likeliest(y: Floats, z: Floats) -> tuple[Floats, Floats] | None:
    """Maximize the likelihood by Newton's method with halved steps; None where it has no highest
    point (separated classes).
    """
    design = np.column_stack([np.ones(len(y)), z])
    share = float(y.mean())
    beta = np.zeros(design.shape[1])
    beta[0] = math.log(share / (1 - share))
    height = _log_likelihood(y, design @ beta)
    for _ in range(_STEPS):
        chance, curvature = _slope(design, beta)
        if np.linalg.eigvalsh(curvature)[0] < _SEPARATED * len(y) * min(share, 1 - share):
            return None
        step = np.linalg.solve(curvature, design.T @ (y - chance))
        while (reached := _log_likelihood(y, design @ (beta + step))) < height - 1e-12 * abs(
            height
        ):
            step = step / 2
        beta = beta + step
        gain = reached - height
        height = reached
        if gain <= _CONVERGED * abs(height):
            return beta, _slope(design, beta)[1]
    return None


def _slope(design: Floats, beta: Floats) -> tuple[Floats, Floats]:
    """Return each row's probability, and the curvature of the likelihood."""
    chance = 0.5 * (1 + np.tanh(design @ beta / 2))
    return chance, design.T @ (design * (chance * (1 - chance))[:, None])


def _log_likelihood(y: Floats, score: Floats) -> float:
    return float(np.sum(y * score - np.logaddexp(0, score)))


def _fit(
    slopes: Floats,
    errors: Floats,
    *,
    intercept: float,
    r2: Number,
    rows: int,
    tail: Callable[[float], float],
    accuracy: Number = None,
) -> Fit:
    """Return the fit; where its error is 0, t and p exist only for slopes that are not 0."""
    t = [
        _ratio(slope, error) for slope, error in zip(slopes.tolist(), errors.tolist(), strict=True)
    ]
    return Fit(
        coefficient=tuple(slopes.tolist()),
        error=tuple(errors.tolist()),
        t=tuple(t),
        p=tuple(None if each is None else tail(each) for each in t),
        intercept=intercept,
        r2=r2,
        rows=rows,
        accuracy=accuracy,
    )


def _ratio(slope: float, error: float) -> Number:
    if error > 0:
        return slope / error
    return math.copysign(math.inf, slope) if slope else None


def _student(t: float, degrees: int) -> float:
    """Return the chance of a t as far from 0 as this one."""
    from scipy.special import stdtr

    return float(2 * stdtr(degrees, -abs(t)))


def _nothing(rows: int, width: int) -> Fit:
    none = (None,) * width
    return Fit(coefficient=none, error=none, t=none, p=none, intercept=None, r2=None, rows=rows)


def _ranks(values: Floats) -> Floats:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place])
