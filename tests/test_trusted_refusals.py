"""What the trusted parts refuse in themselves, should anything above them ask for it: fail closed, in words."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from discreet.accounting import delta_for_keys
from discreet.budget import Charge
from discreet.errors import LedgerUnavailable, UsageError
from discreet.ledger import chain
from discreet.ledger.sqlite import File
from discreet.mechanisms import GaussianThreshold, LaplaceThreshold, Quantile, RandomizedResponse
from discreet.noise import Items, Stream
from discreet.sql.values import Number

F = Fraction


def test_no_budget_no_delta_for_keys() -> None:
    assert delta_for_keys(F(1), of=Charge(amount=F(0), delta=F(1, 10))) == 0


def test_thresholds_need_a_delta_that_is_one() -> None:
    with pytest.raises(UsageError, match="delta must be below"):
        LaplaceThreshold(scale=F(2), linf=1, max_groups=1, neighbors="add_remove", delta=F(1, 2))


def test_tails_of_gaussian_noise_end_somewhere() -> None:
    """A δ that no table and no series of reasonable length reaches is refused, not rounded to zero."""
    tiny = GaussianThreshold(sigma=F(99), linf=1, max_groups=1, neighbors="add_remove", delta=F(1, 2**7000))
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
