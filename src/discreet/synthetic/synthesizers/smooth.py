"""Noisy histograms made plausible: free post-processing, worth most where noise is large.

Ordered columns: smooth curves beside their spikes, and the posterior mean over all ways to cut the
axis into runs of equal counts, each run empty or not [exact by forward and backward sums, as in
Fearnhead 2006], mixed by estimated risk. Listed values: the posterior mean under the prior that
explains all cells of the column best [nonparametric empirical Bayes: Kiefer, Wolfowitz 1956].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# prior probabilities that neighbors differ; the data say which
_CUTS = (0.05, 0.15, 0.4, 0.7, 0.95)
_STIFFNESS = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)  # of a smooth curve
_EMPTY = 0.5  # and that a run is empty
# of noise on whole numbers: less is next to never anything, and its square would lose digits
_LEAST = 1e-3
_FAR = 1e6  # standard deviations
_FEW = 25  # cells below which there is no prior to learn


def smoothed(counts: Floats, *, std: float, ordered: bool, total: float) -> Floats:
    """Return counts that are not negative, are plausible together, and add up to `total`."""
    counts, std = np.asarray(counts, dtype=np.float64), max(std, _LEAST)
    found = _order(counts, std) if ordered and len(counts) > 2 else _exchangeable(counts, std)
    if found.sum() <= 0:
        return np.full(len(counts), total / len(counts))
    return np.asarray(found * (total / found.sum()))


def _order(y: Floats, std: float) -> Floats:
    """Smooth ordered counts: mix smooth curves of several stiffnesses and runs by Stein's unbiased
    estimate of their risk.

    Weights exp(-risk / 4 variance) do about as well as the best of them would [Leung, Barron 2006].
    """
    found = [_curve(y, std, stiffness) for stiffness in _STIFFNESS]
    runs, tilt = _runs(y, std), std / 10
    probes = np.array(
        [[1 - 2 * ((cell >> shift) & 1) for cell in range(len(y))] for shift in (0, 1, 2)],
        dtype=float,
    )
    freedom = float(
        np.mean([probe @ (_runs(y + tilt * probe, std) - runs) / tilt for probe in probes])
    )
    found.append((runs, freedom))
    risks = np.array(
        [float(((y - each) ** 2).sum()) / std**2 + 2 * freedom for each, freedom in found]
    )
    weights = np.exp(-(risks - risks.min()) / 4)
    mixed: Floats = np.array([each for each, _ in found]).T @ (weights / weights.sum())
    return np.maximum(mixed, 0.0)


def _curve(y: Floats, std: float, stiffness: float) -> tuple[Floats, float]:
    """Smooth by Whittaker's second differences, and return the degrees of freedom too; cells far
    off their neighbors stay as they are. And its freedom.
    """
    from scipy.linalg import solveh_banded

    n, usual = len(y), _typical(y)
    spike = np.abs(y - usual) > 5 * np.sqrt(std**2 + usual)
    bend = np.diff(np.eye(n), n=2, axis=0)
    matrix = np.diag(1.0 - spike + 1e-9) + stiffness * bend.T @ bend
    bands = np.array([np.pad(np.diag(matrix, band), (band, 0)) for band in (2, 1, 0)])
    smoother = solveh_banded(bands, np.diag(1.0 - spike))
    likely = np.maximum(smoother @ y, 0.0)
    weight = np.where(spike, 1.0, likely / (likely + std**2))
    return likely + weight * (y - likely), float(((1 - weight) * np.diag(smoother) + weight).sum())


def _runs(y: Floats, std: float) -> Floats:
    """Return the posterior mean of every cell, over all cuts and over several prior densities of
    cuts.

    A run's level is 0 or has density 1 / ((level + std) L): all orders of magnitude alike.
    """
    from scipy.special import log_ndtr

    n = len(y)
    span = np.log1p(max(float(y.max()), 2 * std) / std)
    # Even where chances are equal, counts differ by chance: noise around a run's level has that
    # variance too.
    variance = std**2 + _typical(y)
    # a spike beyond is one in any case, and the square of its height would lose digits
    held = np.clip(y, -_FAR * np.sqrt(variance), _FAR * np.sqrt(variance))
    sums = np.concatenate([[0.0], np.cumsum(held / variance)])
    precision = np.concatenate([[0.0], np.cumsum(1 / variance)])
    length = np.arange(n + 1)[None, :] - np.arange(n + 1)[:, None]  # of the run from i to j
    inside = length > 0
    length = np.maximum(length, 1)
    # a difference of large sums may lose all digits: no run is less precise than the worst cell
    precision = np.maximum(precision[None, :] - precision[:, None], 1 / float(variance.max()))
    precision = np.where(inside, precision, 1.0)
    mean, error = (sums[None, :] - sums[:, None]) / precision, 1 / np.sqrt(precision)
    z = mean / error
    tail = log_ndtr(z)
    density = np.sqrt(2 * np.pi) * error / ((np.maximum(mean, 0.0) + std) * span)
    full = z**2 / 2 + np.log(density) + tail  # the level's posterior is a normal cut at 0
    evidence = np.logaddexp(np.log(_EMPTY), np.log1p(-_EMPTY) + full)
    level = mean + error * np.exp(-(z**2) / 2 - 0.5 * np.log(2 * np.pi) - tail)
    level = np.where(inside, np.exp(np.log1p(-_EMPTY) + full - evidence) * level, 0.0)
    found, weights = [], []
    for cut in _CUTS:
        weight = np.where(inside, evidence + np.log(cut) + (length - 1) * np.log1p(-cut), -np.inf)
        posterior, log_evidence = _cut_posterior(weight)
        change = posterior * level
        found.append(np.cumsum(change.sum(axis=1) - change.sum(axis=0))[:n])
        weights.append(log_evidence)
    chances = np.exp(np.array(weights) - max(weights))
    likely = np.maximum(np.array(found).T @ (chances / chances.sum()), 0.0)
    return np.asarray(np.maximum(likely + likely / (likely + std**2) * (y - likely), 0.0))


def _typical(y: Floats) -> Floats:
    """Return medians of nine neighbors: about what a cell is expected to hold, whatever spikes
    there are.
    """
    padded = np.pad(y, 4, mode="edge")
    return np.maximum(np.median(np.lib.stride_tricks.sliding_window_view(padded, 9), axis=1), 0.0)


def _cut_posterior(weight: Floats) -> tuple[Floats, float]:
    """Return the probability that a run goes from i to j, for all i < j, and the log of all cuts'
    weights together.
    """
    n = len(weight) - 1
    forward, backward = np.full(n + 1, -np.inf), np.full(n + 1, -np.inf)
    forward[0] = backward[n] = 0.0
    for j in range(1, n + 1):
        forward[j] = np.logaddexp.reduce(forward[:j] + weight[:j, j])
    for i in range(n - 1, -1, -1):
        backward[i] = np.logaddexp.reduce(weight[i, i + 1 :] + backward[i + 1 :])
    return np.exp(forward[:, None] + weight + backward[None, :] - forward[n]), float(forward[n])


def _exchangeable(y: Floats, std: float) -> Floats:
    if len(y) < _FEW:
        return _shift(y)
    high = max(float(y.max()), std)
    grid = np.concatenate([[0.0], np.geomspace(std / 20, high, 120), np.linspace(std, high, 120)])
    likelihood = np.exp(-(((y[:, None] - grid[None, :]) / std) ** 2) / 2) + 1e-300
    prior = np.full(len(grid), 1 / len(grid))
    for _ in range(200):
        posterior = likelihood * prior
        posterior /= posterior.sum(axis=1, keepdims=True)
        prior = posterior.mean(axis=0)
    return np.asarray(posterior @ grid)


def _shift(y: Floats) -> Floats:
    """Return the nearest counts that are not negative and have the same sum [Norm-Sub, Wang et al.
    2020]. 2020].
    """
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
    """Return the group of every cell: neighbors (ordered) or the rarest (listed) together, until
    each group is large enough.
    """
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
    least = max(least, fair(counts, most))
    groups, current, held = np.zeros(n, dtype=np.int64), 0, 0.0
    for cell in range(n):
        if held >= least or (held > 0 and held + counts[cell] > 1.5 * least and held > least / 2):
            current, held = current + 1, 0.0
        groups[cell] = current
        held += counts[cell]
    if held < least / 2 and current > 0:
        groups[groups == current] = current - 1
    return groups


def fair(counts: Floats, most: int) -> float:
    """Return what each group holds when cells too large to share stand alone and the rest is
    divided evenly.
    """
    alone = 0
    rest = np.sort(counts)[::-1]
    while alone < min(most - 1, len(rest)) and rest[alone] > rest[alone:].sum() / (most - alone):
        alone += 1
    return float(rest[alone:].sum()) / (most - alone)


def _in_order(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number groups by their first cell."""
    _, first, place = np.unique(groups, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[place]
