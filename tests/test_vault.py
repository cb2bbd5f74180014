"""The vault refuses a mechanism that claims less than one person moves its statistic: nothing is
opened, or leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.accounting import SumAccountant, ZcdpAccountant
from discreet.asking import offer
from discreet.binding import create_ledger
from discreet.budget import Charge, Loss
from discreet.continual.strategies.independent import Independent
from discreet.errors import EngineFailure, Unproved
from discreet.mechanisms import MECHANISMS, DiscreteLaplace, FineQuantile, Quantile
from discreet.mechanisms.currency import CURRENCIES, currency
from discreet.mechanisms.shapes import (
    Additive,
    Integers,
    Keys,
    Movement,
    Norm,
    PersonRows,
    Scores,
    Sensitivity,
)
from discreet.noise import Items, Stream
from discreet.policy.policy import Policy
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact
from small_town import POLICY, town

F = Fraction
PAID = Charge(amount=F(100), delta=F(1, 10))
ACCOUNTANTS = {"sum": SumAccountant(), "zcdp": ZcdpAccountant(delta_convert=F(1, 100))}


def closed() -> Iterator[pa.Table]:
    raise AssertionError("exact values were opened")
    yield


def moved(times: int) -> Movement:
    return Movement(l1=3 * times, l2_squared=9 * times**2)


def rows(most: int) -> PersonRows:
    return PersonRows(most=most, groups=2, neighbors="add_remove")


def quantile(kind: Any, most: int) -> Any:
    own = {"reach": 9} if kind is FineQuantile else {"choice": "exponential"}
    return kind(epsilon=F(1), q=F(1, 2), cells=4, max_rows=most, neighbors="add_remove", **own)


# claimed for so much, of a statistic that moves so much
Release = Callable[[Allowance, str, int, int, Exact], object]
NOTHING: dict[str, Any] = {"cells": [np.arange(2)], "models": [np.array([1, 2])]}
RELEASES: dict[str, tuple[Release, pa.Table]] = {
    "measure": (
        lambda allowance, name, claim, real, exact: allowance.measure(
            currency(name).noise(amount=F(1), moved=moved(claim)),
            exact,
            moved=moved(real),
            sizes=[2],
            forms=[(1,)],
        ),
        pa.table({"k0": [0, 1], "s0": [1, 2]}),
    ),
    "steps": (
        lambda allowance, name, claim, real, exact: allowance.steps(
            currency(name).noise(amount=F(1), moved=moved(claim)),
            Independent(periods=2).encoder(),
            moved=moved(real),
            sizes=[2],
            forms=[(1,)],
        ).release(exact),
        pa.table({"k0": [0, 1], "s0": [1, 2]}),
    ),
    "threshold": (
        lambda allowance, name, claim, real, exact: allowance.threshold(
            currency(name).people(
                amount=F(1), max_groups=claim, neighbors="add_remove", delta=F(1, 50)
            ),
            exact,
            moved=Keys(most=real, neighbors="add_remove"),
            keys=1,
        ),
        pa.table({"k0": ["a", "b"], "s0": [1, 2]}),
    ),
    "choose": (
        lambda allowance, name, claim, real, exact: allowance.choose(
            quantile(Quantile, claim), exact, moved=rows(real), sizes=[2], cells=4
        ),
        pa.table({"k0": [0, 1], "k1": [1, 2], "s0": [1, 2]}),
    ),
    "choose a mode": (
        lambda allowance, name, claim, real, exact: allowance.choose(
            currency(name).choice(amount=F(1), moved=rows(claim).scores),
            exact,
            moved=rows(real),
            sizes=[2],
            cells=4,
        ),
        pa.table({"k0": [0, 1], "k1": [1, 2], "s0": [1, 2]}),
    ),
    "choose_near": (
        lambda allowance, name, claim, real, exact: allowance.choose_near(
            quantile(FineQuantile, claim), exact, moved=rows(real), sizes=[2]
        ),
        pa.table({"k0": [0, 1], "k1": [1, 2], "s0": [1, 2], "s1": [0, 0], "s2": [1, 2]}),
    ),
    "marginal": (
        lambda allowance, name, claim, real, exact: allowance.marginal(
            currency(name).noise(amount=F(1), moved=moved(claim)),
            exact,
            moved=moved(real),
            cells=np.arange(2),
            size=2,
        ),
        pa.table({"k0": [0, 1], "s0": [1, 2]}),
    ),
    "distances": (
        lambda allowance, name, claim, real, exact: allowance.distances(
            currency(name).noise(amount=F(1), moved=moved(claim)),
            [exact],
            moved=moved(real),
            **NOTHING,
        ),
        pa.table({"k0": [0, 1], "s0": [1, 2]}),
    ),
    "sums": (
        lambda allowance, name, claim, real, exact: allowance.sums(
            currency(name).noise(amount=F(1), moved=moved(claim)),
            [exact],
            moved=moved(real),
            points=[np.arange(2)],
        ),
        pa.table({"k0": [0, 1], "s0": [1, 2]}),
    ),
    "farthest": (
        lambda allowance, name, claim, real, exact: allowance.farthest(
            currency(name).choice(amount=F(1), moved=Scores(linf=5 * claim, monotone=False)),
            [exact],
            moved=real,
            **NOTHING,
            factors=[5],
            expected=[0],
        ),
        pa.table({"k0": [0, 1], "s0": [1, 2]}),
    ),
}


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("name", RELEASES)
def test_a_smaller_claim_releases_nothing(name: str, accountant: str) -> None:
    """The same release with a claim that is large enough leaves, so it is the claim that is
    refused.
    """
    release, table = RELEASES[name]
    allowance = Allowance(key=bytes(32), accountant=ACCOUNTANTS[accountant], paid=PAID)  # type: ignore[arg-type]
    with pytest.raises(Unproved, match="claims less than one person moves"):
        release(allowance, accountant, 1, 2, Exact(closed()))
    assert (allowance.used, allowance.left) == ((), PAID)
    release(allowance, accountant, 2, 2, Exact(table))
    release(allowance, accountant, 3, 2, Exact(table))
    assert len(allowance.used) == 2


@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
def test_noise_for_half_a_person_gives_no_answer(
    accountant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The noise costs what it should and is half of what the statistic needs: it is charged, and
    nothing leaves.
    """
    curator = small(tmp_path, accountant)
    real = offer._choose_noise

    def less(measurement: Any, paid: Any, share: Fraction) -> Any:
        sensitivity = measurement.sensitivity
        half = Movement(l1=F(sensitivity.l1) / 2, l2_squared=F(sensitivity.l2_squared) / 4)
        return real(replace(measurement, sensitivity=half), paid, share)

    monkeypatch.setattr(offer, "_choose_noise", less)
    with pytest.raises(EngineFailure):
        curator.ask("SELECT COUNT(*) FROM people", analyst="alice", epsilon=1)
    monkeypatch.undo()
    answer = curator.ask("SELECT COUNT(*) + 0 FROM people", analyst="alice", epsilon=1)
    assert answer.table.num_rows == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubled:
    """A newcomer: discrete Laplace noise that is twice as wide as it need be."""

    half_scale: Fraction
    l1: Fraction

    norm: ClassVar[Norm] = "l1"
    words: ClassVar[str] = "doubled noise of scale"
    gaussian: ClassVar[bool] = False
    reaches: ClassVar[tuple[tuple[int, Fraction], ...]] = ()

    @property
    def _noise(self) -> DiscreteLaplace:
        return DiscreteLaplace(scale=2 * self.half_scale, l1=self.l1)

    @property
    def spread(self) -> Fraction:
        return self._noise.spread

    @property
    def deviation(self) -> float:
        return self._noise.deviation

    def hides(self, moved: Sensitivity) -> bool:
        return self._noise.hides(moved)

    def loss(self) -> Loss:
        return Loss(epsilon=self.l1 / self.half_scale, rho=None)

    def add_to(self, values: Integers, stream: Stream, items: Items) -> Integers:
        return self._noise.add_to(values, stream, items)

    def log_mass(self, z: int) -> float:
        return self._noise.log_mass(z)

    def margin(self, confidence: Fraction | float) -> int:
        return self._noise.margin(confidence)


