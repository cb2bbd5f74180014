"""Find people whose value follows from exact sums and from its range: 0 or 1, or a number in a
public range.

A count of 0, or of everybody in the group, tells everybody in it; so do sums whose differences
leave no other choice. A person is exposed if and only if every assignment of allowed values that
fits all sums gives them the same value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_ENTRIES = 1_000_000  # of the equations' matrix, in one integer program
MOST_CELLS = 4_000_000  # sums x people: beyond, only sums at an end are found
MOST_KINDS = 64  # of people, by what several counts say of them
MOST_STEPS = 1_000_000  # of a range of whole numbers
NEAR = 1e-6  # numbers this near, in units of the range, are equal
ROUNDS = 100  # of passing bounds on, which may approach its end for ever

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sums:
    """Sums (each a row of factors, one for each person) of one value of each person, and the
    value's range.
    """

    factors: Flags | Floats
    values: Floats
    low: float
    high: float

    @property
    def whole(self) -> bool:
        """True if each value is 0 or 1, with nothing between."""
        return self.low == 0 and self.high == 1 and bool(np.isin(self.values, (0, 1)).all())

    @property
    def asked(self) -> Flags:
        return np.asarray((self.factors != 0).any(axis=0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pins:
    """For each of several sums, the people with one possible value; `proved` if all others have
    more than one.
    """

    people: tuple[Flags, ...]
    proved: bool


def pin(sums: Sequence[Sums], *, seconds: float) -> Pins:
    """Find people whose value follows; solve yes-or-no sums about one secret together, each other
    sum alone.
    """
    until = monotonic() + seconds
    found: dict[int, Flags] = {}
    proved = len(sums) == 1 or all(each.whole for each in sums)  # together they might tell more
    if sum(each.factors.size for each in sums) > MOST_CELLS:
        return Pins(people=tuple(_at_an_end(each) for each in sums), proved=False)
    counts = [at for at, each in enumerate(sums) if each.whole]
    if counts:
        flags, sure = _among_counts([sums[at] for at in counts], until)
        found |= dict(zip(counts, flags, strict=True))
        proved = proved and sure
    for at, each in enumerate(sums):
        if at not in found:
            found[at], sure = _in_range(each, until)
            proved = proved and sure
    return Pins(people=tuple(found[at] for at in range(len(sums))), proved=proved)


def _at_an_end(sums: Sums) -> Flags:
    """Flag everybody in a sum that is at one end by itself; cheap enough for very many sums."""
    found = np.zeros(len(sums.values), dtype=bool)
    if sums.low == sums.high:
        return found
    for factors in sums.factors:
        inside = factors != 0
        values = sums.values[inside]
        if (factors >= 0).all() and ((values == sums.low).all() or (values == sums.high).all()):
            found |= inside
    return found


def _among_counts(counts: Sequence[Sums], until: float) -> tuple[list[Flags], bool]:
    """Give everybody one kind, a vector of yes and no for each count, and ask how many of a class
    are of each kind.

    Kinds that occur in the data are possible, and where all say the same to a count, also one that
    says the opposite.
    """
    vectors = np.array([each.values for each in counts]).T
    kinds = np.unique(vectors, axis=0)
    for column in np.flatnonzero((kinds == kinds[0]).all(axis=0)):
        other = np.zeros(kinds.shape[1])
        other[column] = 1 - kinds[0, column]
        kinds = np.vstack([kinds, other])
    kinds = np.unique(kinds, axis=0)
    if len(counts) > 1 and len(kinds) > MOST_KINDS:  # too many to hold together: each by itself
        alone = [_among_counts([each], until) for each in counts]
        return [flags[0] for flags, _ in alone], False
    classes, first, sizes = _classes(np.vstack([each.factors for each in counts]))
    equations = np.vstack([each.factors[:, first] for each in counts])
    says = np.vstack(
        [np.tile(kinds[:, at], (len(each.factors), 1)) for at, each in enumerate(counts)]
    )
    matrix = _spread(equations, says)
    truth = np.zeros((len(sizes), len(kinds)))
    kind_of = (vectors[:, None, :] == kinds[None]).all(axis=2).argmax(axis=1)
    np.add.at(truth, (classes, kind_of), 1)
    fixed, proved = _fix(matrix, truth.ravel(), np.repeat(sizes, len(kinds)), True, until)
    possible = (truth > 0) | ~fixed.reshape(truth.shape)
    flags = []
    for at in range(len(counts)):
        yes = (possible & (kinds[:, at] == 1)).any(axis=1)
        no = (possible & (kinds[:, at] == 0)).any(axis=1)
        flags.append((yes != no)[classes] & counts[at].asked)
    return flags, proved


def _spread(equations: NDArray[Any], says: Floats) -> Any:
    """Return equations over (class, kind), and below them that the kinds of a class add up to its
    people.
    """
    from scipy.sparse import csr_array, identity, kron, vstack

    classes = equations.shape[1]
    kinds = says.shape[1]
    rows = [
        kron(csr_array(factors[None].astype(np.float64)), csr_array(yes[None]))
        for factors, yes in zip(equations, says, strict=True)
    ]
    found = csr_array(vstack([*rows, kron(identity(classes), np.ones((1, kinds)))]))
    found.eliminate_zeros()
    return found


def _in_range(sums: Sums, until: float) -> tuple[Flags, bool]:
    """Solve for totals of classes within their ranges; pin people who are at an end in all
    solutions.
    """
    from scipy.sparse import csr_array

    spread = sums.high - sums.low
    if spread <= 0:
        return sums.asked & False, False  # what else it might have been is not known
    classes, first, sizes = _classes(sums.factors)
    whole = bool((np.r_[sums.values, sums.low, sums.high] % 1 == 0).all()) and spread <= MOST_STEPS
    unit = 1.0 if whole else spread
    truth: Floats = np.zeros(len(sizes))
    np.add.at(truth, classes, (sums.values - sums.low) / unit)
    most = sizes * spread / unit
    fixed, proved = _fix(
        csr_array(sums.factors[:, first].astype(np.float64)), truth, most, whole, until
    )
    # Between the ends, whole numbers may be pinned where real ones would not be.
    inside = (sizes == 1) & (truth > 0) & (truth < most) & sums.asked[first]
    return fixed[classes] & sums.asked, proved and not (whole and inside.any())


def _classes(factors: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return the class of each person (no sum tells its people apart), one person of each, and its
    size.
    """
    rows = np.ascontiguousarray(factors.T)
    plain = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).reshape(-1)
    _, first, classes, sizes = np.unique(
        plain, return_index=True, return_inverse=True, return_counts=True
    )
    return classes.reshape(-1), first, sizes.astype(np.float64)


