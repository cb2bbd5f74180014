"""Our conversions give what pyarrow's give, and a question imports no pandas."""

from __future__ import annotations

import subprocess
import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import arrow
from small_town import POLICY, town

CASES: tuple[tuple[Any, pa.DataType | None, Any], ...] = (
    (np.arange(5), None, None),
    (np.array([1.5, 2.0, np.nan]), None, np.array([True, False, False])),
    (np.array([True, False, True] * 7), None, None),
    (np.array([3, 4], dtype=object), pa.int64(), None),
    (np.arange(3, dtype=np.int64), pa.int64(), np.array([False, False, True])),
    ([1, None, 3], None, None),
    ([1.0, None], pa.float64(), None),
    (["a", None, "ü", "", "𝛆"], None, None),
    (["a", None], pa.large_string(), None),
    ([True, None, False], None, None),
    (
        [Decimal("1.25"), None, Decimal("-123456789012345678901234567890123456.78")],
        pa.decimal128(38, 2),
        None,
    ),
    ([date(2020, 2, 29), None, date(1, 1, 1), date(9999, 12, 31)], pa.date32(), None),
    ([datetime(2020, 1, 1, 3, 0, 0, 7), None, datetime(1, 1, 1)], pa.timestamp("us"), None),
    ([None, None], None, None),
    ([], pa.string(), None),
    ([], pa.int64(), None),
    (np.zeros(0), None, None),
)


@pytest.mark.parametrize(("values", "kind", "mask"), CASES, ids=range(len(CASES)))
def test_the_same_columns_as_pyarrow(values: Any, kind: pa.DataType | None, mask: Any) -> None:
    ours, theirs = arrow.array(values, kind, mask=mask), pa.array(values, kind, mask=mask)
    ours.validate(full=True)
    assert ours.type == theirs.type
    assert str(ours.to_pylist()) == str(theirs.to_pylist())
    for value in theirs.to_pylist():
        assert str(arrow.scalar(value, theirs.type).as_py()) == str(value)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.int64(), pa.float64(), pa.bool_()])
def test_the_same_numbers_as_numpy(kind: pa.DataType) -> None:
    column = pa.array([1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 1]).cast(kind)
    for view in (column, column.slice(3), column.slice(2, 5), column.slice(11)):
        assert arrow.numbers(view).tolist() == view.to_numpy(zero_copy_only=False).tolist()
    chunks = pa.chunked_array([column.slice(1, 2), column.slice(0, 0), column])
    assert arrow.numbers(chunks).tolist() == chunks.to_numpy().tolist()
    assert arrow.numbers(pa.chunked_array([], type=kind)).tolist() == []


def test_nulls_are_zero_or_nan() -> None:
    assert arrow.numbers(pa.array([None, 2, None, 4]).slice(1)).tolist() == [2, 0, 4]
    assert np.isnan(arrow.numbers(pa.array([None, 2.0]))).tolist() == [True, False]
    assert arrow.numbers(pa.array([None, True, False])).tolist() == [False, True, False]


ASK = """
import sys, discreet
curator = discreet.open(sys.argv[1])
for sql in (
    "SELECT COUNT(*) FROM people",
    "SELECT sex, COUNT(*) AS n, AVG(income) AS m FROM people GROUP BY sex HAVING n > 1 ORDER BY m",
    "SELECT zip, COUNT(*), SUM(income) FROM people GROUP BY zip",
    "SELECT MEDIAN(age), MAX(income), SUM(income) / COUNT(*) FROM people",
):
    str(curator.quote(sql, analyst="alice", epsilon=1, assuming=100))
    str(curator.ask(sql, analyst="alice", epsilon=1))
print([name for name in ("pandas", "scipy", "matplotlib") if name in sys.modules])
"""


def test_no_question_imports_pandas(tmp_path: Path) -> None:
    from discreet.binding import create_ledger
    from discreet.policy.policy import Policy

    (tmp_path / "data").mkdir()
    for name, table in town(victim=True).items():
        pq.write_table(table, tmp_path / "data" / f"{name}.parquet")
    policy = tmp_path / "policy.yaml"
    text = POLICY.replace("NEIGHBORS", "add_remove").replace("ACCOUNTANT", "sum")
    policy.write_text(f"source: data\n{text}", encoding="utf-8")
    create_ledger(Policy.read(policy))
    found = subprocess.run(
        [sys.executable, "-c", ASK, str(policy)], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
