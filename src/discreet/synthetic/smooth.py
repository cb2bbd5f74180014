"""Noisy histograms made plausible: free post-processing, worth most where noise is large.

Ordered columns: the posterior mean over all ways to cut the axis into runs of equal counts, each run empty or not
[exact by forward and backward sums, as in Fearnhead 2006]. Listed values: the posterior mean under the prior that
explains all cells of the column best [nonparametric empirical Bayes: Kiefer, Wolfowitz 1956; Robbins].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_CUT = 0.3  # prior probability that neighbors differ
_EMPTY = 0.5  # and that a run is empty
_FEW = 6  # cells below which there is no prior to learn


def smoothed(counts: Floats, *, std: float, ordered: bool, total: float) -> Floats:
    """Counts that are not negative, are plausible together, and add up to `total`."""
    counts = np.asarray(counts, dtype=np.float64)
    found = _runs(counts, std) if ordered and len(counts) > 2 else _exchangeable(counts, std)
    if found.sum() <= 0:
        return np.full(len(counts), total / len(counts))
    return found * (total / found.sum())


def _runs(y: Floats, std: float) -> Floats:
    from scipy.special import log_ndtr

    n, top = len(y), max(float(y.max()), 2 * std)
    sums = np.concatenate([[0.0], np.cumsum(y)])
    length = np.arange(n + 1)[None, :] - np.arange(n + 1)[:, None]  # of the run from i to j
    inside = length > 0
    length = np.maximum(length, 1)
    mean, error = (sums[None, :] - sums[:, None]) / length, std / np.sqrt(length)
    z = mean / error
    full = z**2 / 2 + np.log(np.sqrt(2 * np.pi) * error / top) + log_ndtr(z)  # mean uniform on [0, top]
    evidence = np.logaddexp(np.log(_EMPTY), np.log1p(-_EMPTY) + full)
    expected = np.exp(np.log1p(-_EMPTY) + full - evidence) * (
        mean + error * np.exp(-(z**2) / 2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
    )
    weight = np.where(inside, evidence + np.log(_CUT) + (length - 1) * np.log1p(-_CUT), -np.inf)
    forward, backward = np.full(n + 1, -np.inf), np.full(n + 1, -np.inf)
    forward[0] = backward[n] = 0.0
    for j in range(1, n + 1):
        forward[j] = np.logaddexp.reduce(forward[:j] + weight[:j, j])
    for i in range(n - 1, -1, -1):
        backward[i] = np.logaddexp.reduce(weight[i, i + 1 :] + backward[i + 1 :])
    posterior = np.exp(np.where(inside, forward[:, None] + weight + backward[None, :] - forward[n], -np.inf))
    change = posterior * np.where(inside, expected, 0.0)
    return np.maximum(np.cumsum(change.sum(axis=1) - change.sum(axis=0))[:n], 0.0)


def _exchangeable(y: Floats, std: float) -> Floats:
    if len(y) < _FEW:
        return _shifted(y)
    high = max(float(y.max()), std)
    grid = np.concatenate([[0.0], np.geomspace(std / 20, high, 120), np.linspace(std, high, 120)])
    likelihood = np.exp(-(((y[:, None] - grid[None, :]) / std) ** 2) / 2) + 1e-300
    prior = np.full(len(grid), 1 / len(grid))
    for _ in range(200):
        posterior = likelihood * prior
        posterior /= posterior.sum(axis=1, keepdims=True)
        prior = posterior.mean(axis=0)
    return np.asarray(posterior @ grid)


def _shifted(y: Floats) -> Floats:
    """The nearest counts that are not negative and have the same sum [Norm-Sub, Wang et al. 2020]."""
    left, total = y.copy(), y.sum()
    if total <= 0:
        return np.zeros_like(y)
    kept = np.ones(len(y), dtype=bool)
    while True:
        left[kept] = y[kept] + (total - y[kept].sum()) / kept.sum()
        if (left[kept] >= 0).all():
            return np.where(kept, left, 0.0)
        kept &= left >= 0


def in_groups(counts: Floats, *, least: float, most: int, ordered: bool) -> NDArray[np.int64]:
    """Which group every cell is in: neighbors (ordered) or the rarest (listed) together, until each is large enough."""
    n = len(counts)
    if not ordered:
        order = np.argsort(-counts, kind="stable")
        large = int(min((counts >= least).sum(), n, most - 1 if n > most else n))
        groups = np.empty(n, dtype=np.int64)
        rest = order[large:]
        if large and len(rest) > 0 and counts[rest].sum() < least:
            large -= 1  # the rest alone would still be too small
        groups[order] = np.minimum(np.arange(n), large)
        return _in_order(groups)
    least = max(least, counts.sum() / most)
    groups, current, held = np.zeros(n, dtype=np.int64), 0, 0.0
    for cell in range(n):
        if held >= least or (held > 0 and held + counts[cell] > 1.5 * least and held > least / 2):
            current, held = current + 1, 0.0
        groups[cell] = current
        held += counts[cell]
    if held < least / 2 and current > 0:
        groups[groups == current] = current - 1
    return groups


def _in_order(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Groups numbered by their first cell."""
    _, first, place = np.unique(groups, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[place]
