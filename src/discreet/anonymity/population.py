"""Estimate how many people are unique in the population, from a sample of it.

The sample's class sizes are matched to a model of the population's. Estimates, not bounds: they
assume a simple random sample, and they can be far off when the model does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from discreet.anonymity.source import Floats, Integers
from discreet.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationUniques:
    """Estimated numbers of people who are unique in the population; `chosen` is the one to read."""

    population: int
    zayatz: float
    pitman: float | None
    chosen: float

    def as_json(self) -> dict[str, object]:
        return {
            "population": self.population,
            "zayatz": self.zayatz,
            "pitman": self.pitman,
            "chosen": self.chosen,
        }


def estimate(sizes: Integers, fraction: float) -> PopulationUniques:
    """Estimate from the class sizes of a sample that is this fraction of the population.

    Pitman for small samples (up to a tenth), else Zayatz, after the comparison of Dankar, El Emam,
    Neisa and Roffey (2012), who found that rule to be the most accurate.
    """
    if not 0 < fraction <= 1:
        raise UsageError(f"The sampling fraction must be above 0 and at most 1, not {fraction:g}.")
    found, counts = np.unique(sizes, return_counts=True)
    spectrum = dict(zip(found.tolist(), counts.tolist(), strict=True))
    population = round(int(sizes.sum()) / fraction)
    by_zayatz = zayatz(spectrum, fraction)
    by_pitman = pitman(spectrum, population)
    chosen = by_zayatz if fraction > 0.1 or by_pitman is None else by_pitman
    return PopulationUniques(
        population=population, zayatz=by_zayatz, pitman=by_pitman, chosen=chosen
    )


def zayatz(spectrum: Mapping[int, int], fraction: float) -> float:
    """Estimate by Zayatz (1991): of the sample's uniques, those whose class has one member in the
    population, scaled up.

    A class of i people shows exactly one in the sample with probability i * f * (1 - f)^(i - 1),
    and the population's classes are taken to be as often of size i as the sample's are.
    """
    unique = spectrum.get(1, 0)
    if not unique:
        return 0.0
    sizes = np.array(list(spectrum), dtype=np.float64)
    counts = np.array(list(spectrum.values()), dtype=np.float64)
    showing_one = sizes * fraction * (1 - fraction) ** (sizes - 1)
    alone = unique * fraction / float((counts * showing_one).sum())
    return float(unique * alone / fraction)


def pitman(spectrum: Mapping[int, int], population: int) -> float | None:
    """Estimate by Pitman's sampling formula (Hoshino 2001), fitted by maximum likelihood.

    Its expected number of uniques among N is about Gamma(1 + theta) / Gamma(theta + alpha) *
    N^alpha.

    None where the sample has no uniques or nothing but uniques: then the likelihood has no maximum.
    """
    sizes = np.array(list(spectrum), dtype=np.float64)
    counts = np.array(list(spectrum.values()), dtype=np.float64)
    classes = float(counts.sum())
    rows = float((sizes * counts).sum())
    if not spectrum.get(1) or len(spectrum) == 1:
        return None
    from scipy.optimize import minimize  # a second to import
    from scipy.special import gammaln

    fitted = minimize(
        _unlikelihood,
        x0=np.array([np.log(classes / 2), 0.0]),
        args=(sizes, counts, classes, rows),
        method="Nelder-Mead",
        options={"maxiter": 4000, "xatol": 1e-6, "fatol": 1e-9},
    )
    if not fitted.success or abs(fitted.x[1]) > 12:
        return None
    theta = float(np.exp(fitted.x[0]))
    alpha = float(1 / (1 + np.exp(-fitted.x[1])))
    log_uniques = (
        gammaln(1 + theta) + gammaln(population + theta + alpha - 1) - gammaln(population + theta)
    )
    uniques = float(np.exp(log_uniques - gammaln(theta + alpha) + np.log(population)))
    return min(uniques, float(population))


def _unlikelihood(
    point: Floats, sizes: Floats, counts: Floats, classes: float, rows: float
) -> float:
    """Return minus the log likelihood, in log theta and logit alpha.

    log L = sum over i < classes of log(theta + i alpha) - sum over i < rows of log(theta + i)
            + sum over classes of sum over i < its size of log(i - alpha).
    """
    from scipy.special import gammaln

    theta = np.exp(point[0])
    alpha = 1 / (1 + np.exp(-point[1]))
    if not 1e-8 < alpha < 1 - 1e-8 or not 1e-8 < theta < 1e12:
        return float("inf")
    ratio = theta / alpha
    new_classes = (classes - 1) * np.log(alpha) + gammaln(ratio + classes) - gammaln(ratio + 1)
    all_rows = gammaln(theta + rows) - gammaln(theta + 1)
    members = (counts * (gammaln(sizes - alpha) - gammaln(1 - alpha))).sum()
    return -float(new_classes - all_rows + members)
