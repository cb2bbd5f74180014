"""A description against the truth: what is paid for, and that it is right where noise is small."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet
from discreet.errors import UsageError
from discreet.mechanisms import from_row
from discreet.synthetic.classify import area
from discreet.synthetic.compare import correlations, lines
from discreet.synthetic.description import Description
from discreet.synthetic.marginals import MOST_ROWS, SCALE, Candidate, _models, products
from synthetic.small_table import curator, rows

COUNT = 2000
ASKED = ["SELECT sex, ill, COUNT(*) FROM people WHERE smoker GROUP BY sex, ill"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> discreet.Curator:
    return curator(tmp_path_factory.mktemp("compared"), count=COUNT)


@pytest.fixture(scope="module")
def near(made: discreet.Curator) -> Description:
    return made.describe("people", epsilon=300, synthesizer="mst")


@pytest.fixture(scope="module")
def far(made: discreet.Curator) -> Description:
    return made.describe("people", epsilon=300, synthesizer="independent")


def test_distances_tell_the_good_from_the_bad(made: discreet.Curator, near: Description, far: Description) -> None:
    spent = made._ledger.spent().amount
    first = made.compare(near, epsilon=30, workload=ASKED)
    assert made._ledger.spent().amount > spent
    second = made.compare(far, epsilon=30, workload=ASKED)
    found = [{each.columns: each for each in one.distances} for one in (first, second)]
    pair = ("ill", "smoker")
    assert found[0][pair].distance < 0.1 < 0.4 < found[1][pair].distance
    assert abs(found[1][pair].distance - 0.5) < 0.05 + 3 * found[1][pair].margin
    assert first.mean < second.mean
    assert [each.columns for each in first.asked] == [("sex", "ill", "smoker")]
    assert first.asked[0].distance < 0.1 < 0.4 < second.asked[0].distance
    spent = made._ledger.spent().amount
    assert made.compare(near, epsilon=30, workload=ASKED) == first
    assert made._ledger.spent().amount == spent


def test_correlations_are_those_of_the_table(made: discreet.Curator, far: Description) -> None:
    """Against numpy on the rows themselves; in the description of independent columns there are none."""
    table = rows(COUNT)
    incomes = [None if value is None else int(value * 100 * 100 // 20000001) for value in table["income"].to_pylist()]
    line = {far.axes[column].name: each for column, each in lines(far).items()}
    seen = {
        "age": line["age"][np.array(table["age"].to_pylist())],
        "smoker": line["smoker"][np.array(table["smoker"].to_pylist(), dtype=int)],
        "income": np.array([0 if place is None else line["income"][place] for place in incomes]),
    }
    found = {each.columns: each for each in made.compare(far, epsilon=200).correlations}
    for pair in (("age", "income"), ("age", "smoker"), ("income", "smoker")):
        expected = np.corrcoef(seen[pair[0]], seen[pair[1]])[0, 1]
        assert abs(found[pair].true - expected) < 0.01 + 3 * found[pair].margin
        assert found[pair].margin < 0.05
        assert abs(found[pair].synthetic) < 0.01


def test_margins_of_correlations_are_those_of_their_noise() -> None:
    """Redrawn 4,000 times, the spread is what was told, within what chance allows at 1e-9, and not 0.8 of it."""
    rng = np.random.default_rng()
    x = np.clip(rng.normal(0, 0.4, (20_000, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]), -1, 1) * SCALE
    full = np.column_stack([x, np.full(len(x), SCALE)])
    sums, noise = np.array([float(full[:, a] @ full[:, b]) for a, b in products(3)]), 60.0 * SCALE**2
    told = [spread for _, spread in correlations(sums, noise, 3)]
    drawn = np.array(
        [[v for v, _ in correlations(sums + rng.normal(0, noise, len(sums)), 0.0, 3)] for _ in range(4000)]
    )
    for claimed, seen in zip(told, drawn.std(axis=0), strict=True):
        assert 0.88 < seen / claimed < 1.12  # relative error of a spread of 4,000: 0.011


def test_a_classifier_made_from_it_is_tried_on_true_rows(
    made: discreet.Curator, near: Description, far: Description
) -> None:
    """Smokers are those who are ill; independent columns cannot know."""
    good = made.compare(near, epsilon=50, target="smoker").classifier
    assert good is not None
    assert good.true > 0.95
    assert good.margin < 0.05
    assert abs(good.true - good.synthetic) < 0.05
    bad = made.compare(far, epsilon=50, target="ill=flu").classifier
    assert bad is not None
    assert bad.synthetic < 0.75
    for target, sentence in (("ill", "more than two values"), ("height", "no column"), ("sex=Q", "one of")):
        with pytest.raises(UsageError, match=sentence):
            made.compare(near, epsilon=1, target=target)


def test_the_area_and_its_spread_are_those_of_the_counts() -> None:
    rng = np.random.default_rng()
    low, high = rng.poisson(300, 40) + 50, np.arange(40) * 20 + 30
    points = np.concatenate([np.repeat(np.arange(40), low), np.repeat(np.arange(40), high)])
    truth = np.concatenate([np.zeros(low.sum()), np.ones(high.sum())])
    ranks = np.array([(points < p).sum() + ((points == p).sum() + 1) / 2 for p in range(40)])[points]
    direct = (ranks[truth == 1].sum() - truth.sum() * (truth.sum() + 1) / 2) / (truth.sum() * (1 - truth).sum())
    counts = np.concatenate([low, high])
    found, spread = area(counts, 25.0)
    assert found == pytest.approx(direct, abs=1e-9)
    drawn = [area(np.rint(counts + rng.normal(0, 25, 80)).astype(np.int64), 0.0)[0] for _ in range(4000)]
    assert 0.88 < np.std(drawn) / spread < 1.12


@pytest.mark.parametrize(("neighbors", "factor"), [("add_remove", 1), ("change_one", 2)])
def test_what_a_comparison_charges(neighbors: str, factor: int, tmp_path: Path) -> None:
    """Four distances or sums move by 3 rows each, and twice that when a person changes; counts as marginals do."""
    made = curator(tmp_path, count=60, neighbors=neighbors, max_rows=3)
    description = made.describe("people", epsilon=1, columns=["age", "smoker"], synthesizer="random")
    found = made.compare(description, epsilon=1, target="smoker")
    distances, sums, counts = (from_row(row) for row in found.certificate["mechanisms"])
    assert distances.l2_squared == 3 * 9 * factor**2  # type: ignore[union-attr]
    assert sums.l2_squared == 6 * 9 * SCALE**4 * factor**2  # type: ignore[union-attr]
    assert counts.l2_squared == 9 * factor  # type: ignore[union-attr]
    paid = Fraction(found.certificate["amount"])
    assert Fraction("0.999") * paid < sum(each.loss().rho for each in (distances, sums, counts)) <= paid


def test_of_another_table_it_is_refused(made: discreet.Curator, tmp_path: Path) -> None:
    other = curator(tmp_path, count=4, more="      notes: text")
    described = other.describe("people", epsilon=1, columns=["notes"])
    with pytest.raises(UsageError, match="no column notes"):
        made.compare(described, epsilon=1)


def test_no_row_is_longer_than_it_is_charged_for(near: Description) -> None:
    """Brute force over every cell: numbers lie within SCALE, so that each sum moves by at most SCALE^2 a row."""
    assert set(lines(near)) == {0, 1, 4, 5, 6}
    for line in lines(near).values():
        assert np.abs(line).max() <= SCALE


def test_no_model_makes_a_distance_overflow() -> None:
    """A file may expect 10^18 rows in every cell; past 64 bits, one person could turn the sign of a distance."""
    candidate = Candidate(columns=(0,), partition=(np.arange(4),), model=np.full(4, 1e18))
    assert _models([candidate])["models"][0].tolist() == [MOST_ROWS] * 4
    assert 2**26 * MOST_ROWS < 2**63 - 2**48  # and that is more rows than there are


def test_comparing_tells_how_far_it_is(made: discreet.Curator, near: Description) -> None:
    told: list[tuple[str, float]] = []
    made.compare(near, epsilon=7, progress=lambda what, share: told.append((what, share)))
    shares = [share for what, share in told if what == "counts"]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(set(shares)) > len(near.axes)