def _fix(matrix: Any, truth: Floats, most: Floats, whole: bool, until: float) -> tuple[Flags, bool]:
    """Flag unknowns at the same end of [0, most] in all solutions; also return True if no others
    are, with proof.

    Each round looks for a solution in which as many as possible have left their end. The round that
    finds none proves that the rest cannot.
    """
    ends = (truth <= 0) | (truth >= most)
    fixed = ends & ~_wide(matrix, truth, most)
    left = ends & ~fixed
    while left.any():
        if matrix.nnz + 3 * len(truth) > MOST_ENTRIES or monotonic() > until:
            return fixed, False
        solution = _farthest(matrix, truth, most, np.flatnonzero(left), whole, until)
        if solution is None:
            return fixed, False
        moved = left & (np.abs(solution - truth) > (0.5 if whole else NEAR))
        if not moved.any():
            return fixed | left, True
        left &= ~moved
    return fixed, True


def _wide(matrix: Any, truth: Floats, most: Floats) -> Flags:
    """Flag unknowns that keep a choice after bounds pass from sum to sum: a sum of 0 or a full one
    leaves none.

    This is quick and right, but not all: differences of sums fix more.
    """
    matrix = matrix[matrix.min(axis=1).toarray().reshape(-1) >= 0]  # sums of what is not negative
    total = matrix @ truth
    low = np.zeros(len(truth))
    high = most.copy()
    entries = matrix.tocoo()
    rows = entries.row
    columns = entries.col
    weights = entries.data
    for _ in range(ROUNDS):
        slack = total - matrix @ low  # by how much the unknowns of a sum may rise together
        room = matrix @ high - total
        upper = high.copy()
        lower = low.copy()
        np.minimum.at(upper, columns, low[columns] + slack[rows] / weights)
        np.maximum.at(lower, columns, high[columns] - room[rows] / weights)
        if max((high - upper).max(initial=0), (lower - low).max(initial=0)) < NEAR:
            break
        low, high = lower, upper
    return np.asarray(high - low > NEAR, dtype=bool)


def _farthest(
    matrix: Any, truth: Floats, most: Floats, wanted: NDArray[np.int64], whole: bool, until: float
) -> Floats | None:
    """Return a solution with as many of the wanted as possible off their end; None if none was
    found in time.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, eye, hstack

    n = len(truth)
    k = len(wanted)
    signs = np.where(truth[wanted] <= 0, 1.0, -1.0)
    pick = csr_array((signs, (np.arange(k), wanted)), shape=(k, n))
    total = matrix @ truth
    found = milp(
        np.r_[np.zeros(n), -np.ones(k)],
        integrality=np.r_[np.full(n, int(whole)), np.zeros(k)],
        bounds=Bounds(np.zeros(n + k), np.r_[most, np.ones(k)]),
        constraints=[
            LinearConstraint(hstack([matrix, csr_array((matrix.shape[0], k))]), total, total),
            LinearConstraint(hstack([pick, -eye(k)]), signs * truth[wanted], np.inf),
        ],
        options={"time_limit": max(0.1, until - monotonic()), "mip_rel_gap": 0},
    )
    if found.status != 0:
        return None
    solution = np.asarray(found.x[:n])
    if whole:
        solution = np.round(solution)
        near = np.abs(matrix @ solution - total) <= NEAR * (1 + np.abs(total)) / 1000
        # the solver's roundings must not pass for another choice
        return solution if near.all() else None
    return solution
