"""Graphical models of discrete columns: junction tree, belief propagation, estimation from noisy
marginals.

Estimation finds the most probable table given noisy counts: the entropy (the log of how many tables
look like that) against the squared residuals, each in units of its noise. In the dual that is a
smooth convex problem with one parameter per noisy count,

    F(x) = n log Z(x) - <x, y> + prior / 2 * sum of (sigma (x - c))^2
    dF/dx = model's counts - y + prior sigma^2 (x - c)

which L-BFGS solves in tens of propagations. `prior` 1 takes all tables for equally likely, 0 is the
plain maximum-entropy fit; in between, correlations that noise may have made are shrunk toward
independence. The centers c are 0, or the logarithms of histograms that are trusted before anything
else is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Columns = tuple[int, ...]

_MEMORY = 12  # pairs of steps that L-BFGS remembers


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A junction tree over columns 0, 1, ...: parents stand before their children; columns in a
    clique are sorted.
    """

    sizes: tuple[int, ...]
    cliques: tuple[Columns, ...]
    parents: tuple[int, ...]  # -1 for the root

    @property
    def separators(self) -> tuple[Columns, ...]:
        """The columns that each clique shares with its parent."""
        pairs = zip(self.cliques, self.parents, strict=True)
        return tuple(
            () if p < 0 else tuple(sorted(set(c) & set(self.cliques[p]))) for c, p in pairs
        )

    @property
    def cells(self) -> int:
        return sum(self.cells_of(clique) for clique in self.cliques)

    def cells_of(self, columns: Columns) -> int:
        return math.prod(self.sizes[column] for column in columns)

    def shape(self, columns: Columns) -> tuple[int, ...]:
        return tuple(self.sizes[column] for column in columns)


def junction_tree(sizes: Sequence[int], sets: Iterable[Columns]) -> Tree:
    """Build a junction tree whose cliques hold every set of columns; all columns are in it."""
    cliques = _triangulate(sizes, sets)
    order, parents, left = [0], [-1], set(range(1, len(cliques)))
    # Prim's tree of largest separators has the running intersection property on a chordal graph
    while left:
        pairs = [
            (len(set(cliques[a]) & set(cliques[b])), -a, -place)
            for place, b in enumerate(order)
            for a in left
        ]
        _, clique, place = max(pairs)
        order.append(-clique)
        parents.append(-place)
        left.remove(-clique)
    return Tree(
        sizes=tuple(sizes), cliques=tuple(cliques[i] for i in order), parents=tuple(parents)
    )


def cells_needed(sizes: Sequence[int], sets: Iterable[Columns]) -> int:
    """Return how many cells the cliques of a junction tree for these sets have together."""
    return sum(
        math.prod(sizes[column] for column in clique) for clique in _triangulate(sizes, sets)
    )


def _triangulate(sizes: Sequence[int], sets: Iterable[Columns]) -> list[Columns]:
    """Return the maximal cliques after eliminating, again and again, the column whose neighborhood
    has the fewest cells.

    Sets of columns are the bits of integers here: this is asked for every pair that a model might
    grow by.
    """
    near = [1 << column for column in range(len(sizes))]  # of each column, itself and its neighbors
    for columns in sets:
        together = sum(1 << column for column in set(columns))
        for column in columns:
            near[column] |= together
    weight = [math.log(max(size, 1)) for size in sizes]
    cost = {
        column: math.fsum(weight[other] for other in _bits(near[column]))
        for column in range(len(sizes))
    }
    found: list[int] = []
    while cost:
        column = min(cost, key=lambda c: (cost[c], c))
        clique = near[column]
        del cost[column]
        if not any(clique & other == clique for other in found):
            found.append(clique)
        rest = clique & ~(1 << column)
        for other in _bits(rest):
            joined = (near[other] | rest) & ~(1 << column)
            if joined != near[other]:
                near[other] = joined
                cost[other] = math.fsum(weight[each] for each in _bits(joined))
    return [tuple(_bits(clique)) for clique in found]


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return found


