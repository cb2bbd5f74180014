"""Questions of every kind that gets a margin, answered many times at once: 200 groups, each with
noise of its own.

`python tests/coverage_kinds.py [answers]` prints the table of docs/audit.md: 20,000 answers of each
kind, and as many times more of answers that share noise, in minutes.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet
from discreet.asking.measure import measure
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.sql.aggregates import AGGREGATES
from discreet.vault.allowance import Allowance

GROUPS, EACH, EPSILON = 200, 60, "0.5"
ACCOUNTANTS = ("sum", "zcdp")
POLICY = """\
source: data
unit: person
budget: {{accountant: {accountant}, epsilon: 1000, delta: 0.001}}
limits: {{epsilon: 10}}
tables:
  people:
    owner: person_id
    columns:
      person_id: {{identifier: true}}
      g: {{integer: [0, 199]}}
      word: text
      sex: {{values: [F, M]}}
      smoker: {{boolean: true}}
      age: {{integer: [0, 99]}}
      balance: {{integer: [-50, 50]}}
      income: {{decimal: [0, 1000], step: 0.01}}
      month: {{integer: [1, 12]}}
analysts:
  alice: {{epsilon: 1000, delta: 0.001}}
"""
_PLAIN = {
    "count": "COUNT(*)",
    "filtered count": "COUNT(*) FILTER (WHERE smoker)",
    "people": "COUNT(DISTINCT person_id)",
    "distinct values": "COUNT(DISTINCT age)",
    "sum": "SUM(age)",
    "sum of both signs": "SUM(balance)",
    "sum in hundredths": "SUM(income)",
    "mean": "AVG(age)",
    "mean of both signs": "AVG(balance)",
    "variance": "VARIANCE(age)",
    "variance of all": "VAR_POP(balance)",
    "deviation": "STDDEV(income)",
    "covariance": "COVAR_POP(age, income)",
    "covariance of a sample": "COVAR_SAMP(age, income)",
    "correlation": "CORR(age, income)",
    "geometric mean": "GEOMEAN(age + 1)",
    "harmonic mean": "HARMONIC_MEAN(age + 1)",
    "negated sum": "-SUM(income)",
    "count and a constant": "COUNT(*) + 1",
    "multiple": "SUM(age) * 12",
    "part": "SUM(income) / 7",
    "difference": "COUNT(*) FILTER (WHERE smoker) - COUNT(*) FILTER (WHERE NOT smoker)",
    "sum of three": "COUNT(*) + SUM(age) + SUM(balance)",
    "rounded": "ROUND(SUM(income) / 7, 1)",
    "cast": "CAST(SUM(income) AS INTEGER)",
    "whole division": "SUM(age) // 10",
    "no less than zero": "GREATEST(COUNT(*) - 60, 0)",
    "distance": "ABS(COUNT(*) - 60)",
    "twice a mean": "2 * AVG(age) + 1",
    "share": "100.0 * COUNT(*) FILTER (WHERE smoker) / COUNT(*)",
    "ratio of sums": "SUM(income) / SUM(age)",
    "sum per head": "SUM(age) / COUNT(*)",
    "difference of means": "AVG(age) FILTER (WHERE smoker) - AVG(age) FILTER (WHERE NOT smoker)",
    "product": "COUNT(*) * SUM(age)",
    "root": "SQRT(COUNT(*) + 1000)",
    "case": "CASE WHEN COUNT(*) > 55 THEN COUNT(*) ELSE 0 END",
    "logarithm": "LN(SUM(age))",
}
_T = "WITH t AS (SELECT g, COUNT(*) AS n FROM people GROUP BY g)"
_GROUPED = "SELECT g, {} AS x FROM people GROUP BY g"
_OF_MANY = {  # what few rows do not tell
    "slope": "REGR_SLOPE(income, age)",
    "intercept": "REGR_INTERCEPT(income, age)",
    "share explained": "REGR_R2(income, age)",
    "skewness": "SKEWNESS(age)",
    "kurtosis": "KURTOSIS(age)",
    "kurtosis of all": "KURTOSIS_POP(age)",
}
_LARGER = "SELECT g // 40 AS h, {} AS x FROM people GROUP BY h"
KINDS = {
    **{name: _GROUPED.format(expression) for name, expression in _PLAIN.items()},
    **{name: _LARGER.format(expression) for name, expression in _OF_MANY.items()},
    "count beside a mean": "SELECT g, AVG(age) AS m, COUNT(*) AS x FROM people GROUP BY g",
    "sum beside a variance": "SELECT g, VARIANCE(age) AS m, SUM(age) AS x FROM people GROUP BY g",
    "parts of one vector": "SELECT g, AVG(age) AS m, SUM(age) - 40 * COUNT(*) AS x FROM people GROUP BY g",
    "rolled up count": "SELECT g, sex, COUNT(*) AS x FROM people GROUP BY ROLLUP (g, sex)",
    "rolled up sum": "SELECT g, sex, -SUM(balance) AS x FROM people GROUP BY CUBE (g, sex)",
    "rolled up mean": "SELECT g, sex, AVG(age) AS x FROM people GROUP BY ROLLUP (g, sex)",
    "unknown keys": "SELECT word, COUNT(*) AS x FROM people GROUP BY word",
    "sum of unknown keys": "SELECT word, SUM(age) AS x FROM people GROUP BY word",
    "arithmetic of unknown keys": "SELECT word, 3 * COUNT(*) - SUM(age) AS x FROM people GROUP BY word",
    "two tables": (
        "SELECT a.g, a.n - b.n AS x FROM (SELECT g, COUNT(*) AS n FROM people WHERE smoker GROUP BY g) AS a "
        "JOIN (SELECT g, SUM(age) AS n FROM people GROUP BY g) AS b ON a.g = b.g"
    ),
    "one table twice": (
        "WITH t AS (SELECT g, COUNT(*) AS n FROM people GROUP BY g) "
        "SELECT a.g, a.n - b.n AS x FROM t AS a JOIN t AS b ON a.g = b.g + 1"
    ),
    "less a total": "SELECT g, COUNT(*) - (SELECT COUNT(*) / 200 FROM people WHERE smoker) AS x FROM people GROUP BY g",
    "outer arithmetic": (
        "SELECT g, 1 - r / 2 AS x FROM (SELECT g, COUNT(*) FILTER (WHERE smoker) * 1.0 / COUNT(*) AS r "
        "FROM people GROUP BY g) AS t"
    ),
    "share of the total": "SELECT g, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS x FROM people GROUP BY g",
    "share by a subquery": (
        "SELECT g, 100.0 * SUM(age) / (SELECT SUM(age) FROM people WHERE smoker) AS x FROM people GROUP BY g"
    ),
    "rounded share": (
        "SELECT g, sex, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY g), 1) AS x "
        "FROM people GROUP BY g, sex"
    ),
    "step from the row before": f"{_T} SELECT g, n - LAG(n) OVER (ORDER BY g) AS x FROM t",
    "change from the row before": f"{_T} SELECT g, n * 1.0 / LAG(n) OVER (ORDER BY g) - 1 AS x FROM t",
    "relative change": (
        f"{_T} SELECT g, 100.0 * (n - LAG(n) OVER (ORDER BY g)) / LAG(n) OVER (ORDER BY g) AS x FROM t"
    ),
    "running total": f"{_T} SELECT g, SUM(n) OVER (PARTITION BY g // 4 ORDER BY g) AS x FROM t",
    "running totals measured as such": (
        "SELECT g, month, SUM(COUNT(*)) OVER (PARTITION BY g ORDER BY month) AS x FROM people GROUP BY g, month"
    ),
    "numbers beside running totals": (
        "SELECT g, month, SUM(COUNT(*)) OVER (PARTITION BY g ORDER BY month) AS m, COUNT(*) AS x "
        "FROM people GROUP BY g, month"
    ),
    "moving average": (
        f"{_T} SELECT g, AVG(n) OVER (ORDER BY g ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS x FROM t"
    ),
    "less the mean": f"{_T} SELECT g, n - AVG(n) OVER () AS x FROM t",
    "sums of groups": f"{_T} SELECT g // 4 AS h, SUM(n) AS x FROM t GROUP BY h",
    "columns side by side": (
        "WITH t AS (SELECT g, sex, COUNT(*) AS n FROM people GROUP BY g, sex) "
        "SELECT g, SUM(CASE WHEN sex = 'F' THEN n ELSE 0 END) * 1.0 / SUM(n) AS x FROM t GROUP BY g"
    ),
    "quotient of two tables": (
        "SELECT a.g, a.n * 1.0 / b.n AS x FROM (SELECT g, COUNT(*) AS n FROM people WHERE smoker GROUP BY g) AS a "
        "JOIN (SELECT g, COUNT(*) AS n FROM people WHERE NOT smoker GROUP BY g) AS b ON a.g = b.g"
    ),
    "shares of a few": (
        "SELECT g, COUNT(*) FILTER (WHERE age > 50) * 1.0 / SUM(COUNT(*) FILTER (WHERE age > 50)) "
        "OVER (PARTITION BY g // 2) AS x FROM people GROUP BY g"
    ),
    "moving average of shares": (
        "SELECT g, AVG(COUNT(*) FILTER (WHERE smoker) * 1.0 / COUNT(*)) "
        "OVER (ORDER BY g ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS x FROM people GROUP BY g"
    ),
    "mean of quotients by few": (
        "SELECT g // 4 AS h, AVG(r) AS x FROM (SELECT g, COUNT(*) FILTER (WHERE smoker AND sex = 'F') * 1.0 "
        "/ COUNT(*) FILTER (WHERE smoker) AS r FROM people GROUP BY g) AS t GROUP BY h"
    ),
    "weighted mean of means": (
        "WITH t AS (SELECT g, sex, AVG(age) AS m, COUNT(*) AS n FROM people GROUP BY g, sex) "
        "SELECT g // 2 AS h, SUM(m * n) / SUM(n) AS x FROM t GROUP BY h"
    ),
    "mean of means": (
        "WITH t AS (SELECT g, sex, AVG(age) AS m FROM people GROUP BY g, sex) "
        "SELECT g // 2 AS h, AVG(m) AS x FROM t GROUP BY h"
    ),
    "sum of squares": (
        "WITH t AS (SELECT g, month, COUNT(*) AS n FROM people GROUP BY g, month) "
        "SELECT g, SUM(n * n) AS x FROM t GROUP BY g"
    ),
    "sum of squares of shares": (
        "WITH t AS (SELECT g, month // 7 AS half, sex, COUNT(*) AS n FROM people GROUP BY 1, 2, 3), "
        "s AS (SELECT g, POWER(n * 1.0 / SUM(n) OVER (PARTITION BY g), 2) AS p FROM t) "
        "SELECT g, SUM(p) AS x FROM s GROUP BY g"
    ),
    "mean of what rows meet": (
        f"{_T} SELECT p.g // 4 AS h, AVG(t.n) AS x FROM people p JOIN t ON t.g = p.g GROUP BY 1"
    ),
    "mean of small numbers that rows meet": (
        "WITH t AS (SELECT g, month, COUNT(*) AS n FROM people GROUP BY g, month) "
        "SELECT p.g, AVG(t.n) AS x FROM people p JOIN t ON t.g = p.g AND t.month = p.month GROUP BY p.g"
    ),
    "count of rows that meet": (
        f"{_T} SELECT p.g // 4 AS h, COUNT(*) AS x FROM people p JOIN t ON t.g = p.g GROUP BY 1"
    ),
    "beside a calendar": (
        f"{_T} SELECT s.g, COALESCE(t.n, 0) AS x FROM range(210) AS s(g) LEFT JOIN t ON t.g = s.g"
    ),
    "stacked": "SELECT g, COUNT(*) AS x FROM people GROUP BY g UNION ALL SELECT 999, 2 * SUM(age) FROM people",
}
# Answers of one question that share noise: within runs of so many, so that every 4th running total
# (of 4 each) is independent of the others. Answers of other kinds have noise of their own; what all
# of a question share, as a total in a share does, is a two-hundredth of it.
TOGETHER = {
    "one table twice": 2,
    "rolled up count": 3,
    "rolled up sum": 3,
    "rolled up mean": 3,
    "rounded share": 2,
    "step from the row before": 2,
    "change from the row before": 2,
    "relative change": 2,
    "running total": 4,
    "running totals measured as such": 12,
    "numbers beside running totals": 12,
    "moving average": 4,
    "moving average of shares": 4,
    "shares of a few": 2,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Of many answers: how many there were, how many had a margin, how many of these missed the
    truth.
    """

    answers: int
    told: int
    missed: int
    missed_by_fewer: int  # with 0.6 of the margin

    @property
    def coverage(self) -> float:
        return 1 - self.missed / max(self.told, 1)


