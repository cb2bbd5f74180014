"""Recoding: what is claimed holds, global is the optimum, local is never better than brute force
and never far off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tables import every_vector, groups_of, optimum, patients, people, tightest

from discreet.anonymity.guarantee import Guarantee
from discreet.anonymity.information_loss import MEASURES, Measure, costs, measure_losses
from discreet.anonymity.publish import levels_of
from discreet.anonymity.recoding import recode_global, recode_local
from discreet.anonymity.recoding.demand import Demand, guarantee_of
from discreet.anonymity.recoding.lattice import RowGroups, encode
from discreet.anonymity.recoding.remaining import Remaining

QUASI = ("age", "zip", "job")
PROMISES: list[dict[str, Any]] = [
    {},
    {"l": 2, "sensitive": "ill"},
    {"l": 1.6, "sensitive": "ill", "diversity": "entropy"},
    {"l": 2, "c": 2.0, "sensitive": "ill", "diversity": "recursive"},
    {"t": 0.3, "sensitive": "ill"},
    {"l": 2, "t": 0.4, "sensitive": "ill", "closeness": "ordered"},
]


def tries(number: int) -> settings:
    return settings(max_examples=number, suppress_health_check=list(HealthCheck), deadline=None)


def prepared(
    table: pa.Table, measure: Measure = "ncp", **asked: Any
) -> tuple[RowGroups, Guarantee]:
    demand = Demand(quasi=asked.pop("quasi", QUASI), **asked)
    groups = groups_of(table, demand.watched)
    built = levels_of(demand.quasi, groups, None)
    about = demand.sensitive if demand.watched != demand.quasi else None
    return encode(groups, built, costs(measure, built, groups), about), guarantee_of(
        demand, groups, None
    )


def possible(
    table: pa.Table, promise: dict[str, Any], k: int, measure: Measure = "ncp"
) -> tuple[RowGroups, Guarantee]:
    assume(k <= table.num_rows)
    try:
        return prepared(table, measure, k=k, **promise)
    except ValueError:  # the whole table does not have it
        assume(False)
        raise


def average(table: RowGroups, levels: Any, classes: Any) -> float:
    """The loss by definition: each row at its levels, a suppressed row at `*`."""
    total = 0.0
    for group in range(len(table)):
        vector = (
            [int(level[group]) for level in levels] if classes[group] >= 0 else list(table.heights)
        )
        total += float(table.cost(vector)[group]) * int(table.counts[group])
    return total / int(table.counts.sum())


ASKED = {
    "data": people(),
    "k": st.integers(1, 5),
    "suppressed": st.integers(0, 2),
    "full": st.booleans(),
}


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@tries(12)
@given(**ASKED)
def test_local_recoding_keeps_its_promise(promise: dict[str, Any], **asked: Any) -> None:
    keeps_locally(promise=promise, **asked)


@pytest.mark.slow
@pytest.mark.parametrize("promise", PROMISES, ids=str)
@tries(600)
@given(**ASKED)
def test_local_recoding_keeps_its_promise_many_times(promise: dict[str, Any], **asked: Any) -> None:
    keeps_locally(promise=promise, **asked)


def keeps_locally(
    data: pa.Table, k: int, suppressed: int, full: bool, promise: dict[str, Any]
) -> None:
    table, guarantee = possible(data, promise, k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recode_local, "FULL_LATTICE", 20_000 if full else 0)
        made = recode_local.recode(table, guarantee, most_suppressed=suppressed)
    kept = made.classes >= 0
    assert int(table.counts[~kept].sum()) <= suppressed
    rest = table.select(kept)
    assert guarantee.kept(
        made.classes[kept], int(made.classes.max()) + 1, rest.sensitive, rest.counts
    )
    for number in np.unique(made.classes[kept]):
        members = made.classes == number
        vectors = {
            tuple(int(level[group]) for level in made.levels) for group in np.flatnonzero(members)
        }
        assert vectors == {tuple(tightest(table.select(members)))}


def test_suppression_does_not_leave_a_rest_without_the_guarantee() -> None:
    """Four of eight have the flu and may; after two others are suppressed, too many of the rest
    would have it.
    """
    zips = ["02138"] * 4 + ["02139", "02138", "02138", "02139"]
    data = pa.table(
        {"age": [18] * 8, "zip": zips, "job": ["nurse"] * 8, "ill": ["flu"] * 5 + ["cold"] * 3}
    )
    table, guarantee = prepared(data, k=1, l=2, c=2.0, sensitive="ill", diversity="recursive")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recode_local, "FULL_LATTICE", 0)
        made = recode_local.recode(table, guarantee, most_suppressed=2)
    assert (made.classes >= 0).all()
    assert guarantee.kept(made.classes, int(made.classes.max()) + 1, table.sensitive, table.counts)


@tries(15)
@given(data=people(most=9), k=st.integers(2, 4), diverse=st.booleans())
def test_local_recoding_is_never_better_than_brute_force(
    data: pa.Table, k: int, diverse: bool
) -> None:
    table, guarantee = possible(data, {"l": 2, "sensitive": "ill"} if diverse else {}, k)
    made = recode_local.recode(table, guarantee, most_suppressed=0)
    found, least = average(table, made.levels, made.classes), optimum(table, guarantee)
    assert found >= least - 1e-9


def test_the_lectures_patients_get_the_best_there_is() -> None:
    table, guarantee = prepared(patients(), quasi=("race", "born", "sex"), k=2)
    made = recode_local.recode(table, guarantee, most_suppressed=0)
    assert (made.classes >= 0).all()
    assert average(table, made.levels, made.classes) == pytest.approx(optimum(table, guarantee))


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("promise", PROMISES, ids=str)
@tries(3)
@given(data=people(), k=st.integers(1, 5), suppressed=st.integers(0, 3))
def test_global_recoding_is_the_optimum(
    data: pa.Table, k: int, suppressed: int, promise: dict[str, Any], measure: Measure
) -> None:
    table, guarantee = possible(data, promise, k, measure)
    made = recode_global.recode(table, guarantee, most_suppressed=suppressed, measure=measure)
    view = recode_global._View.of(table, guarantee, measure, suppressed)
    every = [view.look(np.array(vector)) for vector in every_vector(table.heights)]
    least = min(each.loss for each in every)
    chosen = view.look(np.array([int(level[0]) for level in made.levels]))
    assert chosen.loss == pytest.approx(least)
    assert int(table.counts[made.classes < 0].sum()) == chosen.suppressed <= suppressed
    kept = made.classes >= 0
    rest = table.select(kept)
    assert guarantee.kept(
        made.classes[kept], int(made.classes.max()) + 1, rest.sensitive, rest.counts
    )


@tries(25)
@given(data=people(most=30), k=st.integers(2, 5))
def test_rolling_up_is_grouping_anew(data: pa.Table, k: int) -> None:
    table, guarantee = possible(data, {"l": 2, "sensitive": "ill"}, k)
    view = recode_global._View.of(table, guarantee, "ncp", data.num_rows)
    for vector in every_vector(table.heights):
        looked = view.look(np.array(vector))
        classes, number = table.classes(vector)
        bad = ~table.good(guarantee, classes, number)[classes]
        cost = np.where(bad, table.cost(table.heights), table.cost(vector))
        assert looked.suppressed == table.counts[bad].sum()
        assert looked.loss == pytest.approx(float((cost * table.counts).sum()) / data.num_rows)


@tries(25)
@given(data=people(most=40), k=st.integers(2, 6))
def test_greedy_descent_keeps_the_promise_too(data: pa.Table, k: int) -> None:
    assume(k <= data.num_rows)
    table, guarantee = prepared(data, k=k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recode_global, "FULL_LATTICE", 0)
        made = recode_global.recode(table, guarantee, most_suppressed=0, measure="ncp")
    assert not made.optimal
    assert guarantee.kept(made.classes, int(made.classes.max()) + 1, table.sensitive, table.counts)


@tries(25)
@given(
    data=people(most=40),
    vector=st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 2)),
    taken=st.sets(st.integers(0, 39)),
)
def test_crowded_boxes_are_those_with_k_rows(
    data: pa.Table, vector: tuple[int, int, int], taken: set[int]
) -> None:
    table, _ = prepared(data, k=1)
    levels = np.array(
        [min(level, height) for level, height in zip(vector, table.heights, strict=True)]
    )
    rest = Remaining.of(table, np.arange(len(table)), levels[None, :])
    gone = np.array(sorted(each for each in taken if each < len(table)), dtype=np.int64)
    for part in np.array_split(gone, 3):  # tidied on the way, or not
        rest.take(np.flatnonzero(np.isin(rest.rows, part) & (rest.counts > 0)))
    assert rest.left == len(table) - len(gone)
    near, keys = rest.near(0, 3)
    rows, boxes = rest.crowded(near, keys, 3)
    assert set(rows.tolist()) <= set(near.tolist())
    assert rest.cost(0, near) == pytest.approx(table.cost(levels, rest.rows[near]))
    left = table.select(np.setdiff1d(np.arange(len(table)), gone))
    every, count = left.classes(levels)
    crowds = np.bincount(every, left.counts, count)[every] >= 3
    assert sorted(rest.rows[rows]) == sorted(np.setdiff1d(np.arange(len(table)), gone)[crowds])
    number = dict(
        zip(np.setdiff1d(np.arange(len(table)), gone).tolist(), every.tolist(), strict=True)
    )
    pairs = {(int(box), number[int(row)]) for box, row in zip(boxes, rest.rows[rows], strict=True)}
    assert len(pairs) == len({box for box, _ in pairs}) == len({each for _, each in pairs})
    assert boxes.tolist() == sorted(boxes.tolist())


@tries(25)
@given(data=people())
def test_losses_are_their_definitions(data: pa.Table) -> None:
    groups = groups_of(data, QUASI)
    built = levels_of(QUASI, groups, None)
    top = tuple(np.full(len(groups.counts), each.height) for each in built)
    one = np.zeros(len(groups.counts), dtype=np.int64)
    everything = measure_losses(built, groups, top, one, {})
    nothing = measure_losses(built, groups, tuple(np.zeros_like(level) for level in top), one, {})
    varied = [len(each.labels[0]) > 1 for each in built]
    assert everything.ncp == pytest.approx(sum(varied) / len(built))
    assert everything.discernibility == pytest.approx(1)
    assert nothing.ncp == nothing.precision == nothing.entropy == 0
    assert measure_losses(built, groups, top, one - 1, {}).discernibility == pytest.approx(1)
    if all(varied):
        assert everything.entropy == pytest.approx(1)
