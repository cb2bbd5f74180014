"""Judge whether a finding holds on a table, by running its assertion on public rows, real or
synthetic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from discreet.engines.duckdb.workbench import Workbench
from discreet.errors import EngineFailure, Rejected, UsageError
from discreet.evaluate.assertion import FITS, Assertion, FitNumber
from discreet.evaluate.findings import Finding
from discreet.evaluate.statistics import Fit, Floats, Number, logit, ols, spearman
from discreet.synthetic.released import ReadyQuestion, prepare

_NOT_RUN = "The engine could not run it on this table. Compare numbers with numbers, and cast what is none."


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a finding holds on one table. If its assertion is NULL, it does not hold."""

    holds: bool
    value: Number
    gaps: tuple[Number, ...]
    null: bool = False  # the assertion is NULL: a division by zero, a mean of nobody, no such fit


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """The statements of an assertion, planned for tables with certain columns."""

    samples: Mapping[str, ReadyQuestion]  # for each statistic, by the SQL of its columns
    claim: ReadyQuestion


class Judge:
    """Tests assertions on any number of tables. It plans each assertion once for tables with the
    same columns.
    """

    def __init__(self) -> None:
        self._workbench = Workbench()
        self._readings: dict[tuple[Assertion, tuple[str, ...]], _Reading] = {}

    def verdict(self, assertion: Assertion, table: pa.Table) -> Verdict:
        """Test an assertion on one table; raise UsageError if it cannot run on it."""
        try:
            return self._verdict(assertion, table)
        except Rejected as error:
            raise UsageError(f"{error.reason} {error.hint}".strip()) from None
        except EngineFailure:
            raise UsageError(_NOT_RUN) from None

    def judge(self, finding: Finding, table: pa.Table) -> Verdict:
        """Test a finding on one table; the message of an error names the finding."""
        try:
            return self.verdict(finding.assertion, table)
        except UsageError as error:
            raise UsageError(f"Finding {finding.number}: {error}") from None

    def _verdict(self, assertion: Assertion, table: pa.Table) -> Verdict:
        types = tuple(f"{each.name} {each.type}" for each in table.schema)
        reading = self._readings.get((assertion, types))
        if reading is None:
            reading = self._readings[assertion, types] = self._read(assertion, table)
        tables = {assertion.table: table, FITS: _statistics(assertion, reading, table)}
        found = reading.claim.ask(tables)
        if found.num_rows != 1:
            raise UsageError(f"The assertion returned {found.num_rows} rows; it must return one.")
        [row] = found.to_pylist()
        # not 1 or 0, which are equal to True and False
        if row["holds"] is not None and not isinstance(row["holds"], bool):
            raise UsageError(
                "The assertion is neither true nor false. Compare two numbers, as in AVG(a) > AVG(b)."
            )
        return Verdict(
            holds=row["holds"] is True,
            null=row["holds"] is None,
            value=_number(row.get("value")),
            gaps=tuple(_number(row.get(f"gap{index}")) for index in range(assertion.gaps)),
        )

    def _read(self, assertion: Assertion, table: pa.Table) -> _Reading:
        """Plan the statements of an assertion.

        Run the claim once with its gaps, the differences of the compared values. If that fails,
        plan it without gaps: texts can be compared, but not subtracted.
        """
        rows = {assertion.table: table}
        samples = {
            each.sql: prepare(each.sql, rows, self._workbench) for each in assertion.statistics
        }
        blank = _row([None] * len(assertion.statistics))
        tables = {**rows, FITS: blank}
        claim = prepare(assertion.sql, tables, self._workbench)
        try:
            claim.ask(tables)
        except EngineFailure:
            claim = prepare(assertion.without_gaps, tables, self._workbench)
        return _Reading(samples=samples, claim=claim)


def _statistics(assertion: Assertion, reading: _Reading, table: pa.Table) -> pa.Table:
    """Return a table with one row, which has the statistics of an assertion. A regression of which
    several numbers are used is computed once.
    """
    fits: dict[tuple[str, str], Fit | Number] = {}
    numbers = []
    for each in assertion.statistics:
        key = (each.kind, each.sql)
        if key not in fits:
            fits[key] = _compute(each, reading.samples[each.sql].ask({assertion.table: table}))
        found = fits[key]
        numbers.append(found.field(each.field, each.place) if isinstance(found, Fit) else found)
    return _row(numbers)


def _row(numbers: list[Number]) -> pa.Table:
    """Return a table of one row with these numbers; without any, it has a column of NULL."""
    columns = {
        f"value{index}": pa.array([each], pa.float64()) for index, each in enumerate(numbers)
    }
    return pa.table(columns or {"nothing": pa.array([None], pa.float64())})


def _compute(statistic: FitNumber, sample: pa.Table) -> Fit | Number:
    columns = [_floats(column) for column in sample.columns]
    if statistic.kind == "SPEARMAN":
        return spearman(columns[0], columns[1])
    return (ols if statistic.kind == "OLS" else logit)(columns[0], columns[1:])


def _floats(column: pa.ChunkedArray) -> Floats:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        if not pa.types.is_boolean(kind):
            raise UsageError(
                f"A statistic takes numbers, not {kind}: write a condition, such as sex = 'female'."
            )
        column = column.cast(pa.int8())
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def _number(value: object) -> Number:
    """Return a value as a float; None for NULL, NaN and values that are no numbers."""
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return None if math.isnan(found) else found
