"""Undoing the square wave: the distribution of answers from counts of the cells that were sent."""

from __future__ import annotations

from math import exp
from statistics import NormalDist
from typing import Any

import numpy as np

from discreet.errors import UsageError
from discreet.local import answers
from discreet.local.collector.estimate import CONFIDENCE, Counts, Estimate, Floats, Tally
from discreet.local.protocols.window import Window

_ROUNDS = 20_000


def distribution(
    protocol: Any, tally: Tally, *, smooth: bool = False, confidence: float = CONFIDENCE
) -> Estimate:
    """Estimate the frequency of every grid point: unbiased by least squares, and the likeliest."""
    if not tally.n:
        raise UsageError("There are no reports to estimate from.")
    estimates, margins = invert(protocol.window, tally, confidence=confidence)
    patience = 1e-3 * exp(float(protocol.epsilon))
    return Estimate(
        statistic="frequency",
        values=tuple(
            float(answers.number(protocol.domain, step)) for step in range(protocol.domain.size)
        ),
        estimates=estimates,
        margins=margins,
        consistent=likeliest(protocol.window, tally.counts, smooth=smooth, patience=patience),
        n=tally.n,
        epsilon=protocol.epsilon,
    )


def invert(window: Window, tally: Tally, *, confidence: float) -> tuple[Floats, Floats]:
    """Return unbiased frequencies and their margins.

    Over the coins, a reading varies by E[reading^2] - 1 for those who have the value and by
    E[reading^2] for others. The margin takes the answer with the most, since rare reports say
    little about how rare they are; and the widest step between two sums of readings, because
    reports come in whole numbers.
    """
    read = inverse(window)
    estimates = read @ (tally.counts / tally.n)
    spread = ((read**2) @ channel(window) - np.eye(len(read))).max(axis=1)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    step = read.max(axis=1) - read.min(axis=1)
    return estimates, z * np.sqrt(spread / tally.n) + step / tally.n


def channel(window: Window) -> Floats:
    """Return the mass of each cell (row) given each answer (column)."""
    inside = float(window.mass(0, 0))
    outside = float(window.mass(window.cells - 1, 0))
    offset = np.arange(window.cells)[:, None] - np.arange(window.steps + 1)
    return np.where((offset >= 0) & (offset < window.width), inside, outside)


def inverse(window: Window) -> Floats:
    """Return least-squares readings r[v, y] with sum_y r[v, y] P(y

    x) = 1 if v is x, else 0.
    """
    mass = channel(window)
    return np.linalg.solve(mass.T @ mass, mass.T).astype(np.float64)


def likeliest(window: Window, counts: Counts, *, smooth: bool, patience: float) -> Floats:
    """Run expectation maximization until a round gains less than `patience` in log-likelihood [Li
    et al. 2020].

    With `smooth`, each round averages neighbors with weights 1/4, 1/2, 1/4. Sums over windows are
    differences of running sums, so that a round takes as many operations as there are cells.
    """
    inside = float(window.mass(0, 0))
    outside = float(window.mass(window.cells - 1, 0))
    values = window.steps + 1
    cell = np.arange(window.cells)
    first = np.maximum(cell + 1 - window.width, 0)
    last = np.minimum(cell + 1, values)
    found = np.full(values, 1 / values)
    before = -np.inf
    n = counts.sum()
    for _ in range(_ROUNDS):
        running = np.concatenate([[0], np.cumsum(found)])
        expected = outside + (inside - outside) * (running[last] - running[first])
        likelihood = counts @ np.log(expected)
        if likelihood - before < (1e-3 if smooth else patience):
            break
        before = likelihood
        running = np.concatenate([[0], np.cumsum(counts / expected)])
        spoken = running[window.width :] - running[:values]
        found = found * (outside * running[-1] + (inside - outside) * spoken) / n
        if smooth:
            padded = np.concatenate([found[:1], found, found[-1:]])
            found = padded[:-2] / 4 + padded[1:-1] / 2 + padded[2:] / 4
        found /= found.sum()
    return found