def test_a_new_mechanism_is_used_without_a_word_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bought by the currency, it is offered, explained, run, put on margins and certified by its
    own name.
    """

    class Newer(type(CURRENCIES["sum"])):  # type: ignore[misc]
        def noise(self, *, amount: Fraction, moved: Sensitivity) -> Additive:
            return Doubled(half_scale=F(moved.l1 or 0) / amount, l1=F(moved.l1 or 0))

    curator = small(tmp_path, "sum")
    monkeypatch.setitem(CURRENCIES, "sum", Newer())
    monkeypatch.setattr("discreet.mechanisms.MECHANISMS", (*MECHANISMS, Doubled))
    sql = "SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM people GROUP BY sex"
    assert "add doubled noise of scale 16" in curator.explain(
        "SELECT COUNT(*) FROM people", analyst="alice", epsilon="1/8"
    )
    answer = curator.ask(
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", analyst="alice", epsilon="1/8"
    )
    assert (
        answer.margins.column("n").to_pylist()
        == [Doubled(half_scale=F(8), l1=F(1)).margin(0.95)] * 2
    )
    assert {row["mechanism"] for row in answer.certificate["mechanisms"]} == {"Doubled"}
    assert all(
        margin > 0
        for margin in curator.ask(sql, analyst="alice", epsilon=1).margins.column("age").to_pylist()
    )


def small(folder: Path, accountant: str) -> discreet.Curator:
    path = folder / "policy.yaml"
    path.write_text(POLICY.replace("NEIGHBORS", "add_remove").replace("ACCOUNTANT", accountant))
    create_ledger(Policy.read(path))
    return discreet.open(path, tables=town(victim=True))
