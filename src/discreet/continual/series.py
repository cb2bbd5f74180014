"""The published periods of a release: values with margins, their cost, and files to hand on."""

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
    """Values with margins; the columns of `table` are period, the keys, publish, statistic, value,
    margin.

    `margin` is the half-width of a 95 % interval. `noisy` are the integers that left, from which
    all else follows.
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
        """The number of published periods."""
        return len(self.noisy)

    @property
    def budget(self) -> Budget:
        """The cost of the whole horizon, charged before the first period."""
        return self.accountant.budget(self.cost)

    def consistent(self) -> Series:
        """Return revised values: no count below zero, and all sums agree with each other
        (`consistent`).
        """
        return replace(
            self, table=revise(self.schedule, self.asked, self.design, self.noisy, self.table)
        )

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
        """Write what is published as .json, .csv, .parquet or .html, by the file's ending."""
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
    """Return the rows of one period; none for None. A window is published from the first period
    that fills it.
    """
    cells = asked.block.cells
    stamp = pa.timestamp("s") if schedule.period == "hour" else pa.date32()
    begins = schedule.begins(period or 0)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("period", *asked.keys, "publish", "statistic", "value", "margin")
    }
    kinds = [
        (publish, each)
        for publish in schedule.publish
        for each in asked.statistics
        if period is not None
    ]
    for (publish, each), numbers, margin in zip(kinds, values, margins, strict=True):
        if isinstance(publish, int) and period is not None and period + 1 < publish:
            continue
        columns["period"] += [begins if schedule.period == "hour" else begins.date()] * cells
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