@cache
def people() -> pa.Table:
    rng, size = np.random.default_rng(), GROUPS * EACH
    g = np.repeat(np.arange(GROUPS), EACH)
    age = np.clip(rng.normal(40, 15, size), 0, 99).astype(int)
    income = np.clip(rng.exponential(200, size) + 3 * age, 0, 1000)
    return pa.table(
        {
            "person_id": np.arange(size),
            "g": g,
            "word": [f"w{place % GROUPS:03}" for place in range(size)],
            "sex": rng.choice(["F", "M"], size),
            "smoker": rng.random(size) < 0.4,
            "age": age,
            "balance": rng.integers(-50, 51, size),
            "income": pa.array(
                [Decimal(round(value * 100)).scaleb(-2) for value in income], pa.decimal128(18, 2)
            ),
            "month": np.arange(size) % 12 + 1,
        }
    )


def written(folder: Path) -> Path:
    (folder / "data").mkdir(parents=True)
    target = folder / "data" / "people.parquet"
    pq.write_table(people(), target)
    return target


@cache
def curator(accountant: str) -> tuple[Curator, Path]:
    folder = Path(tempfile.mkdtemp(prefix="coverage"))
    data = written(folder)
    policy = folder / "policy.yaml"
    policy.write_text(POLICY.format(accountant=accountant))
    create_ledger(discreet.Policy.read(policy))
    return discreet.open(policy), data


