"""All pairs at once: what the sums tell, how far one person moves them, and what goes into the
model.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.accounting import ZcdpAccountant
from discreet.algebra import Aggregate
from discreet.budget import Charge
from discreet.errors import UsageError
from discreet.policy.domain import Categories, Column, Integers
from discreet.synthetic import describe as module
from discreet.synthetic.columns.axis import Axis
from discreet.synthetic.description import Description
from discreet.synthetic.marginals import SCALE, Marginals
from discreet.synthetic.synthesizers.graphical import FitTarget, estimate
from discreet.synthetic.synthesizers.independent import Histogram
from discreet.synthetic.synthesizers.related import _rising, _scores
from discreet.vault.allowance import Allowance
from synthetic.test_scarce import opened, scarce_only

ONE_PERSON = [(a, b, c) for a in (0, 1) for b in (0, 1, 2) for c in (0, 1)]
LINES = [np.array([-100, 100]), np.array([-100, 0, 100]), np.array([100, -100])]
SCORES = list(enumerate(LINES))
PAIRS = list(combinations(range(3), 2))


def marginals(folder: Path, people: list[list[tuple[int, ...]]], **named: Any) -> Marginals:
    """The counts of a table in which every person has some rows; a budget that hides little."""
    rows = [row for own in people for row in own]
    owners = [number for number, own in enumerate(people) for _ in own]
    columns = {
        name: (f"integer: [0, {size - 1}]", [row[place] for row in rows])
        for place, (name, size) in enumerate((("a", 2), ("b", 3), ("c", 2)))
    }
    curator = opened(folder, columns, owners, **named)
    plenty = Charge(amount=Fraction(10**9))
    accountant = ZcdpAccountant(delta_convert=Fraction(1, 10**6))
    purse = module.Purse(accountant=accountant, amount=plenty.amount, limit=plenty)
    work = module.commission(curator.policy, "t", purse, synthesizer="default")
    allowance = Allowance(key=b"k" * 32, accountant=accountant, paid=plenty)
    return Marginals(
        axes=work.axes,  # type: ignore[arg-type]  # none of them is to be found first
        source=work.source,
        accountant="zcdp",
        amount=plenty.amount,
        allowance=allowance,
        fetch=curator._view.fetch,
    )


def test_sums_are_those_of_the_rows(tmp_path: Path) -> None:
    """With next to no noise, against the products row by row."""
    people = [[ONE_PERSON[i * i % 12]] for i in range(60)]
    found = marginals(tmp_path, people).relations(SCORES, PAIRS, share=1)
    values = np.array([own[0] for own in people])
    lines = [line[values[:, place]] for place, line in SCORES]
    expected = [float(lines[a] @ lines[b]) / SCALE**2 for a, b in PAIRS]
    assert found.std < 0.001
    assert np.abs(found.sums - expected).max() < 0.01
    assert found.columns == {(0, 1), (0, 2), (1, 2)}


@pytest.mark.parametrize("max_rows", [1, 2])
@pytest.mark.parametrize(("neighbors", "factor"), [("add_remove", 1), ("change_one", 2)])
def test_one_person_moves_the_vector_by_no_more_than_is_claimed(
    neighbors: str, factor: int, max_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that one person may have, on the vector of three sums; and some move it by as much."""
    claims: list[Any] = []
    exact: list[list[int]] = []
    summed = Allowance.sums

    def sums(self: Allowance, mechanism: Any, tables: Any, *, moved: Any, points: Any) -> Any:
        claims.append((mechanism, moved))
        kept = [(each, line) for each, line in zip(tables, points, strict=True)]
        exact.append([_sum(each.unwrap(), line) for each, line in kept])
        return summed(
            self, mechanism, [e for e, _ in kept], moved=moved, points=[p for _, p in kept]
        )

    monkeypatch.setattr(Allowance, "sums", sums)
    others = [[ONE_PERSON[i * 5 % 12]] for i in range(6)]
    own: list[list[tuple[int, ...]]] = [[], *([row] * max_rows for row in ONE_PERSON[::2])]
    own += [[row] * max_rows for row in ONE_PERSON if row[1] != 1 and row[2] == 1]
    if max_rows == 2:
        own += [[ONE_PERSON[0], ONE_PERSON[11]], [ONE_PERSON[1], ONE_PERSON[4]], [ONE_PERSON[5]]]
    for number, rows in enumerate(own):
        data = marginals(
            tmp_path / str(number), [*others, rows], neighbors=neighbors, max_rows=max_rows
        )
        data.relations(SCORES, PAIRS, share=1)
    mechanism, moved = claims[0]
    assert mechanism.l2_squared >= moved.l2_squared
    pairs = combinations(exact, 2) if neighbors == "change_one" else [(exact[0], e) for e in exact]
    apart = [np.abs(np.array(a) - np.array(b)) for a, b in pairs]
    assert max(int(each.sum()) for each in apart) <= moved.l1
    assert max(int((each**2).sum()) for each in apart) <= moved.l2_squared
    # every one of the three numbers is moved by all that is claimed for it
    each_most = np.max(apart, axis=0)
    assert (each_most == factor * max_rows * SCALE**2).all()


