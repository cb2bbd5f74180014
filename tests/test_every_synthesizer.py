"""One battery for every synthesizer: within its charge, within the domain, right where noise is
small.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from discreet.accounting import SumAccountant, ZcdpAccountant
from discreet.algebra import Sum
from discreet.asking.view import View
from discreet.asking.work import purse_of
from discreet.budget import Charge
from discreet.errors import DiscreetError
from discreet.mechanisms import from_row
from discreet.policy.domain import Categories, Column, Integers, Texts
from discreet.synthetic import describe as module
from discreet.synthetic.columns.axis import Axis, Uncut, Unlisted
from discreet.synthetic.description import Description
from discreet.synthetic.synthesizers.family import SYNTHESIZERS
from discreet.synthetic.workload import Workload
from discreet.vault.allowance import Allowance
from synthetic.small_table import curator, rows

BUDGETS = {
    "zcdp": "delta: 1e-6, accountant: zcdp",
    "sum": "accountant: sum",
    "sum with delta": "delta: 1e-6, accountant: sum",
}


@pytest.fixture(scope="module", params=SYNTHESIZERS)
def described(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, ...]:
    """A curator after one small description."""
    made = curator(tmp_path_factory.mktemp("described"), count=300)
    return (
        request.param,
        made,
        made.describe("people", epsilon="0.7", synthesizer=request.param, analyst="alice"),
    )


@pytest.fixture(scope="module", params=[name for name in SYNTHESIZERS if name != "random"])
def precise(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Description]:
    """A description with next to no noise."""
    made = curator(tmp_path_factory.mktemp("precise"))
    return request.param, made.describe("people", epsilon=500, synthesizer=request.param)


def spending(made: Any, description: Description) -> tuple[dict[str, Any], list[Any]]:
    """The posted row and its mechanisms' losses, after checks that hold for every charge."""
    charge, post = (row for row in made._ledger.rows() if row["kind"] in ("charge", "post"))
    assert charge["mechanisms"] is None
    assert made._ledger.spent() == made._ledger.spent("alice")
    assert made._accountant.budget(made._ledger.spent()).epsilon <= Fraction("0.7")
    assert description.cost == made._accountant.budget(made._ledger.spent()).as_json()
    return post, [from_row(row).loss() for row in post["mechanisms"]]


def test_spends_nearly_all_and_no_more_than_charged(described: tuple[Any, ...]) -> None:
    name, made, description = described
    post, losses = spending(made, description)
    used, paid = sum(loss.rho for loss in losses), Fraction(post["meta"]["amount"])
    assert used <= paid == made._ledger.spent().amount
    if name != "default":  # which keeps what no pair is worth
        assert used > Fraction("0.99") * paid


@pytest.mark.parametrize(
    ("name", "budget"), [("independent", "sum"), ("default", "sum"), ("mst", "sum with delta")]
)
def test_in_other_currencies_too(name: str, budget: str, tmp_path: Path) -> None:
    made = curator(tmp_path, count=300, budget=BUDGETS[budget])
    description = made.describe("people", epsilon="0.7", synthesizer=name, analyst="alice")
    post, losses = spending(made, description)
    if budget == "sum":
        assert (
            sum(loss.epsilon for loss in losses)
            <= Fraction(post["meta"]["amount"])
            <= Fraction("0.7")
        )
    else:
        assert "ZcdpAccountant" in post["meta"]["currency"]
        assert made._ledger.spent().delta > 0
        assert sum(loss.rho for loss in losses) <= Fraction(post["meta"]["amount"])


def test_rows_lie_in_the_domain(described: tuple[Any, ...]) -> None:
    made = described[2].generate(rows=2000)
    assert made.column_names == ["age", "income", "sex", "ill", "smoker", "day", "seen"]
    found = made.to_pydict()
    assert all(0 <= age <= 99 for age in found["age"])
    assert set(found["sex"]) <= {"F", "M", "X"}
    assert set(found["ill"]) <= {"none", "flu", "cold", None}
    assert all(income is None or 0 <= income <= 200000 for income in found["income"])
    assert all(day.year == 2024 for day in found["day"])
    assert not any(made.column(name).null_count for name in ("age", "sex", "smoker", "day", "seen"))


def test_recovers_one_way_marginals_at_large_epsilon(precise: tuple[str, Description]) -> None:
    description = precise[1]
    assert abs(description.rows - 3000) <= 3
    made, true = description.generate(rows=3000).to_pydict(), rows(3000).to_pydict()
    for column in ("age", "sex", "ill", "smoker"):
        values = set(true[column]) | set(made[column])
        apart = sum(abs(true[column].count(value) - made[column].count(value)) for value in values)
        assert apart < 0.05 * 6000, column


