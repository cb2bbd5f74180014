"""What the trusted parts refuse in themselves, should anything above them ask for it: fail closed,
in words.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from discreet.accounting import SumAccountant, delta_for_keys
from discreet.budget import Budget, Charge
from discreet.errors import BudgetExceeded, LedgerUnavailable, UsageError
from discreet.ledger import chain
from discreet.ledger.stores.sqlite import File
from discreet.mechanisms import (
    DiscreteLaplace,
    GaussianThreshold,
    LaplaceThreshold,
    Quantile,
    RandomizedResponse,
)
from discreet.mechanisms.shapes import Movement
from discreet.noise import Items, Stream
from discreet.sql.values.value import Number
from discreet.vault.allowance import Allowance
from discreet.vault.answer import Answer
from discreet.vault.exact import Exact

F = Fraction


def test_no_budget_no_delta_for_keys() -> None:
    assert delta_for_keys(F(1), of=Charge(amount=F(0), delta=F(1, 10))) == 0


def test_thresholds_need_a_delta_that_is_one() -> None:
    with pytest.raises(UsageError, match="delta must be below"):
        LaplaceThreshold(scale=F(2), linf=1, max_groups=1, neighbors="add_remove", delta=F(1, 2))


def test_tails_of_gaussian_noise_end_somewhere() -> None:
    """A δ that no table and no series of reasonable length reaches is refused, not rounded to
    zero.
    """
    tiny = GaussianThreshold(
        sigma=F(99), linf=1, max_groups=1, neighbors="add_remove", delta=F(1, 2**7000)
    )
    with pytest.raises(UsageError, match=r"down to 2\^-6000"):
        assert tiny.threshold


def test_a_range_has_values() -> None:
    with pytest.raises(ValueError, match="ends"):
        Number(step=F(1), lo=1, hi=0)


@pytest.mark.parametrize("shift", [True, 1.0, "1", F(1)])
def test_a_shift_is_a_whole_number(shift: object) -> None:
    with pytest.raises(UsageError, match="shift must be a whole number"):
        Quantile(
            epsilon=F(1), q=F(1), cells=4, max_rows=1, neighbors="add_remove", choice="exponential",
            shift=shift,  # type: ignore[arg-type]
        )  # fmt: skip


@pytest.mark.parametrize("answers", [[-1], [3], [0.5], [True]])
def test_answers_to_randomized_response_are_categories(answers: list[object]) -> None:
    mechanism = RandomizedResponse(epsilon=F(1), categories=3)
    with pytest.raises(UsageError, match="whole numbers from 0 to 2"):
        mechanism.respond(np.array(answers), Stream.fresh(), Items.positions(1))


def test_items_are_one_column_of_different_codes() -> None:
    with pytest.raises(UsageError, match="one column"):
        Items.codes(np.zeros((2, 2), dtype=np.int64))
    with pytest.raises(UsageError, match="twice"):
        Items.codes(np.array([3, 1, 3]))


def test_a_key_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "x.key").mkdir()
    with pytest.raises(LedgerUnavailable, match="cannot be read"):
        chain.read_keys(tmp_path / "x")


def test_a_ledgers_file_is_used_inside_transactions_only(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="inside a transaction"):
        File(tmp_path / "x.ledger", timeout=1).erase_key(1)


@pytest.mark.parametrize("leaving", [pickle.dumps, copy.copy, copy.deepcopy])
def test_exact_values_neither_print_nor_leave(leaving: Callable[[Exact], object]) -> None:
    secret = Exact(pa.table({"s0": [4711]}))
    assert "4711" not in f"{secret} {secret!r} {[secret]}"
    with pytest.raises(TypeError, match="do not leave the process"):
        leaving(secret)


ONE = Movement(l1=1, l2_squared=1)


def test_an_allowance_says_what_is_left_and_gives_no_more() -> None:
    """At this scale there is noise with probability 2e^-1000: the sum, far beyond 64 bits, leaves
    as it is.
    """
    allowance = Allowance(
        key=bytes(32), accountant=SumAccountant(), paid=Charge(amount=F(2000), delta=F(0))
    )
    exact = Exact(pa.table({"s0": pa.array([Decimal(10**30 + 7)], pa.decimal128(38))}))
    noise = DiscreteLaplace(scale=F(1, 1000), l1=F(1))
    (released,) = allowance.measure(noise, exact, moved=ONE, sizes=(), forms=((3,),))
    assert released.tolist() == [3 * 10**30 + 21]
    assert allowance.left == Charge(amount=F(1000), delta=F(0))
    with pytest.raises(BudgetExceeded, match="nothing was released"):
        allowance.measure(
            DiscreteLaplace(scale=F(1, 1001), l1=F(1)), exact, moved=ONE, sizes=(), forms=((1,),)
        )
    assert allowance.left == Charge(amount=F(1000), delta=F(0))


def test_an_answer_in_a_notebook_runs_nothing() -> None:
    name, half = "<script>x</script>", pa.table({"k": pa.nulls(1, pa.float64()), "n": [3.0]})
    spent = Budget(epsilon=F(1), delta=F(0))
    answer = Answer(
        table=pa.table({"k": [name], "n": [12]}), margins=half, selected=(False,), cost=spent, left=spent,
        certificate={}, id="1",
    )  # fmt: skip
    shown = answer._repr_html_()
    assert "&lt;script&gt;" in shown
    assert "<script" not in shown
    assert "12 ± 3" in shown
