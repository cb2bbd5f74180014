"""Public tables may hold anything: infinities, lists, numbers beyond 64 bits. Beside private rows
none of it fails.
"""

from __future__ import annotations

import math
import os
import random
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from . import worlds
from .check import verdict

COLUMNS = {
    "infinite": pa.array([1.0, math.inf, 2.0]),
    "not a number": pa.array([1.0, math.nan, 2.0]),
    "only infinite": pa.array([math.inf, -math.inf, None]),
    "large float": pa.array([1e300, 1.0, 2.0]),
    "large": pa.array([2**64 - 1, 1, 2], pa.uint64()),
    "far apart": pa.array([2**62, -(2**63), 1]),
    "decimal": pa.array(
        [Decimal("12345678901234567890123456789.5"), Decimal(1), Decimal(2)], pa.decimal128(38, 1)
    ),
    "list": pa.array([[1], [2], None]),
    "struct": pa.array([{"a": 1}, {"a": 2}, None]),
    "bytes": pa.array([b"\xff\x00", b"a", None]),
    "zoned": pa.array(
        [datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 5, tzinfo=UTC), None]
    ),
    "elsewhere": pa.array(
        [datetime(2024, 1, 1), datetime(2024, 7, 1), None], pa.timestamp("us", "America/New_York")
    ),
    "clocks put back": pa.array(
        [datetime(2024, 11, 3, 5, 30, tzinfo=UTC), datetime(2024, 11, 3, 6, 30, tzinfo=UTC), None],
        pa.timestamp("us", "America/New_York"),
    ),
    "nanoseconds": pa.array([1, 2, 1001], pa.timestamp("ns")),
    "single": pa.array([5e-7, 2.5e-6, 1.0], pa.float32()),
    "halves": pa.array([5e-7, -5e-7, 1.5e-6]),
    "digits": pa.array([Decimal("1e-20"), Decimal("2e-20"), None], pa.decimal128(38, 30)),
    "time": pa.array([time(1, 2), time(2, 3), None]),
    "interval": pa.array([timedelta(1), timedelta(2), None]),
    "calendar": pa.array([datetime(9999, 12, 31), datetime(1, 1, 1), None]),
    "dictionary": pa.array(["a", "b", None]).dictionary_encode(),
    "missing": pa.array([None, None, None], pa.int64()),
    "quotes": pa.array(["it's", '"', "\\"]),
}
QUESTIONS = (
    "SELECT SUM(s.x) FROM people p JOIN states s ON p.level = s.level",
    "SELECT s.x, COUNT(*) FROM people p JOIN states s ON p.level = s.level GROUP BY s.x",
    "SELECT COUNT(*) FROM people p LEFT JOIN states s ON p.level = s.level WHERE s.x > 5",
    "SELECT COUNT(*) FROM people p JOIN (SELECT level, x FROM states) s ON p.level = s.level WHERE x IS NOT NULL",
    "SELECT COUNT(*) FROM people WHERE age IN (SELECT x FROM states)",
    "SELECT SUM(s.x * s.x + 1), MEDIAN(s.x) FROM people p JOIN states s ON p.level = s.level",
    "SELECT MAX(s.x), MIN(s.x) FROM people p JOIN states s ON p.level >= s.level",
    "SELECT HOUR(s.x), COUNT(*) FROM people p JOIN states s ON p.level >= s.level GROUP BY 1",
    "SELECT SUM(v.x * 1000000 + 1) FROM people p JOIN (SELECT * FROM states) v ON p.level >= v.level",
    "SELECT SUM(DATE_DIFF('second', TIMESTAMP '2024-01-01 05:00:00', v.x)) FROM people p JOIN (SELECT * FROM states) v "
    "ON p.level >= v.level",
    "SELECT v.x, COUNT(*) FROM people p JOIN (SELECT * FROM states) v ON p.level >= v.level GROUP BY v.x",
    "SELECT COUNT(*) FROM people p JOIN (SELECT * FROM states) v "
    "ON CASE WHEN p.level >= 0 THEN TIMESTAMP '2024-11-03 01:30:00' END = v.x",
    "SELECT x FROM states",
)


@pytest.mark.parametrize("name", COLUMNS)
def test_any_public_column(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a machine that is not at Greenwich."""
    monkeypatch.setenv("TZ", "America/New_York")
    source = random.Random(os.urandom(16))
    monkeypatch.setitem(
        worlds.PUBLIC, "states", pa.table({"level": [1, 2, 10], "x": COLUMNS[name]})
    )
    here = worlds.world("shop", source)
    for sql in QUESTIONS:
        verdict(sql, here, source)