def _sum(table: Any, points: np.ndarray) -> int:
    cells, rows = (table.column(place).to_numpy() for place in (0, 1))
    return int((rows * points[cells]).sum())


def test_points_beyond_the_scale_count_no_more_than_it(tmp_path: Path) -> None:
    people = [[row] for row in ONE_PERSON]
    data = marginals(tmp_path, people)
    found = data.relations([(0, np.array([-900, 900])), SCORES[1]], [(0, 1)], share=0.5)
    again = data.relations(SCORES[:2], [(0, 1)], share=0.5)
    assert abs(found.sums[0] - again.sums[0]) < 0.01
    assert np.abs(found.scores[0][1]).max() == SCALE


# --- scores ---------------------------------------------------------------------------------------


def histogram(*rows: float) -> Histogram:
    counts = np.array(rows)
    return Histogram(groups=np.arange(len(rows)), counts=counts, std=1.0, noisy=counts)


def test_scores_rise_from_one_end_to_the_other() -> None:
    line = _rising(np.full(8, 10.0))
    assert (line[0], line[-1]) == (-1.0, 1.0)
    assert (np.diff(line) >= 0).all()
    zeros = _rising(np.array([90.0, 5.0, 5.0]))  # most have nothing: they against the others
    assert zeros[0] == -1.0
    assert zeros[1] > 0.9
    assert (_rising(np.array([0.0, 0.0])) == 0).all() or (np.abs(_rising(np.zeros(2))) <= 1).all()


def test_lists_have_scores_for_heavy_values_and_numbers_for_missing_ones() -> None:
    listed = Axis(column=Column(name="x", domain=Categories(values=tuple("pqrst"))), bins=5)
    found = _scores(histogram(50, 30, 15, 4, 1), listed)
    assert [int(each.argmax()) for each in found] == [0, 1, 2]
    assert all(set(each.tolist()) == {-1.0, 1.0} for each in found)
    number = Column(name="n", domain=Integers(lo=0, hi=2), nullable=True)
    rising, missing = _scores(histogram(30, 20, 30, 20), Axis(column=number, bins=3))
    assert rising[-1] == 0
    assert missing.tolist() == [-1.0, -1.0, -1.0, 1.0]
    assert len(_scores(histogram(30, 20, 30, 1), Axis(column=number, bins=3))) == 1


# --- models ---------------------------------------------------------------------------------------


def test_a_model_fits_sums_of_scores() -> None:
    """The distribution of maximum entropy with given margins and a given sum of products."""
    line = np.array([-1.0, 0.0, 1.0])
    targets = [
        *(
            FitTarget(columns=(c,), cells=np.arange(3), counts=np.array([300.0, 400, 300]), std=0.1)
            for c in (0, 1)
        ),
        FitTarget(
            columns=(0, 1),
            cells=np.zeros(0, dtype=np.int64),
            counts=np.array([240.0]),
            std=0.1,
            scores=np.outer(line, line).reshape(1, -1),
        ),
    ]
    found = estimate([3, 3], targets, total=1000.0, prior=0.0, steps=500, tolerance=1e-7)
    table = found.model.marginal((0, 1)) * 1000
    assert float(line @ table @ line) == pytest.approx(240, abs=0.1)
    assert table.sum(axis=0) == pytest.approx([300, 400, 300], abs=0.1)
    # nothing else is put into it: log odds are in proportion to the products of scores
    odds = np.log(table[0, 0] * table[1, 1] / table[0, 1] / table[1, 0])
    assert np.log(table[1, 1] * table[2, 2] / table[1, 2] / table[2, 1]) == pytest.approx(odds)


