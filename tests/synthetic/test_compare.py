"""A description against the truth: what is paid for, and that it is right where noise is small."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet
from discreet.errors import UsageError
from discreet.mechanisms import DiscreteGaussian, DiscreteLaplace, from_row
from discreet.synthetic.classify import area, area_margin
from discreet.synthetic.compare import correlation_margins, correlations, lines
from discreet.synthetic.description import Description
from discreet.synthetic.marginals import MOST_ROWS, SCALE, Candidate, _models, products
from fresh_noise import fresh
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


def test_distances_tell_the_good_from_the_bad(
    made: discreet.Curator, near: Description, far: Description
) -> None:
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
    """Against numpy on the rows themselves; in the description of independent columns there are
    none.
    """
    table = rows(COUNT)
    incomes = far.axes[1].codes(table["income"])
    line = {far.axes[column].name: each for column, each in lines(far).items()}
    seen = {
        "age": line["age"][np.array(table["age"].to_pylist())],
        "smoker": line["smoker"][np.array(table["smoker"].to_pylist(), dtype=int)],
        "income": line["income"][incomes],
    }
    found = {each.columns: each for each in made.compare(far, epsilon=200).correlations}
    for pair in (("age", "income"), ("age", "smoker"), ("income", "smoker")):
        expected = np.corrcoef(seen[pair[0]], seen[pair[1]])[0, 1]
        assert abs(found[pair].true - expected) < 0.01 + 3 * found[pair].margin
        assert found[pair].margin < 0.05
        assert abs(found[pair].synthetic) < 0.01


NOISES = {
    "sum": lambda size: DiscreteLaplace(scale=Fraction(size), l1=Fraction(1)),
    "zcdp": lambda size: DiscreteGaussian(sigma=Fraction(size), l2_squared=Fraction(1)),
}
TIMES, ALARM = 4_000, 1e-10


def held(values: Any, margins: Any, truth: Any) -> None:
    """At least 95 % are within their margins and at most 96.5 %; with 0.8 of the margins fewer."""
    off = np.abs(values - truth)
    least, most = stats.binom.ppf(ALARM, TIMES, 0.95), stats.binom.ppf(1 - ALARM, TIMES, 0.965)
    assert least <= (off <= margins).sum() <= most
    assert (off <= 0.8 * margins).sum() < least


@pytest.mark.parametrize("accountant", NOISES)
def test_margins_of_correlations_cover(accountant: str) -> None:
    rng = np.random.default_rng()
    x = (
        np.clip(
            rng.normal(0, 0.4, (20_000, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]), -1, 1
        )
        * SCALE
    )
    full = np.column_stack([x, np.full(len(x), SCALE)])
    sums, noise = (
        np.array([float(full[:, a] @ full[:, b]) for a, b in products(3)]),
        NOISES[accountant](60 * SCALE**2),
    )
    truth = correlations(sums, 3)[0]
    noisy = sums[:, None] + fresh(noise, (len(sums), TIMES))
    found = correlations(noisy, 3)[0]
    margins = np.array([correlation_margins(each, noise, 3) for each in noisy.T[:200]]).mean(axis=0)
    for place in range(3):
        held(found[place], margins[place], truth[place])


def test_margins_of_distances_are_the_smallest_that_cover(
    made: discreet.Curator, far: Description
) -> None:
    """From the mass of the noise: a whole number of rows, over twice the rows of the model."""
    found = made.compare(far, epsilon=30)
    mechanism: Any = from_row(found.certificate["mechanisms"][0])
    half = found.distances[0].margin * 2 * far.model.total
    assert half == pytest.approx(mechanism.margin(0.95))
    inside = [
        sum(np.exp(mechanism.log_mass(z)) for z in range(-h, h + 1))
        for h in (round(half) - 1, round(half))
    ]
    assert inside[0] < 0.95 <= inside[1]


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
    for target, sentence in (
        ("ill", "more than two values"),
        ("height", "no column"),
        ("sex=Q", "one of"),
    ):
        with pytest.raises(UsageError, match=sentence):
            made.compare(near, epsilon=1, target=target)


def test_the_area_is_that_of_the_counts_and_its_margin_covers() -> None:
    rng = np.random.default_rng()
    low, high = rng.poisson(300, 40) + 50, np.arange(40) * 20 + 30
    points = np.concatenate([np.repeat(np.arange(40), low), np.repeat(np.arange(40), high)])
    truth = np.concatenate([np.zeros(low.sum()), np.ones(high.sum())])
    ranks = np.array([(points < p).sum() + ((points == p).sum() + 1) / 2 for p in range(40)])[
        points
    ]
    direct = (ranks[truth == 1].sum() - truth.sum() * (truth.sum() + 1) / 2) / (
        truth.sum() * (1 - truth).sum()
    )
    counts = np.concatenate([low, high])
    assert float(area(counts)) == pytest.approx(direct, abs=1e-9)
    for accountant in NOISES:
        noise = NOISES[accountant](25)
        noisy = counts[:, None] + fresh(noise, (80, TIMES))
        margin = float(np.mean([area_margin(each, noise) for each in noisy.T[:200]]))
        held(area(noisy), margin, direct)
    assert area_margin(counts // 400, noise) == 0.5


@pytest.mark.parametrize(("neighbors", "factor"), [("add_remove", 1), ("change_one", 2)])
def test_what_a_comparison_charges(neighbors: str, factor: int, tmp_path: Path) -> None:
    """Four distances or sums move by 3 rows each, and twice that when a person changes; counts as
    marginals do.
    """
    made = curator(tmp_path, count=60, neighbors=neighbors, max_rows=3)
    description = made.describe(
        "people", epsilon=1, columns=["age", "smoker"], synthesizer="random"
    )
    found = made.compare(description, epsilon=1, target="smoker")
    distances, sums, counts = (from_row(row) for row in found.certificate["mechanisms"])
    assert distances.l2_squared == 3 * 9 * factor**2  # type: ignore[union-attr]
    assert sums.l2_squared == 6 * 9 * SCALE**4 * factor**2  # type: ignore[union-attr]
    assert counts.l2_squared == 9 * factor  # type: ignore[union-attr]
    paid = Fraction(found.certificate["amount"])
    assert (
        Fraction("0.999") * paid
        < sum(each.loss().rho for each in (distances, sums, counts))
        <= paid
    )


def test_of_another_table_it_is_refused(made: discreet.Curator, tmp_path: Path) -> None:
    other = curator(tmp_path, count=4, more="      notes: text")
    described = other.describe("people", epsilon=1, columns=["notes"])
    with pytest.raises(UsageError, match="no column notes"):
        made.compare(described, epsilon=1)


def test_no_row_is_longer_than_it_is_charged_for(near: Description) -> None:
    """Brute force over every cell: numbers lie within SCALE, so that each sum moves by at most
    SCALE^2 a row.
    """
    assert set(lines(near)) == {0, 1, 4, 5, 6}
    for line in lines(near).values():
        assert np.abs(line).max() <= SCALE


def test_no_model_makes_a_distance_overflow() -> None:
    """A file may expect 10^18 rows in every cell; past 64 bits, one person could turn the sign of a
    distance.
    """
    candidate = Candidate(columns=(0,), partition=(np.arange(4),), model=np.full(4, 1e18))
    assert _models([candidate], 1)["models"][0].tolist() == [MOST_ROWS] * 4
    assert 2**26 * MOST_ROWS < 2**63 - 2**48  # and that is more rows than there are


def test_comparing_tells_how_far_it_is(made: discreet.Curator, near: Description) -> None:
    told: list[tuple[str, float]] = []
    made.compare(near, epsilon=7, progress=lambda what, share: told.append((what, share)))
    shares = [share for what, share in told if what == "counts"]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(set(shares)) > len(near.axes)