def propagate(tree: Tree, potentials: Sequence[Floats]) -> tuple[list[Floats], float]:
    """Return the probabilities of every clique, and log Z, for log-potentials on the cliques.

    Each clique's weights are taken relative to the largest beside the same values of the separator,
    and messages are logarithms: however far two cliques are apart, no weight is lost.
    """
    separators, logs = tree.separators, list(potentials)
    weights, sums = list(potentials), list(potentials)
    for child in range(len(tree.cliques) - 1, 0, -1):
        parent, separator, clique = tree.parents[child], separators[child], tree.cliques[child]
        beside = tuple(axis for axis, column in enumerate(clique) if column not in separator)
        top = logs[child].max(axis=beside, keepdims=True)
        weights[child] = np.exp(logs[child] - top)
        sums[child] = summed(weights[child], clique, separator)
        message = top.reshape(sums[child].shape) + np.log(sums[child])
        logs[parent] = logs[parent] + _spread(message, separator, tree.cliques[parent])
    most = float(logs[0].max())
    root = np.exp(logs[0] - most)
    whole = float(root.sum())
    tables = [root / whole]
    for child in range(1, len(tree.cliques)):
        parent, separator = tree.parents[child], separators[child]
        factors = summed(tables[parent], tree.cliques[parent], separator) / sums[child]
        tables.append(weights[child] * _spread(factors, separator, tree.cliques[child]))
    return tables, math.log(whole) + most


def summed(table: Floats, columns: Columns, kept: Columns) -> Floats:
    """Return a table summed over all but some of its columns (both sorted)."""
    axes = tuple(axis for axis, column in enumerate(columns) if column not in kept)
    return np.asarray(table.sum(axis=axes)) if axes else table


def _spread(table: Floats, columns: Columns, onto: Columns) -> Floats:
    """Return a table in a shape that broadcasts against one with more columns."""
    sizes = dict(zip(columns, table.shape, strict=True))
    return table.reshape([sizes.get(column, 1) for column in onto])


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A distribution over columns 0, 1, ... as the probability tables of a junction tree's
    cliques.
    """

    tree: Tree
    tables: tuple[Floats, ...]
    total: float

    def marginal(self, columns: Columns) -> Floats:
        """Return probabilities of any (sorted) columns."""
        for clique, table in zip(self.tree.cliques, self.tables, strict=True):
            if set(columns) <= set(clique):
                return summed(table, clique, columns)
        kept, table = self._collect(
            self._root_tree(columns), frozenset(columns), self.tree.separators
        )
        return np.transpose(table, [kept.index(column) for column in columns])

    def _root_tree(self, columns: Columns) -> dict[int, list[int]]:
        """Return the children of every clique in the smallest subtree, grown from the root, that
        holds these columns.
        """
        tree, missing = self.tree, set(columns)
        needed: set[int] = set()
        for clique in range(len(tree.cliques)):
            if missing & set(tree.cliques[clique]):
                missing -= set(tree.cliques[clique])
                while clique >= 0 and clique not in needed:
                    needed.add(clique)
                    clique = tree.parents[clique]
        children: dict[int, list[int]] = {clique: [] for clique in sorted(needed)}
        for clique in sorted(needed):
            if tree.parents[clique] >= 0:
                children[tree.parents[clique]].append(clique)
        return children

    def _collect(
        self,
        children: dict[int, list[int]],
        wanted: frozenset[int],
        separators: tuple[Columns, ...],
        clique: int | None = None,
    ) -> tuple[Columns, Floats]:
        """Return probabilities of what is wanted below a clique, given what it shares with its
        parent.
        """
        if clique is None:
            clique = next(iter(children))
            while len(children[clique]) == 1 and not wanted & set(self.tree.cliques[clique]):
                # nothing above is asked for: start where the paths part
                clique = children[clique][0]
            shared: Columns = ()
        else:
            shared = separators[clique]
        below = [self._collect(children, wanted, separators, child) for child in children[clique]]
        mine = self.tree.cliques[clique]
        used = wanted.union(shared, *(separators[child] for child in children[clique]))
        columns = tuple(column for column in mine if column in used)
        table = summed(self.tables[clique], mine, columns)
        if shared:
            sums = _spread(summed(table, columns, shared), shared, columns)
            table = np.divide(table, sums, out=np.zeros_like(table), where=sums > 0)
        for position, (others, message) in enumerate(below):
            later = {
                c for child in children[clique][position + 1 :] for c in self.tree.separators[child]
            }
            keep = tuple(
                c
                for c in dict.fromkeys((*columns, *others))
                if c in wanted or c in shared or c in later
            )
            table, columns = _einsum(table, columns, message, others, keep), keep
        keep = tuple(column for column in columns if column in wanted or column in shared)
        return keep, _einsum(table, columns, keep)


def _einsum(*operands: Any) -> Floats:
    return np.asarray(np.einsum(*operands), dtype=np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class FitTarget:
    """Noisy counts that a model is to fit: cell `cells[i]` counts the i-th combination of values of
    `columns`. With `scores`, noisy sums instead: each row of scores has a number for every
    combination.
    """

    columns: Columns
    cells: Integers
    counts: Floats
    std: float
    center: Floats | None = None
    scores: Floats | None = None

    @cached_property
    def identical(self) -> bool:
        return len(self.counts) == len(self.cells) and bool(
            (self.cells == np.arange(len(self.cells))).all()
        )

    def seen(self, table: Floats) -> Floats:
        """Return what a table over the columns looks like here."""
        flat = table.ravel()
        if self.scores is not None:
            return np.asarray(self.scores @ flat)
        if self.identical:
            return flat
        return np.asarray(
            np.bincount(self.cells, weights=flat, minlength=len(self.counts)), dtype=np.float64
        )

    def potential(self, parameters: Floats) -> Floats:
        """Return what the parameters of its counts add to the log-potential of each combination."""
        if self.scores is not None:
            return np.asarray(parameters @ self.scores)
        return np.asarray(parameters[self.cells])


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A model, and the parameters that gave it, from which the next estimation may start."""

    model: Model
    parameters: tuple[Floats, ...]


