"""The published periods of a release: values with margins, their cost, and files of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from discreet.accounting import Accountant
from discreet.budget import Budget, Charge
from discreet.continual.consistent import revise
from discreet.continual.design import Design
from discreet.continual.question import PeriodQuestion
from discreet.errors import UsageError
from discreet.files import replacing, write_file
from discreet.policy.schedule import Schedule
from discreet.vault.answer import plain


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """The published values of a release.

    The columns of `table` are period, the keys, publish, statistic, value and margin, which is the
    half-width of a 95 % interval. `noisy` are the noisy integers from which all of it is computed.
    """

    schedule: Schedule
    design: Design
    asked: PeriodQuestion
    accountant: Accountant
    cost: Charge
    noisy: tuple[Any, ...]
    table: pa.Table

    @property
    def periods(self) -> int:
        """Return the number of published periods."""
        return len(self.noisy)

    @property
    def budget(self) -> Budget:
        """Return the cost of the whole release, which was charged before the first period."""
        return self.accountant.budget(self.cost)

    def consistent(self) -> Series:
        """Return the series with revised values: no count is below zero, and all sums agree."""
        table = revise(self.schedule, self.asked, self.design, self.noisy, self.table)
        return replace(self, table=table)

    def as_json(self) -> dict[str, Any]:
        rows = zip(*(column.to_pylist() for column in self.table.columns), strict=True)
        return {
            "release": self.schedule.name,
            "strategy": self.design.strategy.name,
            "published": self.periods,
            "periods": self.schedule.periods,
            "cost": self.budget.as_json(),
            "columns": self.table.column_names,
            "rows": [[plain(value) for value in row] for row in rows],
        }

    def save(self, path: str | Path) -> None:
        """Write the published values to a .json, .csv, .parquet or .html file."""
        import pyarrow.csv
        import pyarrow.parquet

        from discreet.continual.page import page

        path = Path(path)
        match path.suffix:
            case ".json":
                write_file(path, json.dumps(self.as_json(), ensure_ascii=False))
            case ".csv":
                with replacing(path) as file:
                    pyarrow.csv.write_csv(self.table, file)
            case ".parquet":
                with replacing(path) as file:
                    pyarrow.parquet.write_table(self.table, file)
            case ".html":
                write_file(path, page(self))
            case _:
                raise UsageError(f"{path.name} should end in .json, .csv, .parquet or .html.")


def rows_to_publish(
    schedule: Schedule,
    asked: PeriodQuestion,
    period: int | None,
    values: Sequence[Any],
    margins: Sequence[float],
) -> pa.Table:
    """Return the rows of one period, or an empty table if the period is None.

    The sum of a window has a row only from the first period on that fills the window.
    """
    cells = asked.block.cells
    hourly = schedule.period == "hour"
    stamp = pa.timestamp("s") if hourly else pa.date32()
    begins = schedule.begins(period or 0)
    names = ("period", *asked.keys, "publish", "statistic", "value", "margin")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    kinds = []
    if period is not None:
        kinds = [(publish, each) for publish in schedule.publish for each in asked.statistics]
    for (publish, each), numbers, margin in zip(kinds, values, margins, strict=True):
        if isinstance(publish, int) and period is not None and period + 1 < publish:
            continue
        columns["period"] += [begins if hourly else begins.date()] * cells
        for name, labels in asked.keys.items():
            columns[name] += labels.to_pylist()
        columns["publish"] += [str(publish)] * cells
        columns["statistic"] += [each.name] * cells
        columns["value"] += [float(number) for number in numbers]
        columns["margin"] += [margin] * cells
    types = {
        "period": stamp,
        "publish": pa.string(),
        "statistic": pa.string(),
        "value": pa.float64(),
    }
    types |= {"margin": pa.float64()} | {name: labels.type for name, labels in asked.keys.items()}
    return pa.table({name: pa.array(column, types[name]) for name, column in columns.items()})
