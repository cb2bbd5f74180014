"""Linear equations over sets of records: find whose secret follows from known sums."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.attacks.experiment.dice import Dice
from discreet.attacks.inputs.questions import (
    Row,
)
from discreet.attacks.solve.modular import Factors, Matrix, factor, mod, prime, rational

SAMPLES = 4  # random solutions; with four residues of 23 bits, a false alarm has probability 2^-90


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class System:
    """Distinct equations. Their unknowns are classes of people whom no equation tells apart."""

    rows: NDArray[np.int64]  # the numbers of the questions behind the equations
    matrix: NDArray[np.uint8]  # equations x classes
    sizes: NDArray[np.int64]  # the number of people in each class
    first: NDArray[np.int64]  # one person of each class
    classes: NDArray[np.int64]  # the class of each person, or -1 for those in no question

    @classmethod
    def of(cls, rows: list[Row]) -> System:
        members = np.array([row.members for row in rows], dtype=np.uint8)
        packed = np.packbits(members, axis=1)
        _, kept = np.unique(packed, axis=0, return_index=True)
        kept = np.sort(kept)
        members = members[kept]
        patterns = np.packbits(members.T, axis=1)
        asked = members.any(axis=0)
        _, first, inverse, sizes = np.unique(
            patterns[asked], axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        classes = np.full(members.shape[1], -1)
        classes[asked] = inverse.reshape(-1)
        first = np.flatnonzero(asked)[first]
        return cls(rows=kept, matrix=members[:, first], sizes=sizes, first=first, classes=classes)

    def exposed(
        self, smallest: int
    ) -> tuple[list[tuple[int, dict[int, Fraction] | None]], list[tuple[int, ...]]]:
        """Return the exposed people and the exposed small groups. A person comes with the
        combination of equations that exposes them, or None if its weights are not small numbers.
        """
        single: dict[int, dict[int, Fraction] | None] = {}
        groups: dict[tuple[int, ...], None] = {}
        for _ in range(
            2
        ):  # with two random primes: what is zero by chance for one is not for the other
            solved = solve(self.matrix, Dice())
            zero = np.flatnonzero(~solved.solutions.any(axis=1))
            fresh = np.array([c for c in zero if c not in single], dtype=np.int64)
            single.update(zip(fresh.tolist(), solved.chains(fresh, self.matrix), strict=True))
            groups.update(dict.fromkeys(self._proportional(solved, smallest)))
        groups.update(
            dict.fromkeys(self._people(c) for c in single if 1 < self.sizes[c] <= smallest)
        )
        people = [
            (int(self.first[c]), self._renumber(chain))
            for c, chain in single.items()
            if self.sizes[c] == 1
        ]
        return people, [group for group in groups if group]

    def _proportional(self, solved: Sketch, smallest: int) -> list[tuple[int, ...]]:
        """Return groups of people whose entries are proportional in every solution: if one person's
        secret is known, so are the others'.
        """
        if smallest < 2:
            return []
        nonzero = np.flatnonzero((solved.solutions[:, 0] != 0) & (self.sizes == 1))
        if not len(nonzero):
            return []
        entries = solved.solutions[nonzero]
        inverse = np.array(
            [pow(int(v), -1, solved.factored.p) for v in entries[:, 0]], dtype=np.float64
        )
        ratios = mod(entries[:, 1:] * inverse[:, None], solved.factored.p)
        _, where, counts = np.unique(ratios, axis=0, return_inverse=True, return_counts=True)
        tied = np.split(np.argsort(where.reshape(-1), kind="stable"), np.cumsum(counts)[:-1])
        return [
            tuple(sorted(self.first[nonzero[group]].tolist())) for group in tied if len(group) > 1
        ]

    def _people(self, c: int) -> tuple[int, ...]:
        return tuple(np.flatnonzero(self.classes == c).tolist())

    def _renumber(self, chain: dict[int, Fraction] | None) -> dict[int, Fraction] | None:
        return None if chain is None else {int(self.rows[i]): weight for i, weight in chain.items()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sketch:
    """A random sketch of the equations' matrix with its factors, and random solutions of the
    homogeneous equations.
    """

    sketch: Any  # sparse, classes x width
    factored: Factors
    solutions: Matrix

    def chains(
        self, classes: NDArray[np.int64], matrix: NDArray[np.uint8]
    ) -> list[dict[int, Fraction] | None]:
        """Return for each class the equations whose combination is this class alone. The weights
        are checked in whole numbers.
        """
        if not len(classes):
            return []
        wanted = self.sketch[classes][:, self.factored.columns].toarray()
        residues = self.factored.solve_left(wanted)
        return [self._chain(c, row, matrix) for c, row in zip(classes, residues, strict=True)]

    def _chain(
        self, c: int, residues: Matrix, matrix: NDArray[np.uint8]
    ) -> dict[int, Fraction] | None:
        used = np.flatnonzero(residues)
        weights = [rational(int(residues[k]), self.factored.p) for k in used]
        chain = {
            int(self.factored.rows[k]): w
            for k, w in zip(used, weights, strict=True)
            if w is not None
        }
        if len(chain) < len(used):
            return None
        scale = np.lcm.reduce([w.denominator for w in chain.values()])
        whole = np.array([int(w * scale) for w in chain.values()], dtype=np.int64)
        combined = whole @ matrix[list(chain)].astype(np.int64)
        expected = np.zeros(matrix.shape[1], dtype=np.int64)
        expected[c] = scale
        return chain if (combined == expected).all() else None


def solve(matrix: NDArray[np.uint8], dice: Dice) -> Sketch:
    """Find random solutions z of matrix z = 0: draw a random y, and subtract a vector with the same
    sums, which a sketch of the matrix finds.

    The sketch mixes the columns, with four random weights each, into a few more columns than there
    are equations. It almost always keeps the rank of the matrix. The check at the end of the loop
    notices if it does not, and tries again.
    """
    from scipy.sparse import csr_array

    m, n = matrix.shape
    while True:
        p = prime(dice)
        width = min(m + m // 4, n) + 8
        weights = 1 + np.floor(dice.uniform(4 * n) * (p - 1))
        sketch = csr_array(
            (weights, dice.below(width, 4 * n), 4 * np.arange(n + 1)), shape=(n, width)
        )
        sketch.sum_duplicates()
        factored = factor(_times(matrix, sketch, p), p)
        drawn = np.floor(dice.uniform(n, SAMPLES) * p)
        seen = factored.solve(_times(matrix[factored.rows], drawn, p))
        solutions = mod(drawn - sketch[:, factored.columns] @ seen, p)
        if not _times(matrix, solutions, p).any():
            return Sketch(sketch=sketch, factored=factored, solutions=solutions)


def _times(matrix: NDArray[np.uint8], right: Any, p: int) -> Matrix:
    """Multiply zeros and ones with `right`: exact in floats for up to 2^28 columns."""
    total = np.zeros((len(matrix), right.shape[1]))
    for start in range(0, matrix.shape[1], 8192):
        total += (
            right[start : start + 8192].T @ matrix[:, start : start + 8192].T.astype(np.float64)
        ).T
    return mod(total, p)