def estimate(
    sizes: Sequence[int],
    targets: Sequence[FitTarget],
    *,
    total: float,
    prior: float,
    start: Sequence[Floats] = (),
    steps: int = 150,
    tolerance: float = 2e-4,
    progress: Callable[[float], None] | None = None,
) -> Fit:
    """Estimate the model of maximum entropy against noise (see above). `start` holds parameters of
    the first targets.
    """
    tree = junction_tree(sizes, [target.columns for target in targets])
    nest = _nest(tree, [target.columns for target in targets])
    places = [nest.sets.index(target.columns) for target in targets]
    ends = np.cumsum([0, *(len(target.counts) for target in targets)])
    noisy = np.concatenate([target.counts for target in targets])
    ridge = np.concatenate([np.full(len(t.counts), prior * t.std**2 + 1e-6) for t in targets])
    center = np.concatenate(
        [np.zeros(len(t.counts)) if t.center is None else t.center for t in targets]
    )

    def value(x: Floats) -> tuple[float, Floats, list[Floats]]:
        shares = [np.zeros(tree.shape(columns)) for columns in nest.sets]
        for target, place, (lo, hi) in zip(targets, places, pairwise(ends), strict=True):
            shares[place] += target.potential(x[lo:hi]).reshape(shares[place].shape)
        tables, log_z = propagate(tree, nest.gathered(tree, shares))
        sums = nest.spread(tree, tables)
        seen = [target.seen(sums[place]) for target, place in zip(targets, places, strict=True)]
        gradient = total * np.concatenate(seen) - noisy + ridge * (x - center)
        return (
            total * log_z - float(x @ noisy) + float(ridge @ (x - center) ** 2) / 2,
            gradient,
            tables,
        )

    first = center.copy()
    for known, lo in zip(start, ends[: len(start)], strict=True):
        first[lo : lo + len(known)] = known
    scale = np.concatenate([_curvature(target, total) for target in targets]) + ridge
    found, tables = _minimize(value, first, scale, steps, tolerance * max(total, 1.0), progress)
    model = Model(tree=tree, tables=tuple(tables), total=total)
    return Fit(model=model, parameters=tuple(found[lo:hi] for lo, hi in pairwise(ends)))


