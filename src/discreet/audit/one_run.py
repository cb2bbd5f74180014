"""Prove a lower bound on ε from a single run, for mechanisms that are too slow to run a million
times [Steinke, Nasr, Jagielski 2023].

Each of many people is put into the data or left out by a fair coin. From the released output alone,
guess for some of them which it was. Under (ε, δ)-DP the number of right guesses among r is, up to a
part that δ bounds, stochastically at most the number of heads among r coins that show heads with
probability e^ε / (1 + e^ε). More right guesses prove a larger ε.

The coins of the people must be independent of each other and of everything else. The guesses may
depend on everything that was released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.errors import UsageError
from discreet.noise import Items, Stream

MOST = 64.0  # the search for ε ends here


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRun:
    """The result of one run: the numbers of people, guesses and right guesses, and the proved ε."""

    people: int
    guessed: int
    right: int
    delta: float
    proved: float
    confidence: float


def one_run(
    included: NDArray[np.bool_],
    scores: NDArray[np.float64],
    *,
    guesses: int,
    delta: float,
    confidence: float,
) -> OneRun:
    """Guess that the people with the highest scores were put in, and as many with the lowest were
    left out.

    `guesses` is the number of all guesses. It must be fixed before anything is released.
    """
    people = len(included)
    if included.shape != scores.shape or included.ndim != 1:
        raise UsageError("An audit needs one coin and one score for each person.")
    if not 2 <= guesses <= people or guesses % 2:
        raise UsageError(
            f"Guesses are an even number from 2 to the {people} people, not {guesses}."
        )
    if not 0.5 <= confidence < 1 or not 0 <= delta < 1:
        raise UsageError(
            "An audit takes a confidence from 0.5 to below 1 and a delta from 0 to below 1."
        )
    # break ties by chance, not by the order of people
    ties = Stream.fresh().words(Items.positions(people), 0)[:, 0]
    order = np.lexsort((ties, scores))
    half = guesses // 2
    right = int(included[order[-half:]].sum() + (~included[order[:half]]).sum())
    proved = epsilon_proved(people, guesses, right, delta=delta, confidence=confidence)
    return OneRun(
        people=people,
        guessed=guesses,
        right=right,
        delta=delta,
        proved=proved,
        confidence=confidence,
    )


def epsilon_proved(
    people: int, guesses: int, right: int, *, delta: float, confidence: float
) -> float:
    """Return the largest ε for which so many right guesses have a probability below 1 -
    confidence.
    """
    low, high = 0.0, MOST
    if probability(people, guesses, right, epsilon=low, delta=delta) > 1 - confidence:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        if probability(people, guesses, right, epsilon=middle, delta=delta) < 1 - confidence:
            low = middle
        else:
            high = middle
    return low


def probability(people: int, guesses: int, right: int, *, epsilon: float, delta: float) -> float:
    """Return an upper bound on the probability of at least so many right guesses under (ε, δ)-DP.

    P(right or more of r coins) + 2 m δ max_i P(fewer than right by at most i) / i, with m people.
    """
    from scipy import stats

    q = 1 / (1 + math.exp(-epsilon))
    tail = float(stats.binom.sf(right - 1, guesses, q))
    if not delta or not right:
        return min(1.0, tail)
    near = np.cumsum(stats.binom.pmf(np.arange(right - 1, -1, -1), guesses, q))
    worst = float((near / np.arange(1, right + 1)).max())
    return min(1.0, tail + 2 * people * delta * worst)
