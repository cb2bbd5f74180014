"""The attack `single_out` (Cohen, Nissim 2020): derive predicates from a release that are true of
exactly one person of the original.

Take predicates that are true of exactly one record of the release, and try them on the original
people. A predicate that singles out by luck does so as often among people who are not in the data.
They are the control, adjusted to the size of the original.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.attacks.experiment.dice import Dice
from discreet.attacks.experiment.nearest import encode
from discreet.attacks.experiment.trials import WIDTH, RiskFinding, until_narrow
from discreet.errors import UsageError

Rows = NDArray[np.float32]

BATCH = 500
MOST = 16_000  # predicates
MOST_TRIES = 100  # after so many batches, stop looking for more predicates


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predicates:
    """Predicates, one in each row: for each column a test, which is -1 (at most), 0 (equal), 1 (at
    least) or 2 (no test), and the value to compare with.
    """

    test: NDArray[np.int8]
    value: Rows

    def counts(self, rows: Rows) -> NDArray[np.int64]:
        """Return for each predicate the number of rows of which it is true."""
        found = np.empty(len(self.test), dtype=np.int64)
        columns = [np.ascontiguousarray(column) for column in rows.T]
        for i, (tests, values) in enumerate(zip(self.test, self.value, strict=True)):
            true = np.ones(len(rows), dtype=bool)
            for c in np.flatnonzero(tests != 2):
                column = columns[c]
                if tests[c] == 0:
                    true &= column == values[c]
                else:
                    true &= column >= values[c] if tests[c] == 1 else column <= values[c]
            found[i] = np.count_nonzero(true)
        return found


def single_out(
    release: pa.Table,
    original: pa.Table,
    control: pa.Table | None = None,
    *,
    columns: int = 3,
    width: float = WIDTH,
    trials: int | None = None,
) -> RiskFinding:
    """Derive predicates over `columns` random columns from the release, and try them on the
    original. Equal rows count once.
    """
    tables = [release, original]
    if control is not None:
        tables.append(control)
    coded = encode(*tables)
    if not 1 <= columns <= len(coded.names):
        raise UsageError(f"A predicate may use 1 to {len(coded.names)} columns, not {columns}.")
    rows = [np.unique(table, axis=0) for table in coded.rows]
    dice = Dice()
    made = _Singling(release=rows[0], numeric=coded.numeric, columns=columns, dice=dice)

    def inside(which: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray(made.fresh(len(which)).counts(rows[1]) == 1)

    def outside(_: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Try the same predicates on people who are not in the data."""
        counts = made.latest.counts(rows[2])
        return np.arange(len(counts)) < round(_adjust(counts, len(rows[1]) / len(rows[2])))

    return until_narrow(
        "single-out",
        inside,
        MOST,
        None if control is None else (outside, MOST),
        chance=_blind(rows[0], rows[1], coded.numeric, columns, dice),
        width=width,
        trials=trials,
    )


@dataclass(slots=True, kw_only=True)
class _Singling:
    """Makes distinct predicates as they are needed. Each is true of one record of the release."""

    release: Rows
    numeric: NDArray[np.bool_]
    columns: int
    dice: Dice
    seen: set[bytes] = field(default_factory=set)
    latest: Predicates = field(init=False)

    def fresh(self, wanted: int) -> Predicates:
        medians = np.median(self.release, axis=0)
        picked: list[tuple[NDArray[np.int8], Rows]] = []
        for _ in range(MOST_TRIES):
            drawn = _from_records(self.release, self.numeric, medians, self.columns, self.dice)
            for i in np.flatnonzero(drawn.counts(self.release) == 1):
                key = drawn.test[i].tobytes() + drawn.value[i].tobytes()
                if key not in self.seen and len(picked) < wanted:
                    self.seen.add(key)
                    picked.append((drawn.test[i], drawn.value[i]))
            if len(picked) >= wanted:
                break
        if not self.seen:
            raise UsageError("No predicate singles out a record of the release; use more columns.")
        width = self.release.shape[1]
        self.latest = Predicates(
            test=np.array([test for test, _ in picked], dtype=np.int8).reshape(-1, width),
            value=np.array([value for _, value in picked], dtype=np.float32).reshape(-1, width),
        )
        return self.latest


def _from_records(
    release: Rows, numeric: NDArray[np.bool_], medians: Rows, columns: int, dice: Dice
) -> Predicates:
    """Make predicates of random records. In numeric columns they test for the record's number or
    beyond, away from the median; in other columns for the record's value.
    """
    records = release[dice.below(len(release), BATCH)]
    chosen = np.argsort(dice.uniform(BATCH, release.shape[1]), axis=1)[:, :columns]
    sides = np.where(numeric, np.where(records > medians, 1, -1), 0).astype(np.int8)
    test = np.full(records.shape, 2, dtype=np.int8)
    np.put_along_axis(test, chosen, np.take_along_axis(sides, chosen, axis=1), axis=1)
    return Predicates(test=test, value=np.where(test == 2, np.float32(0), records))


def _blind(
    release: Rows, original: Rows, numeric: NDArray[np.bool_], columns: int, dice: Dice
) -> float:
    """Return the share of predicates with random values that single somebody out."""
    mixed = np.column_stack([column[dice.below(len(column), BATCH)] for column in release.T])
    chosen = np.argsort(dice.uniform(BATCH, release.shape[1]), axis=1)[:, :columns]
    sides = np.where(numeric, np.where(dice.uniform(*mixed.shape) < 0.5, 1, -1), 0).astype(np.int8)
    test = np.full(mixed.shape, 2, dtype=np.int8)
    np.put_along_axis(test, chosen, np.take_along_axis(sides, chosen, axis=1), axis=1)
    return float((Predicates(test=test, value=mixed).counts(original) == 1).mean())


def _adjust(counts: NDArray[np.int64], ratio: float) -> float:
    """Estimate how many predicates would single out somebody in a control as large as the original.

    A predicate's count among m strangers is Poisson. Fit the mixture of rates to all counts by
    maximum likelihood (EM over a grid). Then compute the expected number of predicates with a count
    of one among ratio * m strangers.
    """
    if ratio == 1:
        return float((counts == 1).sum())
    rates = np.concatenate([[1e-6], np.geomspace(1e-3, max(counts.max(), 1) * 2, 60)])
    seen, times = np.unique(counts, return_counts=True)
    log_factorial = np.array([np.log(np.arange(1, c + 1)).sum() for c in seen])
    likelihood = np.exp(seen[:, None] * np.log(rates) - rates - log_factorial[:, None])
    weights = np.full(len(rates), 1 / len(rates))
    for _ in range(500):
        share = likelihood * weights
        share /= share.sum(axis=1, keepdims=True)
        weights = times @ share / times.sum()
    return float(times.sum() * (weights @ (ratio * rates * np.exp(-ratio * rates))))