def _curvature(target: FitTarget, total: float) -> Floats:
    """A first guess of how fast the model's counts grow with their parameters."""
    if target.scores is None:
        return np.asarray(np.maximum(target.counts, 1.0), dtype=np.float64)
    squares = (target.scores**2).mean(axis=1) * total
    return np.asarray(np.maximum(squares, 1.0), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nest:
    """Sets of columns, larger ones first, each within another set or else within a clique.

    Most targets are parts of others, so that few tables of the size of a clique have to be added up
    or summed.
    """

    sets: tuple[Columns, ...]
    within: tuple[int, ...]  # the place of the other set, or -1
    cliques: tuple[int, ...]

    def gathered(self, tree: Tree, shares: list[Floats]) -> list[Floats]:
        """Return the cliques' potentials from those of the sets."""
        potentials = [np.zeros(tree.shape(clique)) for clique in tree.cliques]
        for place in range(len(self.sets) - 1, -1, -1):
            other, clique = self.within[place], self.cliques[place]
            onto, columns = (
                (potentials[clique], tree.cliques[clique])
                if other < 0
                else (shares[other], self.sets[other])
            )
            onto += _spread(shares[place], self.sets[place], columns)
        return potentials

    def spread(self, tree: Tree, tables: Sequence[Floats]) -> list[Floats]:
        """Return the sets' probabilities from those of the cliques."""
        found: list[Floats] = []
        for columns, other, clique in zip(self.sets, self.within, self.cliques, strict=True):
            source = (
                (tables[clique], tree.cliques[clique])
                if other < 0
                else (found[other], self.sets[other])
            )
            found.append(summed(*source, columns))
        return found


def _nest(tree: Tree, sets: Iterable[Columns]) -> _Nest:
    """Put each set into the smallest that holds it."""
    ordered = sorted(set(sets), key=lambda columns: (-len(columns), columns))
    within, cliques = [], []
    for place, columns in enumerate(ordered):
        others = [other for other in range(place) if set(columns) < set(ordered[other])]
        within.append(min(others, key=lambda other: tree.cells_of(ordered[other]), default=-1))
        able = [i for i, clique in enumerate(tree.cliques) if set(columns) <= set(clique)]
        cliques.append(min(able, key=lambda i: tree.cells_of(tree.cliques[i])))
    return _Nest(sets=tuple(ordered), within=tuple(within), cliques=tuple(cliques))


def _minimize(
    value: Callable[[Floats], tuple[float, Floats, list[Floats]]],
    x: Floats,
    scale: Floats,
    steps: int,
    enough: float,
    progress: Callable[[float], None] | None,
) -> tuple[Floats, list[Floats]]:
    """Minimize by L-BFGS whose first guess of the curvature is `scale`; stop when all residuals
    together are small.
    """
    current, gradient, tables = value(x)
    history: list[tuple[Floats, Floats, float]] = []
    for step in range(steps):
        if progress is not None:
            progress(step / steps)
        if float(np.abs(gradient).sum()) <= enough:
            break
        direction = _direction(gradient, history, scale)
        slope, length = float(gradient @ direction), 1.0
        for _ in range(30):
            there, its_gradient, its_tables = value(x + length * direction)
            finite = np.isfinite(there) and bool(np.isfinite(its_gradient).all())
            if finite and there <= current + 1e-4 * length * slope:
                break
            length /= 2
        else:
            break
        moved, turned = length * direction, its_gradient - gradient
        curvature = float(moved @ turned)
        if curvature > 1e-12 * float(turned @ (turned / scale)):
            history = [*history[-_MEMORY + 1 :], (moved, turned, 1 / curvature)]
        x, current, gradient, tables = x + moved, there, its_gradient, its_tables
    return x, tables


def _direction(
    gradient: Floats, history: Sequence[tuple[Floats, Floats, float]], scale: Floats
) -> Floats:
    q, factors = gradient.copy(), []
    for moved, turned, inverse in reversed(history):
        factor = inverse * float(moved @ q)
        factors.append(factor)
        q -= factor * turned
    last = 1.0
    if history:
        moved, turned, inverse = history[-1]
        last = 1 / (inverse * float(turned @ (turned / scale)))
    q *= last / scale
    for (moved, turned, inverse), factor in zip(history, reversed(factors), strict=True):
        q += (factor - inverse * float(turned @ q)) * moved
    return -q