def test_recovers_correlations_at_large_epsilon(precise: tuple[str, Description]) -> None:
    """Smokers have the flu; women are under 30, men over 60."""
    name, description = precise
    made = description.generate(rows=3000).to_pydict()
    ill = np.mean(
        [(ill == "flu") == smoker for ill, smoker in zip(made["ill"], made["smoker"], strict=True)]
    )
    young = np.mean(
        [(age < 45) == (sex == "F") for age, sex in zip(made["age"], made["sex"], strict=True)]
    )
    assert (min(ill, young) > 0.95) == (name != "independent")


@pytest.mark.parametrize("name", ["mst", "default"])
@pytest.mark.parametrize(("neighbors", "factor"), [("add_remove", 1), ("change_one", 2)])
def test_sensitivities_follow_rows_per_person_and_neighbors(
    name: str, neighbors: str, factor: int, tmp_path: Path
) -> None:
    made = curator(tmp_path, count=60, neighbors=neighbors, max_rows=3)
    made.describe("people", epsilon=1, synthesizer=name)
    post = next(row for row in made._ledger.rows() if row["kind"] == "post")
    for row in post["mechanisms"]:
        if row["mechanism"] == "DiscreteGaussian":
            assert Fraction(row["l2_squared"]) >= 9 * factor
            assert Fraction(row["l2_squared"]) % (9 * factor) == 0
        else:
            assert Fraction(row["linf"]) == 3 * factor


@pytest.mark.parametrize("name", ["independent", "default"])
def test_the_same_again_is_free_and_the_same(name: str, tmp_path: Path) -> None:
    made = curator(tmp_path, count=100)
    first = made.describe("people", epsilon=1, synthesizer=name)
    spent = made._ledger.spent()
    assert made.describe("people", epsilon=1, synthesizer=name).to_bytes() == first.to_bytes()
    assert made._ledger.spent() == spent
    made.describe("people", epsilon=1, synthesizer=name, columns=["age", "sex"])
    assert made._ledger.spent().amount == 2 * spent.amount


@pytest.mark.parametrize("name", SYNTHESIZERS)
def test_interrupted_at_any_round_it_stays_charged_and_resumes_to_the_same_bytes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = curator(tmp_path, count=100)
    fetch, asked = View.fetch, []

    def failing(self: View, query: Any, **named: Any) -> object:
        asked.append(query)
        if len(asked) in (1, 4, 9):
            raise KeyboardInterrupt
        return fetch(self, query, **named)

    monkeypatch.setattr(View, "fetch", failing)
    spent = None
    for _ in range(4):
        try:
            description = made.describe("people", epsilon=1, synthesizer=name)
            break
        except KeyboardInterrupt:
            assert spent in (None, made._ledger.spent())
            spent = made._ledger.spent()
            assert spent.amount > 0
    assert made._ledger.spent() == spent
    charges = [row for row in made._ledger.rows() if row["kind"] == "charge"]
    assert len(charges) == 1
    assert description.certificate["charge"] == charges[0]["number"]


