"""Which rows of a person are kept: a fair sample of that person's own, and another one for each
person (S4).

Over stores with fresh keys; false alarms below 1e-9 in all.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from small_sources import kept, policy_of

from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.preparing.order import ROW, first_rows, shuffle_key
from discreet.engines.duckdb.preparing.prepare import prepare
from discreet.policy.domain import (
    Booleans,
    Categories,
    Dates,
    Identifier,
    Integers,
    Texts,
    Timestamps,
)

_DAY, _MOMENT, _SECOND = date(1970, 1, 1), datetime(1970, 1, 1), Fraction(1)
PEOPLE, ROWS, MOST = 2000, 40, 10
VISITS = f"  visits: {{owner: person, max_rows: {MOST}, columns: {{stars: {{integer: [1, 5]}}}}}}\n"


def stars_kept(folder: Path) -> list[tuple[int, ...]]:
    """For each person what is kept of 40 rows, eight of every number of stars, in a store of its
    own.
    """
    person = np.repeat(np.arange(PEOPLE), ROWS)
    table = pa.table({"person": person, "stars": np.tile(np.arange(ROWS) % 5 + 1, PEOPLE)})
    policy = policy_of(VISITS, folder)
    prepare(policy, {"visits": table}, policy.store, 1)
    engine = DuckDB.open(policy, 1)
    rows = kept(engine, "visits")
    engine.close()
    found: dict[int, list[int]] = {}
    for owner, stars in rows:
        found.setdefault(owner, []).append(stars)
    return [tuple(sorted(each)) for each in found.values()]


def test_means_over_people_are_right(tmp_path: Path) -> None:
    """Without the owner in the hash everybody kept the same ten: means of 4.07, 3.45 and 2.55, of a
    true 3.

    A person's mean is that of 10 drawn from 40: variance 2 / 10 * 30 / 39, at most 2 from 3. By
    Bernstein's inequality the mean over 2,000 people is off by 0.07 with a chance below 6e-11.
    """
    for store in range(4):
        (tmp_path / str(store)).mkdir()
        found = stars_kept(tmp_path / str(store))
        assert [len(each) for each in found] == [MOST] * PEOPLE
        assert len(set(found)) > 200  # of some 900 possible ones; it was 1
        assert abs(sum(map(sum, found)) / (PEOPLE * MOST) - 3) < 0.07
        # of each value 2 a person: variance 1.6 * 30 / 39, at most 8 off; chance below 1e-10
        for stars in range(1, 6):
            assert abs(sum(each.count(stars) for each in found) / PEOPLE - 2) < 0.3


def test_every_row_is_kept_as_often_as_any_other() -> None:
    """Rows 0 to 19 are different, 20 to 39 are equal. Each of 40 is kept by a quarter of all, over
    20 keys.
    """
    connection = duckdb.connect()
    connection.execute(
        'CREATE TABLE visits AS SELECT p AS "#owner", r, least(r, 20) AS stars '
        "FROM range(500) people(p), range(40) visits(r)"
    )
    counted: Counter[int] = Counter()
    trials = 0
    for _ in range(20):
        rows = f'SELECT rowid AS {ROW}, "#owner", stars FROM visits'
        chosen = first_rows(
            rows, {"stars": Integers(lo=0, hi=20)}, int.from_bytes(np.random.bytes(8)), MOST
        )
        sql = f"SELECT stars, count(*) FROM visits SEMI JOIN ({chosen}) AS c ON visits.rowid = c.{ROW} GROUP BY 1"
        for stars, count in connection.execute(sql).fetchall():
            counted[stars] += count
        trials += 500
    rare = math.sqrt(math.log(2 * 21 * 10**9) / 2 / trials)  # Hoeffding, for all 21 counts
    assert rare < 0.04
    for stars in range(20):
        assert abs(counted[stars] / trials - MOST / ROWS) < rare
    assert abs(counted[20] / trials / 20 - MOST / ROWS) < rare


def test_the_hash_can_be_computed_by_anybody() -> None:
    """What is hashed, written out: any engine with md5 keeps the same rows."""
    domains = {
        "a": Integers(lo=-9, hi=9),
        "b": Booleans(),
        "c": Dates(lo=_DAY, hi=_DAY),
        "d": Timestamps(lo=_MOMENT, hi=_MOMENT, step=_SECOND),
        "e": Texts(),
        "f": Identifier(),
        "g": Categories(values=("x", "y")),
    }
    values = "-7, true, DATE '1970-01-03', TIMESTAMP '1970-01-01 00:00:02', 'é,1', 55, NULL"
    rows = f"""(VALUES ('x-1', {values})) AS t("#owner", a, b, c, d, e, f, g)"""
    sql = f"SELECT {shuffle_key(domains, '00ff', copy='2')} FROM {rows}"
    found = duckdb.connect().execute(sql).fetchall()[0][0]
    assert found == hashlib.md5("00ff,3:x-1,2,-7,1,2,2000000,3:é,1,2:55,-".encode()).hexdigest()


def test_different_rows_have_different_texts() -> None:
    """No two of these rows are hashed alike: lengths tell where a text ends, and NULL is no
    text.
    """
    texts = [None, "", "-", ",", "1", "1:1", "0:", "a", "a,1:b", "b", "1:a,1:b"]
    rows = [
        (owner, first, second)
        for owner in ("1", "11", "1,1")
        for first in texts
        for second in texts
    ]
    table = pa.table(
        {"#owner": [r[0] for r in rows], "a": [r[1] for r in rows], "b": [r[2] for r in rows]}
    )
    connection = duckdb.connect()
    connection.register("given", table)
    hashed = shuffle_key({"a": Texts(), "b": Texts()}, "k", copy="1")
    assert connection.execute(f"SELECT count(DISTINCT {hashed}) FROM given").fetchall() == [
        (len(rows),)
    ]