def test_what_hangs_together_weakly_everywhere_is_kept(tmp_path: Path) -> None:
    """Eight answers that one hidden thing moves: every pair is related, and in the model."""
    count, width = 1500, 8
    draws = np.random.default_rng(8)
    hidden = draws.random(count)
    columns = {
        f"c{i}": (
            "boolean: true",
            [bool(each) for each in draws.random(count) < 0.1 + 0.8 * hidden],
        )
        for i in range(width)
    }
    curator = opened(tmp_path, columns, range(count))
    made, seen = scarce_only(lambda: curator.describe("t", epsilon=4))
    assert len(seen.sums) == 1
    assert len(seen.points) == math.comb(width, 2)
    assert len(made.related[0].columns) == math.comb(width, 2)
    above = 0
    for pair in combinations(range(width), 2):
        table = made.marginal(pair) / made.model.total
        above += bool(table[1, 1] > table[1].sum() * table[:, 1].sum())
    assert above == math.comb(width, 2)


def test_questions_say_which_pairs_are_summed(tmp_path: Path) -> None:
    columns = {
        f"c{i}": ("boolean: true", [bool(row >> i & 1) for row in range(100)]) for i in range(4)
    }
    curator = opened(tmp_path, columns, range(100))
    asked = ["SELECT c0, c1, COUNT(*) FROM t GROUP BY 1, 2", "SELECT AVG(c3) FROM t WHERE c1"]
    made, _ = scarce_only(lambda: curator.describe("t", epsilon=3, workload=asked))
    assert made.related[0].columns == {(0, 1), (1, 3)}


# --- the file -------------------------------------------------------------------------------------


def test_the_file_holds_the_sums_and_refuses_broken_ones(tmp_path: Path) -> None:
    columns = {
        f"c{i}": ("boolean: true", [bool(row >> i & 1) for row in range(50)]) for i in range(3)
    }
    curator = opened(tmp_path, columns, range(50))
    made, _ = scarce_only(lambda: curator.describe("t", epsilon=2))
    read = Description.from_bytes(made.to_bytes())
    assert read.related[0].sums.tolist() == made.related[0].sums.tolist()
    assert read.related[0].pairs == made.related[0].pairs
    assert read.to_bytes() == made.to_bytes()
    breaks = [
        ("scores", [{"column": "c0", "points": [1, 101]}]),
        ("scores", [{"column": "c0", "points": [1]}]),
        ("pairs", [[0, 9]]),
        ("pairs", [[1, 0]]),
        ("noisy_sums", ["many"]),
        ("noisy_sums", []),
        ("standard_deviation", 0),
        ("noise", {"mechanism": 5}),
    ]
    for key, value in breaks:
        plain = json.loads(made.to_bytes())
        plain["related"][0][key] = value
        with pytest.raises(UsageError, match="is broken"):
            Description.from_bytes(json.dumps(plain).encode())


def test_counts_of_pairs_are_all_that_is_read(tmp_path: Path) -> None:
    """The sums come from counts of rows by cell: the engine is asked nothing else."""
    seen: list[Aggregate] = []
    data = marginals(tmp_path, [[row] for row in ONE_PERSON])
    fetch = data._fetch

    def noted(query: Aggregate) -> Any:
        seen.append(query)
        return fetch(query)

    data._fetch = noted  # type: ignore[method-assign]
    data.relations(SCORES, PAIRS, share=1)
    assert len(seen) == len(PAIRS)
    assert all(len(query.keys) == 1 and len(query.readings) == 1 for query in seen)