def answered(kind: str, accountant: str, *, answers: int) -> Seen:
    """So many answers or a few more, each noised with a key of its own as `Curator.ask` does it."""
    made, data = curator(accountant)
    sql = KINDS[kind]
    offered = made._view.offer(sql, epsilon=EPSILON, margin=None, assuming=None)
    fetch = cache(made._view.fetch)
    connection = duckdb.connect()
    connection.sql(f"CREATE VIEW people AS SELECT * FROM '{data}'")
    for meaning in (member.meaning for member in AGGREGATES if member.meaning):
        connection.sql(f"CREATE MACRO {meaning}")
    truth = {row[:-1]: row[-1] for row in _rows(connection.sql(sql).to_arrow_table(), kind)}
    total = told = missed = fewer = 0
    while total < answers:
        allowance = Allowance(key=os.urandom(32), accountant=made._accountant, paid=offered.cost)
        sheet = made._view.finish(offered, measure(offered, allowance, fetch))
        margins = sheet.margins.column(sheet.margins.num_columns - 1).to_pylist()
        for row, margin in zip(_rows(sheet.table, kind), margins, strict=True):
            exact = truth[row[:-1]]
            total += 1
            if row[-1] is None or margin is None or exact is None:
                continue
            off = abs(float(row[-1]) - float(exact)) / (1 + 1e-9) - 1e-9
            told, missed, fewer = told + 1, missed + (off > margin), fewer + (off > 0.6 * margin)
    return Seen(answers=total, told=told, missed=missed, missed_by_fewer=fewer)


def _rows(table: pa.Table, kind: str) -> list[tuple[Any, ...]]:
    """Keys and the number that is looked at, which is the last column."""
    keys = [name for name in table.column_names[:-1] if name != "m"]
    return list(
        zip(
            *(table.column(name).to_pylist() for name in (*keys, table.column_names[-1])),
            strict=True,
        )
    )


def main(answers: int) -> None:
    print("| kind | `sum` | `zcdp` |\n|---|---|---|")
    for kind in KINDS:
        wanted = answers * TOGETHER.get(kind, 1)
        found = [answered(kind, accountant, answers=wanted) for accountant in ACCOUNTANTS]
        shown = [f"{100 * each.coverage:.2f} %" + _some(each) for each in found]
        print(f"| {kind} | {' | '.join(shown)} |", flush=True)


def _some(seen: Seen) -> str:
    return (
        ""
        if seen.told == seen.answers
        else f" ({100 * seen.told / seen.answers:.0f} % have a margin)"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
