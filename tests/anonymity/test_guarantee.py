"""l and t by their definitions."""

from __future__ import annotations

from math import log

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from discreet.anonymity import guarantee as judge
from discreet.anonymity.guarantee import Closeness, Diversity, Guarantee
from discreet.anonymity.hierarchies import Hierarchy, Tree, build

VALUES = ("a", "b", "c", "d", "e")
TREE: Hierarchy = build(
    Tree(branches={"one": {"ab": ("a", "b"), "c": ()}, "two": ("d", "e")}),
    "s",
    pa.array(list(VALUES)),
)
COUNTS = st.lists(
    st.lists(st.integers(0, 6), min_size=5, max_size=5).filter(sum), min_size=1, max_size=6
).map(lambda rows: np.array(rows, dtype=float))


def moved(p: np.ndarray, q: np.ndarray, ground: np.ndarray) -> float:
    """The earth mover's distance, as the linear program it is."""
    n = len(p)
    flows_out = np.kron(np.eye(n), np.ones(n))
    flows_in = np.kron(np.ones(n), np.eye(n))
    found = linprog(
        ground.ravel(),
        A_eq=np.vstack([flows_out, flows_in]),
        b_eq=np.concatenate([p, q]),
        bounds=(0, None),
    )
    return float(found.fun)


def tree_distance(a: int, b: int) -> float:
    common = next(level for level, nodes in enumerate(TREE.nodes) if nodes[a] == nodes[b])
    return common / TREE.height


GROUNDS = {
    "equal": np.array([[float(a != b) for b in range(5)] for a in range(5)]),
    "ordered": np.array([[abs(a - b) / 4 for b in range(5)] for a in range(5)]),
    "hierarchical": np.array([[tree_distance(a, b) for b in range(5)] for a in range(5)]),
}


@pytest.mark.parametrize("ground", ["equal", "ordered", "hierarchical"])
@settings(max_examples=20, deadline=None)
@given(counts=COUNTS)
def test_closeness_is_the_earth_movers_distance(counts: np.ndarray, ground: judge.Ground) -> None:
    whole = counts.sum(axis=0)
    found = Closeness(t=0.5, ground=ground, whole=whole, tree=TREE).distance(counts)
    for row, distance in zip(counts, found, strict=True):
        by_definition = moved(row / row.sum(), whole / whole.sum(), GROUNDS[ground])
        assert distance == pytest.approx(by_definition, abs=1e-7)


@given(counts=COUNTS, l=st.integers(2, 4), c=st.floats(0.5, 5))
def test_diversity_is_what_its_definition_says(counts: np.ndarray, l: int, c: float) -> None:  # noqa: E741
    distinct = Diversity(kind="distinct", l=l).holds(counts)
    entropy = Diversity(kind="entropy", l=l).holds(counts)
    recursive = Diversity(kind="recursive", l=l, c=c).holds(counts)
    for index, row in enumerate(counts):
        shares = sorted((row[row > 0] / row.sum()).tolist(), reverse=True)
        assert distinct[index] == (len(shares) >= l)
        assert entropy[index] == (-sum(p * log(p) for p in shares) >= log(l) - 1e-9)
        falling = sorted(row.tolist(), reverse=True)
        assert recursive[index] == (falling[0] < c * sum(falling[l - 1 :]))


@given(counts=COUNTS, seed=st.integers(1, 9))
def test_judging_classes_is_judging_their_rows(counts: np.ndarray, seed: int) -> None:
    classes, sensitive = np.nonzero(counts)
    weights = counts[classes, sensitive].astype(np.int64)
    promise = Guarantee(
        k=seed,
        diversity=Diversity(kind="distinct", l=2),
        closeness=Closeness(t=0.4, ground="equal", whole=counts.sum(axis=0)),
    )
    found = promise.of_classes(classes, len(counts), sensitive, weights)
    assert found.tolist() == promise.holds(counts).tolist()


def test_blocks_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "_CELLS", 7)
    classes, sensitive = np.array([4, 0, 2, 2, 1, 3, 0]), np.array([0, 1, 2, 2, 0, 1, 1])
    weights = np.arange(1, 8)
    whole = np.zeros((5, 3))
    np.add.at(whole, (classes, sensitive), weights)
    parts = [block for _, block in judge.blocks(classes, 5, sensitive, weights, 3)]
    assert len(parts) > 1
    assert np.vstack(parts).tolist() == whole.tolist()


@pytest.mark.parametrize("kind", ["distinct", "entropy", "recursive"])
@settings(max_examples=40, deadline=None)
@given(counts=COUNTS)
def test_a_union_of_good_classes_is_good(counts: np.ndarray, kind: judge.DiversityKind) -> None:
    """What lets coarsening only help: monotone pruning rests on it."""
    promise = Guarantee(
        k=3,
        diversity=Diversity(kind=kind, l=2, c=2.0),
        closeness=Closeness(t=0.3, ground="ordered", whole=counts.sum(axis=0)),
    )
    good = counts[promise.holds(counts)]
    if len(good):
        assert promise.holds(good.sum(axis=0)[None, :])[0]
