"""Junction trees, propagation and estimation against brute force, on every small shape."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from discreet.synthetic.synthesizers.graphical import (
    FitTarget,
    Model,
    Tree,
    cells_needed,
    estimate,
    junction_tree,
    propagate,
    summed,
)

SIZES = (2, 3, 2, 4, 3)
ALL = tuple(range(5))
SHAPES = {
    "nothing": [],
    "one column": [(2,)],
    "chain": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "star": [(0, 1), (0, 2), (0, 3), (0, 4)],
    "disconnected": [(0, 1), (3, 4)],
    "cycle of four": [(0, 1), (1, 2), (2, 3), (0, 3)],
    "cycle of five": [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)],
    "two cycles": [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4)],
    "nested": [(0, 1), (0, 1, 2), (2, 3), (2,)],
    "twice the same": [(0, 1), (0, 1), (1, 2), (1, 2)],
    "everything": [ALL],
    "all pairs": list(combinations(ALL, 2)),
}


def whole(tree: Tree, potentials: list[np.ndarray]) -> tuple[np.ndarray, float]:
    """The full joint table, and log Z."""
    total = np.zeros(SIZES)
    for clique, potential in zip(tree.cliques, potentials, strict=True):
        total = total + potential.reshape([SIZES[c] if c in clique else 1 for c in ALL])
    z = np.exp(total).sum()
    return np.exp(total) / z, float(np.log(z))


def drawn(tree: Tree) -> list[np.ndarray]:
    rng = np.random.default_rng()
    return [2 * rng.normal(size=tree.shape(clique)) for clique in tree.cliques]


@pytest.mark.parametrize("sets", SHAPES.values(), ids=SHAPES)
def test_a_junction_tree_holds_every_set_and_runs_through_its_intersections(
    sets: list[tuple[int, ...]],
) -> None:
    tree = junction_tree(SIZES, sets)
    assert all(any(set(each) <= set(clique) for clique in tree.cliques) for each in sets)
    assert {column for clique in tree.cliques for column in clique} == set(ALL)
    for place, clique in enumerate(tree.cliques[1:], start=1):
        earlier = {column for other in tree.cliques[:place] for column in other}
        assert set(clique) & earlier <= set(tree.cliques[tree.parents[place]])
    assert tree.cells == cells_needed(SIZES, sets)


@pytest.mark.parametrize("sets", SHAPES.values(), ids=SHAPES)
def test_propagation_and_marginals_are_those_of_the_joint_table(
    sets: list[tuple[int, ...]],
) -> None:
    tree = junction_tree(SIZES, sets)
    potentials = drawn(tree)
    joint, log_z = whole(tree, potentials)
    tables, found = propagate(tree, potentials)
    assert found == pytest.approx(log_z)
    for clique, table in zip(tree.cliques, tables, strict=True):
        np.testing.assert_allclose(table, summed(joint, ALL, clique), atol=1e-12)
    model = Model(tree=tree, tables=tuple(tables), total=1.0)
    for count in range(6):
        for columns in combinations(ALL, count):
            np.testing.assert_allclose(
                model.marginal(columns), summed(joint, ALL, columns), atol=1e-12
            )


@pytest.mark.parametrize(
    "sets", [s for s in SHAPES.values() if s], ids=[n for n, s in SHAPES.items() if s]
)
def test_estimation_without_noise_finds_the_model_that_made_the_counts(
    sets: list[tuple[int, ...]],
) -> None:
    """The joint is in the model's family, so the maximum-entropy fit of its marginals is the joint
    itself.
    """
    tree = junction_tree(SIZES, sets)
    rng = np.random.default_rng()
    pairs = [
        FitTarget(
            columns=s, cells=np.arange(tree.cells_of(s)), counts=np.zeros(tree.cells_of(s)), std=1.0
        )
        for s in sets
    ]
    joint = np.zeros(SIZES)
    for each in pairs:
        joint = joint + rng.normal(size=[SIZES[c] if c in each.columns else 1 for c in ALL])
    joint = np.exp(joint) / np.exp(joint).sum()
    targets = [
        FitTarget(
            columns=each.columns,
            cells=each.cells,
            counts=1e4 * summed(joint, ALL, each.columns).ravel(),
            std=1.0,
        )
        for each in pairs
    ]
    fit = estimate(SIZES, targets, total=1e4, prior=0.0, steps=3000, tolerance=1e-7)
    for columns in combinations(ALL, 2):
        np.testing.assert_allclose(
            fit.model.marginal(columns), summed(joint, ALL, columns), atol=2e-4
        )


def test_grouped_targets_are_fitted_as_groups() -> None:
    # of columns 0 and 3: the second in two halves, the first ignored
    cells = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    counts = np.array([300.0, 700.0])
    fit = estimate(
        SIZES,
        [FitTarget(columns=(0, 3), cells=cells, counts=counts, std=1.0)],
        total=1000,
        prior=0.0,
    )
    np.testing.assert_allclose(fit.model.marginal((3,)), [0.15, 0.15, 0.35, 0.35], atol=1e-3)
    np.testing.assert_allclose(fit.model.marginal((0,)), [0.5, 0.5], atol=1e-3)


def test_the_gradient_is_the_slope() -> None:
    """With a prior, the optimum satisfies: counts - y + prior sigma^2 x = 0 for the model's own
    parameters.
    """
    counts = np.array([500.0, 100.0, 50.0, 250.0, 0.0, 100.0])
    target = FitTarget(columns=(0, 1), cells=np.arange(6), counts=counts, std=10.0)
    fit = estimate(SIZES, [target], total=1000, prior=0.5, steps=500, tolerance=1e-9)
    left = fit.model.marginal((0, 1)).ravel() * 1000 - counts + 0.5 * 100 * fit.parameters[0]
    np.testing.assert_allclose(left, 0, atol=1e-3)


def test_more_noise_is_trusted_less() -> None:
    """Two contradicting counts of the same pair: the fit lies nearer to the one with less noise."""
    precise, vague = np.array([800.0, 200.0]), np.array([200.0, 800.0])
    targets = [
        FitTarget(columns=(0,), cells=np.arange(2), counts=precise, std=5.0),
        FitTarget(columns=(0,), cells=np.arange(2), counts=vague, std=50.0),
    ]
    fit = estimate(SIZES, targets, total=1000, prior=1.0, steps=500, tolerance=1e-8)
    share = fit.model.marginal((0,))[0]
    assert 0.75 < share < 0.8


def test_a_fit_of_few_rows_and_little_noise_stays_finite() -> None:
    """Noisy counts that contradict one another, some below none, in a column that is nearly empty
    elsewhere.
    """
    dice = np.random.default_rng(8)
    for _ in range(40):
        sizes = [3, 8, 12, 8, 2, 8]
        targets = []
        for _ in range(12):
            chosen = dice.choice(6, size=int(dice.integers(1, 4)), replace=False).tolist()
            columns = tuple(sorted(chosen))
            cells = int(np.prod([sizes[column] for column in columns]))
            counts = np.maximum(dice.normal(0, 1, cells), -3) * 2
            counts[dice.integers(0, cells)] += 110
            targets.append(
                FitTarget(columns=columns, cells=np.arange(cells), counts=counts, std=0.6)
            )
        model = estimate(sizes, targets, total=110.0, prior=0.003, steps=60, tolerance=1e-3).model
        assert [float(table.sum()) for table in model.tables] == pytest.approx(
            [1.0] * len(model.tables)
        )


@pytest.mark.parametrize("far", [10.0, 700.0, 720.0, 2000.0, 1e6])
def test_messages_of_next_to_nothing_lose_nothing(far: float) -> None:
    """Two columns that say the opposite of a third with all their weight: nothing overflows, each
    table holds all that there is, and log Z is that of the joint table. A fit that could lose weight
    would go where it does, for that lowers log Z.
    """
    tree = junction_tree([2, 2, 2, 2], [(0, 1), (1, 2), (2, 3)])
    against = np.array([[0.0, -far], [0.0, -far]])
    potentials = [against if clique == (1, 2) else -against for clique in tree.cliques]
    with np.errstate(all="raise", under="ignore"):
        tables, log_z = propagate(tree, potentials)
    joint = np.zeros((2, 2, 2, 2))
    for clique, each in zip(tree.cliques, potentials, strict=True):
        joint += each.reshape([2 if column in clique else 1 for column in range(4)])
    assert log_z == pytest.approx(float(np.logaddexp.reduce(joint.ravel())), rel=1e-12)
    chances = np.exp(joint - log_z)
    for clique, table in zip(tree.cliques, tables, strict=True):
        expected = chances.sum(axis=tuple({0, 1, 2, 3} - set(clique)))
        np.testing.assert_allclose(table, expected, atol=1e-6)


def test_a_start_that_is_next_to_impossible_is_left() -> None:
    """Parameters under which two tables contradict each other beyond 300 digits: the fit is
    the same.
    """
    counts = np.array([30.0, 20, 20, 30])
    targets = [
        FitTarget(columns=pair, cells=np.arange(4), counts=counts, std=1.0)
        for pair in ((0, 1), (1, 2))
    ]
    start = [np.array([0.0, -900, 0, -900]), np.array([-900.0, -900, 0, 0])]
    found = estimate([2, 2, 2], targets, total=100.0, prior=0.01, start=start).model
    plain = estimate([2, 2, 2], targets, total=100.0, prior=0.01).model
    assert all(float(table.sum()) == pytest.approx(1) for table in found.tables)
    assert np.abs(found.marginal((0, 2)) - plain.marginal((0, 2))).max() < 0.01
