"""Answers as analysts get them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from discreet.budget import Budget
from discreet.errors import UsageError
from discreet.mechanisms import to_row
from discreet.mechanisms.shapes import Mechanism

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from discreet.pages.piece import Piece


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Answer:
    """A noisy table, the margins of its numbers, and its cost.

    `margins` has the table's shape: the half-width of a 95 % interval, NULL for keys. `selected`
    marks rows that passed a threshold, HAVING or LIMIT: for them coverage holds before selection.
    `cost` is what the answer took, `left` what the analyst has left. `certificate` holds what an
    auditor checks. The ledger has the answer under `id`.
    """

    table: pa.Table
    margins: pa.Table
    selected: tuple[bool, ...]
    cost: Budget
    left: Budget
    certificate: dict[str, Any]
    id: str

    def as_json(self) -> dict[str, Any]:
        ranks = self._ranks()
        return {
            "columns": self.table.column_names,
            "rows": [[plain(value) for value in row] for row in _rows_of(self.table)],
            "margins": _rows_of(self.margins),
            **({"ranks": ranks} if ranks else {}),
            "selected": list(self.selected),
            "cost": self.cost.as_json(),
            "left": self.left.as_json(),
            "answer_id": self.id,
        }

    def _ranks(self) -> dict[str, dict[str, Any]]:
        """Return the margins of quantiles, in ranks.

        `told` is false in rows whose group may be too small for the margin to say anything.
        """
        beside = self.certificate.get("beside_ranks", {})
        return {
            name: {"ranks": ranks, **beside.get(name, {}), "told": ranks_tell(self, name)}
            for name, ranks in self.certificate.get("ranks", {}).items()
        }

    def __str__(self) -> str:
        from discreet.display.show import answer_text

        return answer_text(self)

    def __repr__(self) -> str:
        rows = self.table.num_rows
        columns = self.table.num_columns
        plural = "" if rows == 1 else "s"
        return f"<Answer {self.id}: {rows:,} row{plural} of {columns}, cost {self.cost}>"

    def _repr_html_(self) -> str:
        from discreet.display.chart import chart_of
        from discreet.display.show import answer_html

        return answer_html(self, chart_of(self))

    def plot(self, measure: str | None = None) -> Piece:
        """Plot a measure, by default the first: bars with error bars, or over time lines with
        bands.
        """
        from discreet.display.chart import plot_of

        return plot_of(self, measure)

    def to_pandas(self, *, margins: bool = False) -> pd.DataFrame:
        """Return the table as a data frame.

        With `margins`, a column `n_margin` follows each column n that has margins.
        """
        _require("pandas")
        return self._flat(margins=margins).to_pandas()

    def to_polars(self, *, margins: bool = False) -> pl.DataFrame:
        """Return the table as a data frame of Polars; `margins` as in `to_pandas`."""
        _require("polars")
        import polars

        found = polars.from_arrow(self._flat(margins=margins))
        assert isinstance(found, polars.DataFrame)
        return found

    def _flat(self, *, margins: bool) -> pa.Table:
        if not margins:
            return self.table
        names, columns = [], []
        for name, values, halves in zip(
            self.table.column_names, self.table.columns, self.margins.columns, strict=True
        ):
            names.append(name)
            columns.append(values)
            if halves.null_count < len(halves):
                names.append(f"{name}_margin")
                columns.append(halves)
        return pa.Table.from_arrays(columns, names=names)


def _rows_of(table: pa.Table) -> list[list[Any]]:
    """Return the rows of a table as Python values."""
    columns = [column.to_pylist() for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def ranks_tell(answer: Answer, name: str) -> list[bool | None]:
    """Return for each row whether a quantile's margin in ranks says anything.

    It does if, with 97.5 % confidence, the group has more rows than the margin needs. None if no
    column of the answer counts the group's rows.
    """
    beside = answer.certificate.get("beside_ranks", {}).get(name, {})
    if "counted" not in beside:
        return [None] * answer.table.num_rows
    counts = answer.table.column(beside["counted"]).to_pylist()
    margins = answer.margins.column(beside["counted"]).to_pylist()
    return [
        None if count is None or margin is None else count - margin > beside["rows"]
        for count, margin in zip(counts, margins, strict=True)
    ]


def _require(package: str) -> None:
    """Refuse if an optional package is missing, with the command that installs it."""
    if find_spec(package) is None:
        raise UsageError(f"{package} is not installed. Type: pip install {package}")


def plain(value: Any) -> Any:
    """Return a value in JSON's types.

    Large integers, decimals and intervals become text, dates ISO text, bytes hex; lists and structs
    are converted item by item.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= 2**53 else str(value)
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, pa.MonthDayNano):  # a tuple too, so test it first
        return _interval(value)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _interval(value: pa.MonthDayNano) -> str:
    """Write an interval as DuckDB does, each part with its own sign: 1 year 3 months -2 days
    00:00:01.5.
    """
    years, months = divmod(abs(value.months), 12)
    sign = -1 if value.months < 0 else 1
    parts = ((sign * years, "year"), (sign * months, "month"), (value.days, "day"))
    words = [f"{count} {name}{'' if abs(count) == 1 else 's'}" for count, name in parts if count]
    if value.nanoseconds or not words:
        seconds, nanoseconds = divmod(abs(value.nanoseconds), 10**9)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        part = f".{nanoseconds:09}".rstrip("0").rstrip(".")
        words.append(("-" if value.nanoseconds < 0 else "") + clock + part)
    return " ".join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The part of an answer that is computed from stored noisy numbers, and so never changes."""

    table: pa.Table
    margins: pa.Table
    selected: bool
    certificate: dict[str, Any] = field(default_factory=dict)


def rows_used(mechanisms: Sequence[Mechanism]) -> list[dict[str, str]]:
    """Return mechanisms as the ledger stores them."""
    return [to_row(mechanism) for mechanism in mechanisms]