@pytest.mark.parametrize("name", ["aim", "default"])
def test_interrupted_before_every_single_release_the_ledger_stays_true(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each try gets one release further than the one before; one charge covers them all."""
    made, stop, spend = curator(tmp_path, count=60), [0], Allowance._spend

    def stopping(allowance: Allowance, mechanism: Any) -> Any:
        if len(allowance.used) == stop[0]:
            raise KeyboardInterrupt
        return spend(allowance, mechanism)

    monkeypatch.setattr(Allowance, "_spend", stopping)
    description, spent = None, None
    while description is None:
        try:
            description = made.describe(
                "people", epsilon=1, synthesizer=name, columns=["sex", "ill", "smoker"]
            )
        except KeyboardInterrupt:
            stop[0] += 1
            assert spent in (None, made._ledger.spent())
            spent = made._ledger.spent()
            assert [row["kind"] for row in made._ledger.rows()].count("charge") == 1
            made._ledger.verify()
    assert made._ledger.spent() == spent
    released = [from_row(row).loss() for row in description.certificate["mechanisms"]]
    assert len(released) == stop[0]
    assert 0 < sum(loss.rho for loss in released) <= spent.amount


@pytest.mark.parametrize("name", SYNTHESIZERS)
def test_as_a_function_of_key_and_data_it_is_deterministic(name: str, tmp_path: Path) -> None:
    made = curator(tmp_path, count=100)
    work = commissioned(made, name)

    def ran() -> bytes:
        allowance = Allowance(key=b"k" * 32, accountant=work.inside, paid=work.paid)
        return module.description(
            work.marginals(allowance, made._view.fetch, None), work, {"cost": {}}
        )

    run = ran(), ran()
    assert run[0] == run[1]


@pytest.mark.parametrize("name", SYNTHESIZERS)
def test_nothing_is_read_before_the_charge_and_nothing_but_counts_after_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every question to the engine counts rows by cell of a public grid: none asks for a size, a
    value, a NULL rate.
    """
    made, seen = curator(tmp_path, count=50), []
    fetch = View.fetch

    def noted(self: View, query: Any, **named: Any) -> object:
        assert made._ledger.spent().amount > 0
        seen.append(query)
        return fetch(self, query, **named)

    monkeypatch.setattr(View, "fetch", noted)
    made.describe("people", epsilon=1, synthesizer=name)
    assert seen
    assert all(query.readings == (Sum(),) and len(query.keys) == 1 for query in seen)


@pytest.mark.parametrize("name", SYNTHESIZERS)
def test_an_empty_table_is_described_like_any_other(name: str, tmp_path: Path) -> None:
    description = curator(tmp_path, count=0).describe("people", epsilon="0.1", synthesizer=name)
    assert description.generate(rows=100).num_rows == 100


@pytest.mark.parametrize("name", SYNTHESIZERS)
def test_one_column_is_enough(name: str, tmp_path: Path) -> None:
    description = curator(tmp_path, count=100).describe(
        "people", epsilon=1, synthesizer=name, columns=["sex"]
    )
    assert description.generate(rows=10).column_names == ["sex"]


def test_over_budget_changes_nothing(tmp_path: Path) -> None:
    made = curator(tmp_path, count=10)
    with pytest.raises(DiscreetError, match=r"Over budget"):
        made.describe("people", epsilon=900, analyst="alice")
    assert made._ledger.spent().amount == 0


def commissioned(made, name: str):  # type: ignore[no-untyped-def]
    return module.commission(made.policy, "people", purse_of(made._view, 1), synthesizer=name)


def test_a_commission_is_known_by_all_that_it_depends_on() -> None:
    """By a text of its own: should the hash change, descriptions are charged again; then count its
    version up.
    """
    age, sex = (
        Column(name="age", domain=Integers(lo=0, hi=99)),
        Column(name="sex", domain=Categories(values=("F", "M"))),
    )
    one = module.Commission(
        table="people",
        synthesizer="mst",
        axes=(
            Axis(column=age, bins=10),
            Axis(column=sex, bins=2),
            Unlisted(column=Column(name="town", domain=Texts())),
        ),
        source=cast(Any, None),
        inside=SumAccountant(),
        paid=Charge(amount=Fraction(1, 3)),
        cost=Charge(amount=Fraction(1, 3)),
    )
    others = [
        replace(one, table="visits"),
        replace(one, synthesizer="aim"),
        replace(one, axes=one.axes[:2]),
        replace(one, axes=(one.axes[1], one.axes[0], one.axes[2])),
        replace(one, axes=(Axis(column=age, bins=11), *one.axes[1:])),
        replace(one, axes=(Axis(column=age, bins=2, cuts=(0, 50, 100)), *one.axes[1:])),
        replace(one, axes=(Uncut(column=age), *one.axes[1:])),
        replace(one, inside=ZcdpAccountant(delta_convert=Fraction(1, 10**9))),
        replace(one, inside=ZcdpAccountant(delta_convert=Fraction(1, 10**8))),
        replace(one, paid=Charge(amount=Fraction(1, 2))),
        replace(one, paid=Charge(amount=Fraction(1, 3), delta=Fraction(1, 10**9))),
        replace(one, workload=Workload(sets=(((0, 1), 2),))),
        replace(one, about="compare"),
    ]
    assert len({each.question for each in (one, *others)}) == 1 + len(others)
    assert one.question == "360c02c276670ac256a37b3d86aea64b27a23c244760654c37d688479dc46473"


def test_gauss_is_taken_from_seventeen_counts_on() -> None:
    """With (1, 1e-9): 1.41 k by Laplace and 5.78 √k by Gauss, as docs/synthetic.md has it."""
    limit = Charge(amount=Fraction(1), delta=Fraction(1, 10**9))
    for questions, name in ((16, "sum"), (17, "zcdp")):
        purse = module.Purse(accountant=SumAccountant(), amount=Fraction(1), limit=limit)
        inside, paid, _ = module.currency(purse, questions=questions, texts=False)
        assert inside.name == name
    assert 1 / math.sqrt(2 * paid.amount) == pytest.approx(5.78, abs=0.005)


def test_the_currency_with_less_noise_is_taken(tmp_path: Path) -> None:
    """In a sum budget, few columns are cheaper by Laplace; many by one (ε, δ) row."""
    made = curator(tmp_path, count=10, budget=BUDGETS["sum with delta"])
    few = module.commission(
        made.policy, "people", purse_of(made._view, 1), synthesizer="independent", columns=["sex"]
    )
    many = commissioned(made, "mst")
    assert isinstance(few.inside, SumAccountant)
    assert few.cost.delta == 0
    assert isinstance(many.inside, ZcdpAccountant)
    assert many.cost.delta > 0
    assert many.cost.amount <= 1
